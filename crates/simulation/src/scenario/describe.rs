//! What a scenario file may say: every section with its keys, their types, defaults and meanings.
//!
//! [`section!`] and [`words!`] stand around the definitions themselves, so that the description is what is read.

use serde::Serialize;
use serde_json::{Map, Value};

/// What a key holds.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// True or false.
    Boolean,
    /// A whole number, up to this one.
    Whole(u64),
    /// A number.
    Number,
    /// Text.
    Text,
    /// One of these words, each with its meaning.
    Words(Vec<(String, String)>),
    /// A table.
    Table(Box<Section>),
    /// One of several tables, told apart by their key `kind`.
    Choice(Vec<(String, Section)>),
    /// A list.
    List(Box<Kind>),
    /// It may be left out, which no value says.
    Optional(Box<Kind>),
}

impl Kind {
    /// A value of this kind, where any will do.
    fn any(&self) -> Value {
        match self {
            Kind::Boolean => false.into(),
            Kind::Whole(_) => 1.into(),
            Kind::Number => 1.0.into(),
            Kind::Text => "".into(),
            Kind::Words(words) => words[0].0.clone().into(),
            Kind::Table(section) => section.least(),
            Kind::Choice(_) | Kind::Optional(_) => Value::Null,
            Kind::List(_) => Value::Array(Vec::new()),
        }
    }
}

/// One key of a section.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// What it means.
    pub meaning: String,
    /// Whether it must be there.
    pub required: bool,
    /// Its value where it is left out.
    pub default: Value,
}

/// One table of a scenario file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Section {
    /// The name of its type.
    pub name: &'static str,
    /// What it describes.
    pub meaning: String,
    /// Its keys, in their order.
    pub keys: Vec<Key>,
}

impl Section {
    /// The required keys with some value each.
    pub(super) fn least(&self) -> Value {
        let required = self.keys.iter().filter(|key| key.required);
        required
            .map(|key| (key.name.to_owned(), key.kind.any()))
            .collect::<Map<_, _>>()
            .into()
    }

    /// With the defaults that reading the least table gives.
    pub(super) fn with_defaults(
        mut self,
        read: impl FnOnce(Value) -> serde_json::Result<Value>,
    ) -> Self {
        let least = self.least();
        let whole = read(least).expect("the required keys alone can be read");
        for key in &mut self.keys {
            if !key.required {
                key.default = whole[key.name].clone();
            }
        }
        self
    }
}

/// A type that a key may have.
pub trait Described {
    /// What a key of this type holds.
    fn kind() -> Kind;
}

macro_rules! described {
    ($($type:ty => $kind:expr),* $(,)?) => {
        $(impl Described for $type {
            fn kind() -> Kind {
                $kind
            }
        })*
    };
}

described! {
    bool => Kind::Boolean,
    u8 => Kind::Whole(u8::MAX.into()),
    u16 => Kind::Whole(u16::MAX.into()),
    u32 => Kind::Whole(u32::MAX.into()),
    u64 => Kind::Whole(i64::MAX as u64),
    f64 => Kind::Number,
    String => Kind::Text,
}

impl<T: Described> Described for Option<T> {
    fn kind() -> Kind {
        Kind::Optional(Box::new(T::kind()))
    }
}

impl<T: Described> Described for Vec<T> {
    fn kind() -> Kind {
        Kind::List(Box::new(T::kind()))
    }
}

/// The lines of a doc comment as one text.
pub(super) fn meaning(lines: &[&str]) -> String {
    lines
        .iter()
        .map(|line| line.trim())
        .collect::<Vec<_>>()
        .join(" ")
}

