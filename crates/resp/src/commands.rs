//! What a client says: commands, each an array of values, or a line.

use crate::kind::{self, Kind, Said, WORD_BYTES_MAX};
use crate::lines::{END_BYTES, line, number, value_bytes};
use crate::{ELEMENTS_MAX, Malformed, Piece};

/// A command, as far as its first bytes tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// What it does to the order of replies.
    pub kind: Kind,
    /// Its length, up to the first value that is not at hand, and with that.
    pub bytes: u64,
}

/// A piece of what a client says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its bytes.
    pub piece: Piece,
    /// The command that begins with it; None where it goes on with one, or says nothing that the server answers.
    pub begins: Option<Command>,
    /// Values of the same command that are to come behind it.
    pub values_left: u32,
}

/// Reads commands in pieces, as they come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Commands {
    values_left: u32,
}

impl Commands {
    /// What begins at these bytes; None where more must come. Nothing is changed by it before [`Commands::pass`].
    ///
    /// # Errors
    /// When the protocol has no such thing, or it is beyond the limits.
    pub fn next(&self, bytes: &[u8]) -> Result<Option<Part>, Malformed> {
        if self.values_left > 0 {
            let walked = walk(bytes, 0, self.values_left)?;
            return Ok((walked.at > 0).then(|| walked.part(None)));
        }
        match bytes.first() {
            None => Ok(None),
            Some(b'*') => array(bytes),
            Some(_) => inline(bytes),
        }
    }

    /// Goes on behind a part, whose body is not looked at.
    pub fn pass(&mut self, part: &Part) {
        self.values_left = part.values_left;
    }
}

/// How far values are at hand.
struct Walked {
    at: usize,
    body_bytes: usize,
    values_left: u32,
}

impl Walked {
    fn part(&self, begins: Option<Kind>) -> Part {
        let piece = Piece {
            head_bytes: self.at,
            body_bytes: self.body_bytes,
        };
        let bytes = self.at as u64 + self.body_bytes as u64;
        Part {
            piece,
            begins: begins.map(|kind| Command { kind, bytes }),
            values_left: self.values_left,
        }
    }
}

/// Goes over values from a place on, to the first that is not at hand. What is right before a mistake passes.
fn walk(bytes: &[u8], begin: usize, mut values_left: u32) -> Result<Walked, Malformed> {
    let mut at = begin;
    while values_left > 0 {
        let (length, head_bytes) = match value(&bytes[at..]) {
            Ok(Some(found)) => found,
            Ok(None) => break,
            Err(_) if at > begin => break,
            Err(malformed) => return Err(malformed),
        };
        values_left -= 1;
        let end = at + head_bytes + length + END_BYTES;
        if end > bytes.len() {
            return Ok(Walked {
                at: bytes.len(),
                body_bytes: end - bytes.len(),
                values_left,
            });
        }
        at = end;
    }
    Ok(Walked {
        at,
        body_bytes: 0,
        values_left,
    })
}

/// The length of a value, and the bytes that say it.
pub(crate) fn value(bytes: &[u8]) -> Result<Option<(usize, usize)>, Malformed> {
    let what = "a value of a command";
    match bytes.first() {
        None => return Ok(None),
        Some(b'$') => {}
        Some(other) => {
            return Err(Malformed(format!(
                "{what}: begins with byte {other:#04x}; must be \"$\""
            )));
        }
    }
    let Some((length, head_bytes)) = number(bytes, what)? else {
        return Ok(None);
    };
    Ok(Some((value_bytes(length, what)?, head_bytes)))
}

fn array(bytes: &[u8]) -> Result<Option<Part>, Malformed> {
    let Some((count, begin)) = number(bytes, "a command")? else {
        return Ok(None);
    };
    let count = match u64::try_from(count) {
        // Redis passes over it.
        Err(_) | Ok(0) => return Ok(Some(nothing(begin))),
        Ok(count) if count <= ELEMENTS_MAX => count as u32,
        Ok(_) => {
            return Err(Malformed(format!(
                "a command: of {count} values; allowed are up to {ELEMENTS_MAX}"
            )));
        }
    };
    let (mut at, mut left) = (begin, count);
    let next = || {
        if left == 0 {
            return Ok(Said::End);
        }
        let Some((length, head_bytes)) = value(&bytes[at..])? else {
            return Ok(Said::Later);
        };
        if length > WORD_BYTES_MAX {
            return Ok(Said::Long);
        }
        let from = at + head_bytes;
        let end = from + length + END_BYTES;
        if end > bytes.len() {
            return Ok(Said::Later);
        }
        (at, left) = (end, left - 1);
        Ok(Said::Word(&bytes[from..from + length]))
    };
    let Some(kind) = kind::tell(count, next)? else {
        return Ok(None);
    };
    Ok(Some(walk(bytes, begin, count)?.part(Some(kind))))
}

fn inline(bytes: &[u8]) -> Result<Option<Part>, Malformed> {
    let Some((line, head_bytes)) = line(bytes)? else {
        return Ok(None);
    };
    let words = || {
        line.split(u8::is_ascii_whitespace)
            .filter(|word| !word.is_empty())
    };
    let count = words().count() as u32;
    if count == 0 {
        return Ok(Some(nothing(head_bytes)));
    }
    let is_quoted = |word: &[u8]| word.iter().any(|byte| b"\"'\\".contains(byte));
    let quoted =
        || Malformed("an inline command: is quoted where it matters what it is called".to_owned());
    let mut each = words();
    let next = || match each.next() {
        None => Ok(Said::End),
        Some(word) if is_quoted(word) => Err(quoted()),
        Some(word) => Ok(Said::Word(word)),
    };
    let kind = kind::tell(count, next)?.unwrap_or(Kind::Ordinary);
    if matches!(kind, Kind::Subscription { .. }) && is_quoted(line) {
        return Err(quoted()); // its words are others than those counted
    }
    let walked = Walked {
        at: head_bytes,
        body_bytes: 0,
        values_left: 0,
    };
    Ok(Some(walked.part(Some(kind))))
}

fn nothing(head_bytes: usize) -> Part {
    let piece = Piece {
        head_bytes,
        body_bytes: 0,
    };
    Part {
        piece,
        begins: None,
        values_left: 0,
    }
}
