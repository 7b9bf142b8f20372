//! A text cut into tokens.

/// What a token is.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// May be infinite, when its digits are beyond what a number can be.
    Number(f64),
    Name,
    /// A string, without its quotes and escapes.
    Text(String),
    /// Operator, parenthesis or comma.
    Sign,
    End,
}

/// A token, where it begins in characters from one, and how it is written.
#[derive(Clone, Debug, PartialEq)]
pub struct Token {
    pub kind: Kind,
    pub position: usize,
    pub text: String,
}

const SIGNS: [&str; 14] = [
    "**", "==", "!=", "<=", ">=", "-", "+", "*", "/", "<", ">", "(", ")", ",",
];

/// Cuts a text.
///
/// # Errors
/// Where a character belongs to no token: its position, and what was expected.
pub fn split(text: &str) -> Result<Vec<Token>, (usize, String)> {
    let characters: Vec<char> = text.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < characters.len() {
        if matches!(characters[at], ' ' | '\t' | '\r' | '\n') {
            at += 1;
            continue;
        }
        let rest = &characters[at..];
        let (kind, length) = token(rest).ok_or_else(|| (at + 1, expected(rest[0])))?;
        tokens.push(Token {
            kind,
            position: at + 1,
            text: rest[..length].iter().collect(),
        });
        at += length;
    }
    tokens.push(Token {
        kind: Kind::End,
        position: characters.len() + 1,
        text: "the end".to_owned(),
    });
    Ok(tokens)
}

fn token(rest: &[char]) -> Option<(Kind, usize)> {
    if let Some(found) = number(rest) {
        return Some(found);
    }
    match rest[0] {
        '_' | 'a'..='z' | 'A'..='Z' => {
            let length = rest
                .iter()
                .take_while(|it| it.is_ascii_alphanumeric() || **it == '_')
                .count();
            Some((Kind::Name, length))
        }
        '"' | '\'' => string(rest),
        _ => SIGNS
            .iter()
            .find(|sign| sign.chars().eq(rest.iter().copied().take(sign.len())))
            .map(|sign| (Kind::Sign, sign.len())),
    }
}

fn expected(found: char) -> String {
    match found {
        '"' | '\'' => {
            "a string closed by the same quote, with no escapes but \\\\, \\\" and \\'".to_owned()
        }
        '=' => "'==' (equality has two signs)".to_owned(),
        other => format!(
            "an operator, a number, a string or a name, not {}",
            crate::quoted(&other.to_string())
        ),
    }
}

/// Digits with an optional point and exponent; an exponent without digits is not part of it.
fn number(rest: &[char]) -> Option<(Kind, usize)> {
    let digits = |from: usize| {
        rest[from..]
            .iter()
            .take_while(|it| it.is_ascii_digit())
            .count()
    };
    let whole = digits(0);
    let mut length = whole;
    if rest.get(length) == Some(&'.') {
        let fraction = digits(length + 1);
        if whole + fraction == 0 {
            return None;
        }
        length += 1 + fraction;
    } else if whole == 0 {
        return None;
    }
    if matches!(rest.get(length), Some('e' | 'E')) {
        let sign = usize::from(matches!(rest.get(length + 1), Some('+' | '-')));
        let exponent = if length + 1 + sign <= rest.len() {
            digits(length + 1 + sign)
        } else {
            0
        };
        if exponent > 0 {
            length += 1 + sign + exponent;
        }
    }
    let text: String = rest[..length].iter().collect();
    Some((Kind::Number(text.parse().ok()?), length))
}

fn string(rest: &[char]) -> Option<(Kind, usize)> {
    let quote = rest[0];
    let mut text = String::new();
    let mut at = 1;
    loop {
        match *rest.get(at)? {
            it if it == quote => return Some((Kind::Text(text), at + 1)),
            '\\' => {
                let escaped = *rest.get(at + 1)?;
                if !matches!(escaped, '"' | '\'' | '\\') {
                    return None;
                }
                text.push(escaped);
                at += 2;
            }
            it if it < ' ' || it == '\u{7f}' => return None,
            it => {
                text.push(it);
                at += 1;
            }
        }
    }
}