/// A section's struct: what serde reads, and the same as a description.
macro_rules! section {
    (
        $(#[doc = $about:literal])+
        #[derive($($derived:tt)*)]
        #[serde($($serde:tt)*)]
        pub struct $name:ident {
            $(
                $(#[doc = $meaning:literal])+
                $(#[serde($($key_serde:tt)*)])?
                pub $key:ident: $type:ty,
            )*
        }
    ) => {
        $(#[doc = $about])+
        #[derive($($derived)*)]
        #[serde($($serde)*)]
        pub struct $name {
            $(
                $(#[doc = $meaning])+
                $(#[serde($($key_serde)*)])?
                pub $key: $type,
            )*
        }

        impl $name {
            /// Its keys, their types, defaults and meanings.
            #[must_use]
            pub fn section() -> $crate::scenario::describe::Section {
                use $crate::scenario::describe::{Described, Key, Section, meaning};
                let always = stringify!($($serde)*).contains("default");
                Section {
                    name: stringify!($name),
                    meaning: meaning(&[$($about),+]),
                    keys: vec![$(Key {
                        name: stringify!($key),
                        kind: <$type as Described>::kind(),
                        meaning: meaning(&[$($meaning),+]),
                        required: !always
                            && !concat!($(stringify!($($key_serde)*))?).contains("default"),
                        default: serde_json::Value::Null,
                    }),*],
                }
                .with_defaults(|least| {
                    serde_json::from_value::<$name>(least).and_then(serde_json::to_value)
                })
            }
        }

        impl $crate::scenario::describe::Described for $name {
            fn kind() -> $crate::scenario::describe::Kind {
                $crate::scenario::describe::Kind::Table(Box::new($name::section()))
            }
        }
    };
}

/// An enum of words: what serde reads, and the same as a description.
macro_rules! words {
    (
        $(#[$about:meta])+
        pub enum $name:ident {
            $($(#[doc = $meaning:literal])+ $word:ident,)*
        }
    ) => {
        $(#[$about])+
        pub enum $name {
            $($(#[doc = $meaning])+ $word,)*
        }

        impl $crate::scenario::describe::Described for $name {
            fn kind() -> $crate::scenario::describe::Kind {
                let meanings = [$($crate::scenario::describe::meaning(&[$($meaning),+])),*];
                let words = [$($name::$word),*].map(|word| {
                    let word = serde_json::to_value(word).expect("a word is plain data");
                    word.as_str().expect("a word is text").to_owned()
                });
                $crate::scenario::describe::Kind::Words(words.into_iter().zip(meanings).collect())
            }
        }
    };
}

pub(super) use {section, words};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Control, Flowop, Scenario};

    fn key(section: &Section, name: &str) -> Key {
        let found = section.keys.iter().find(|key| key.name == name);
        found.expect("the key is there").clone()
    }

    #[test]
    fn a_key_has_its_type_default_and_meaning() {
        let control = Control::section();
        let window = key(&control, "window");
        assert_eq!(window.kind, Kind::Number);
        assert_eq!((window.required, window.default), (false, 8.0.into()));
        assert!(window.meaning.starts_with("Window at the start"));
        assert_eq!(key(&control, "rules").default, Value::Null);
        let Kind::Words(words) = key(&control, "controller").kind else {
            panic!("a controller is one of several words");
        };
        assert!(
            words
                .iter()
                .any(|(word, meaning)| word == "envoy-gradient" && meaning.contains("Envoy"))
        );
        let flowop = Flowop::section();
        assert!(key(&flowop, "op").required);
        assert_eq!(key(&flowop, "iosize_kib").default, 1024.0);
    }

    #[test]
    fn every_section_is_described_down_to_its_last_key() {
        fn walk(kind: &Kind, sections: &mut Vec<&'static str>) {
            let section = |section: &Section, sections: &mut Vec<&'static str>| {
                sections.push(section.name);
                assert!(!section.meaning.is_empty());
                for key in &section.keys {
                    assert!(!key.meaning.is_empty(), "{}.{}", section.name, key.name);
                    walk(&key.kind, sections);
                }
            };
            match kind {
                Kind::Table(one) => section(one, sections),
                Kind::Choice(choices) => choices.iter().for_each(|(_, one)| section(one, sections)),
                Kind::List(inner) | Kind::Optional(inner) => walk(inner, sections),
                _ => {}
            }
        }
        let mut sections = Vec::new();
        walk(&Scenario::kind(), &mut sections);
        sections.sort_unstable();
        sections.dedup();
        assert_eq!(sections.len(), 23, "{sections:?}");
    }
}
