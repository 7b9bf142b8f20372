//! A text cut into tokens.

/// What a token is.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    Number(f64),
    Name(String),
    Text(String),
    /// Operator, parenthesis or comma.
    Sign(&'static str),
    End,
}

/// A token and where it begins, in characters from one.
#[derive(Clone, Debug, PartialEq)]
pub struct Token {
    pub kind: Kind,
    pub position: usize,
}

const SIGNS: [&str; 15] = [
    "**", "==", "!=", "<=", ">=", "-", "+", "*", "/", "<", ">", "(", ")", ",", "",
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
        let first = characters[at];
        if matches!(first, ' ' | '\t' | '\r' | '\n') {
            at += 1;
            continue;
        }
        let rest = &characters[at..];
        let (kind, length) = if let Some(found) = number(rest) {
            found
        } else if first.is_ascii_alphabetic() || first == '_' {
            let length = rest
                .iter()
                .take_while(|it| it.is_ascii_alphanumeric() || **it == '_')
                .count();
            (Kind::Name(rest[..length].iter().collect()), length)
        } else if first == '"' || first == '\'' {
            string(rest).ok_or_else(|| {
                let expected =
                    "a string closed by the same quote, with no escapes but \\\\, \\\" and \\'";
                (at + 1, expected.to_owned())
            })?
        } else {
            let sign = SIGNS.iter().find(|sign| {
                !sign.is_empty() && sign.chars().eq(rest.iter().copied().take(sign.len()))
            });
            match sign {
                Some(sign) => (Kind::Sign(sign), sign.len()),
                None if first == '=' => {
                    return Err((at + 1, "'==' (equality has two signs)".to_owned()));
                }
                None => {
                    let expected =
                        format!("an operator, a number, a string or a name, not {first:?}");
                    return Err((at + 1, expected));
                }
            }
        };
        tokens.push(Token {
            kind,
            position: at + 1,
        });
        at += length;
    }
    tokens.push(Token {
        kind: Kind::End,
        position: characters.len() + 1,
    });
    Ok(tokens)
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
