//! The bytes of a user's file, as they stand in requests and in the journal.

use serde::{Deserialize, Serialize};

/// Bytes: JSON text where they are UTF-8, else `{"hex": "..."}`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Form", try_from = "Form")]
pub struct Content(pub Vec<u8>);

#[derive(Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum Form {
    Text(String),
    Hex { hex: String },
}

impl From<Content> for Form {
    fn from(content: Content) -> Self {
        match String::from_utf8(content.0) {
            Ok(text) => Self::Text(text),
            Err(error) => Self::Hex {
                hex: error
                    .as_bytes()
                    .iter()
                    .map(|byte| format!("{byte:02x}"))
                    .collect(),
            },
        }
    }
}

impl TryFrom<Form> for Content {
    type Error = String;

    fn try_from(form: Form) -> Result<Self, String> {
        match form {
            Form::Text(text) => Ok(Self(text.into_bytes())),
            Form::Hex { hex } => bytes(&hex)
                .map(Self)
                .ok_or_else(|| "hex: must be pairs of hexadecimal digits".to_owned()),
        }
    }
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = hex.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    let digit = |it: u8| (it as char).to_digit(16).map(|value| value as u8);
    pairs
        .iter()
        .map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?))
        .collect()
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().to_vec())
    }
}
