//! Words, numbers, variables and marks of a workload file.

use super::error::WmlError;

/// One token.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    /// `define`, `name`, `cvar-gamma`, `a/b.c`
    Word(String),
    /// `$name` or `$name.field`
    Variable { name: String, field: Option<String> },
    /// `16`, `1.5`, `128k` (1024), `1m`, `2g`, `1t`
    Number(f64),
    /// `"text"`
    Text(String),
    /// One of `{ } = , ( ) : ;`
    Mark(char),
    /// End of the file
    End,
}

/// A token with its place.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Spanned {
    pub(super) token: Token,
    pub(super) line: usize,
    /// As written, for messages.
    pub(super) word: String,
}

/// Cut a file into tokens. `#` begins a comment that ends with its line.
pub(super) fn tokens(text: &str) -> Result<Vec<Spanned>, WmlError> {
    let mut out = Vec::new();
    for (number, content) in text.lines().enumerate() {
        line_tokens(content, number + 1, &mut out)?;
    }
    let line = text.lines().count().max(1);
    out.push(Spanned {
        token: Token::End,
        line,
        word: String::new(),
    });
    Ok(out)
}

fn line_tokens(content: &str, line: usize, out: &mut Vec<Spanned>) -> Result<(), WmlError> {
    let mut rest = content;
    while let Some(first) = rest.chars().next() {
        if first.is_whitespace() {
            rest = &rest[first.len_utf8()..];
            continue;
        }
        if first == '#' {
            return Ok(());
        }
        let (token, length) = token(rest, first, line)?;
        out.push(Spanned {
            token,
            line,
            word: rest[..length].to_owned(),
        });
        rest = &rest[length..];
    }
    Ok(())
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn is_word(c: char) -> bool {
    is_name(c) || matches!(c, '-' | '.' | '/')
}

/// The length in bytes of the longest start of `text` whose characters all satisfy `test`.
fn span(text: &str, test: impl Fn(char) -> bool) -> usize {
    text.find(|c| !test(c)).unwrap_or(text.len())
}

fn token(rest: &str, first: char, line: usize) -> Result<(Token, usize), WmlError> {
    match first {
        '{' | '}' | '=' | ',' | '(' | ')' | ':' | ';' => Ok((Token::Mark(first), 1)),
        '"' => match rest[1..].find('"') {
            Some(end) => Ok((Token::Text(rest[1..=end].to_owned()), end + 2)),
            None => Err(WmlError::new(
                line,
                rest,
                "the string does not end on this line; close it with \"",
            )),
        },
        '$' => variable(rest, line),
        '0'..='9' => number(rest, line),
        // psrun -10: a number below zero is nothing but a word elsewhere.
        '-' if rest[1..].starts_with(|c: char| c.is_ascii_digit()) => {
            let length = 1 + span(&rest[1..], is_word);
            Ok((Token::Word(rest[..length].to_owned()), length))
        }
        c if c.is_ascii_alphabetic() || matches!(c, '/' | '_') => {
            let length = span(rest, is_word);
            Ok((Token::Word(rest[..length].to_owned()), length))
        }
        _ => {
            let length = span(rest, |c| !c.is_whitespace());
            Err(WmlError::new(
                line,
                &rest[..length],
                "not a word, number, string or variable of the language",
            ))
        }
    }
}

fn variable(rest: &str, line: usize) -> Result<(Token, usize), WmlError> {
    let name = span(&rest[1..], is_name);
    if name == 0 {
        let length = span(rest, |c| !c.is_whitespace());
        return Err(WmlError::new(
            line,
            &rest[..length],
            "a variable is a dollar sign and a name, as in $nfiles",
        ));
    }
    let mut length = 1 + name;
    let mut field = None;
    if rest[length..].starts_with('.') {
        let field_length = span(&rest[length + 1..], is_name);
        field = Some(rest[length + 1..length + 1 + field_length].to_owned());
        length += 1 + field_length;
    }
    Ok((
        Token::Variable {
            name: rest[1..=name].to_owned(),
            field,
        },
        length,
    ))
}

fn number(rest: &str, line: usize) -> Result<(Token, usize), WmlError> {
    let length = span(rest, is_word);
    let word = &rest[..length];
    let refused = || {
        WmlError::new(
            line,
            word,
            "not a number; write 16, 1.5, 128k, 1m, 2g or 1t (powers of 1024)",
        )
    };
    let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match word[digits.len()..].to_ascii_lowercase().as_str() {
        "" => 1.0,
        "k" => 1024.0,
        "m" => 1024.0 * 1024.0,
        "g" => 1024.0 * 1024.0 * 1024.0,
        "t" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return Err(refused()),
    };
    if !digits.chars().all(|c| c.is_ascii_digit() || c == '.') {
        return Err(refused());
    }
    let value = digits.parse::<f64>().map_err(|_| refused())? * factor;
    // 2^53: beyond it, floating point skips whole numbers.
    if value > 9_007_199_254_740_992.0 {
        return Err(WmlError::new(
            line,
            word,
            "the number is too large; at most 2^53 (8192t)",
        ));
    }
    Ok((Token::Number(value), length))
}
