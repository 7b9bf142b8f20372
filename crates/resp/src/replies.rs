//! What a server says: replies, each one value, which may be of many.

use crate::lines::{END_BYTES, integer, line, number, value_bytes};
use crate::{DEPTH_MAX, ELEMENTS_MAX, Malformed, Piece};

/// The longest word that is kept of a reply.
const WORD_BYTES_MAX: usize = 16;

/// The first word of a reply, where that is short.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Word {
    bytes: [u8; WORD_BYTES_MAX],
    count: u8,
}

impl Word {
    fn of(bytes: &[u8]) -> Self {
        let mut word = Self::default();
        if bytes.len() <= WORD_BYTES_MAX {
            word.bytes[..bytes.len()].copy_from_slice(bytes);
            word.count = bytes.len() as u8;
        }
        word
    }

    /// Its bytes; none where there is no short word.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.count)]
    }
}

/// A whole reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// Its first byte, behind attributes: what it is.
    pub sign: u8,
    /// The word that it is, or its first element.
    pub word: Word,
    /// Its third element, where that is a number.
    pub third: Option<i64>,
    /// Its length, with attributes.
    pub bytes: u64,
}

/// Reads replies in pieces, as they come.
#[derive(Clone, Debug, Default)]
pub struct Replies {
    /// What is open, the outermost first.
    open: Vec<Open>,
    /// Elements of the outermost that have begun.
    elements: u64,
    reply: Reply,
    has_ended: bool,
}

/// A value of values that has begun.
#[derive(Clone, Copy, Debug)]
struct Open {
    until: Until,
    /// Whether it says something of the value behind it, and is none.
    is_attribute: bool,
}

/// Where it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Until {
    /// After so many elements more.
    Count(u64),
    /// With a dot.
    Dot,
    /// It is one value in chunks, and ends with an empty one.
    EmptyChunk,
}

/// A value's beginning, or all of a short one.
enum Head {
    /// Nothing follows it that is its own.
    Whole,
    /// So many bytes follow.
    Value(usize),
    /// Elements follow.
    Opens(Open),
    /// What was opened last ends here.
    Ends,
}

impl Replies {
    /// What begins at these bytes; None where more must come.
    ///
    /// # Errors
    /// When the protocol has no such thing, or it is beyond the limits.
    pub fn next(&mut self, bytes: &[u8]) -> Result<Option<Piece>, Malformed> {
        let mut at = 0;
        while at < bytes.len() {
            let (head, head_bytes) = match self.head(&bytes[at..]) {
                Ok(Some(found)) => found,
                Ok(None) => break,
                // What is right before a mistake passes.
                Err(_) if at > 0 => break,
                Err(malformed) => return Err(malformed),
            };
            at += head_bytes;
            let is_whole = match head {
                Head::Opens(open) => self.opens(open),
                Head::Whole => self.passes_element(),
                Head::Ends => self.closes(),
                Head::Value(length) => {
                    at += length;
                    self.passes_element()
                }
            };
            if is_whole {
                self.has_ended = true;
            }
            if is_whole || at > bytes.len() {
                break;
            }
        }
        if at == 0 {
            return Ok(None);
        }
        self.reply.bytes += at as u64;
        let head_bytes = at.min(bytes.len());
        Ok(Some(Piece {
            head_bytes,
            body_bytes: at - head_bytes,
        }))
    }

    /// The reply that has ended with the last piece; told once.
    pub fn take_ended(&mut self) -> Option<Reply> {
        if !std::mem::take(&mut self.has_ended) {
            return None;
        }
        self.elements = 0;
        Some(std::mem::take(&mut self.reply))
    }

    /// The beginning of a value, and the bytes that it takes.
    fn head(&mut self, bytes: &[u8]) -> Result<Option<(Head, usize)>, Malformed> {
        let sign = bytes[0];
        let is_in_chunks = matches!(
            self.open.last(),
            Some(Open {
                until: Until::EmptyChunk,
                ..
            })
        );
        if is_in_chunks != (sign == b';') {
            return Err(unknown(sign));
        }
        if self.open.len() >= DEPTH_MAX && b"*~%|".contains(&sign) {
            return Err(Malformed(format!(
                "a reply: is deeper than {DEPTH_MAX}, which is allowed"
            )));
        }
        match sign {
            b'+' | b'-' | b':' | b'_' | b'#' | b',' | b'(' => self.line(bytes),
            b'$' | b'!' | b'=' | b';' => self.value(bytes),
            b'*' | b'~' | b'%' | b'|' => self.elements(bytes),
            b'>' if self.open.is_empty() => self.elements(bytes),
            b'.' => self.dot(bytes),
            other => Err(unknown(other)),
        }
    }

    fn line(&mut self, bytes: &[u8]) -> Result<Option<(Head, usize)>, Malformed> {
        let Some((line, taken)) = ended(bytes)? else {
            return Ok(None);
        };
        let text = &line[1..];
        self.begins(bytes[0]);
        if self.keeps(0) || self.open.is_empty() {
            self.reply.word = Word::of(text);
        } else if self.keeps(2) && bytes[0] == b':' {
            self.reply.third = integer(text);
        }
        Ok(Some((Head::Whole, taken)))
    }

    fn value(&mut self, bytes: &[u8]) -> Result<Option<(Head, usize)>, Malformed> {
        if bytes.starts_with(b"$?") {
            return self.streamed(bytes, Until::EmptyChunk, false);
        }
        let Some((length, taken)) = number(bytes, "a value of a reply")? else {
            return Ok(None);
        };
        if length == -1 && bytes[0] == b'$' {
            self.begins(bytes[0]);
            return Ok(Some((Head::Whole, taken)));
        }
        let length = value_bytes(length, "a value of a reply")?;
        if bytes[0] == b';' {
            let head = if length == 0 {
                Head::Ends
            } else {
                Head::Value(length + END_BYTES)
            };
            return Ok(Some((head, taken)));
        }
        let is_first = self.open.len() == 1 && self.elements == 0 && !self.is_in_attribute();
        if is_first && length <= WORD_BYTES_MAX {
            let Some(text) = bytes.get(taken..taken + length + END_BYTES) else {
                return Ok(None);
            };
            self.begins(bytes[0]);
            self.reply.word = Word::of(&text[..length]);
        } else {
            self.begins(bytes[0]);
        }
        Ok(Some((Head::Value(length + END_BYTES), taken)))
    }

    fn elements(&mut self, bytes: &[u8]) -> Result<Option<(Head, usize)>, Malformed> {
        let is_attribute = bytes[0] == b'|';
        if bytes.get(1) == Some(&b'?') {
            return self.streamed(bytes, Until::Dot, is_attribute);
        }
        let what = "the elements of a reply";
        let Some((count, taken)) = number(bytes, what)? else {
            return Ok(None);
        };
        let count = match u64::try_from(count) {
            Err(_) if count == -1 && bytes[0] == b'*' => {
                self.begins(bytes[0]);
                return Ok(Some((Head::Whole, taken)));
            }
            Ok(count) if count <= ELEMENTS_MAX => count,
            _ => {
                return Err(Malformed(format!(
                    "{what}: {count}; allowed are 0 to {ELEMENTS_MAX}"
                )));
            }
        };
        let of_pairs = matches!(bytes[0], b'%' | b'|');
        let until = Until::Count(if of_pairs { 2 * count } else { count });
        Ok(Some((self.opened(bytes[0], until, is_attribute), taken)))
    }

    /// What comes without a count before it.
    fn streamed(
        &mut self,
        bytes: &[u8],
        until: Until,
        is_attribute: bool,
    ) -> Result<Option<(Head, usize)>, Malformed> {
        let Some((line, taken)) = ended(bytes)? else {
            return Ok(None);
        };
        if line.len() > 2 {
            return Err(Malformed(
                "a streamed value: its line is longer than \"?\"".to_owned(),
            ));
        }
        Ok(Some((self.opened(bytes[0], until, is_attribute), taken)))
    }

    /// What has elements: it is the reply, unless it tells something of one.
    fn opened(&mut self, kind: u8, until: Until, is_attribute: bool) -> Head {
        if !is_attribute {
            self.begins(kind);
        }
        Head::Opens(Open {
            until,
            is_attribute,
        })
    }

    fn dot(&mut self, bytes: &[u8]) -> Result<Option<(Head, usize)>, Malformed> {
        let Some((line, taken)) = ended(bytes)? else {
            return Ok(None);
        };
        let has_open = matches!(
            self.open.last(),
            Some(Open {
                until: Until::Dot,
                ..
            })
        );
        if line.len() > 1 || !has_open {
            return Err(Malformed(
                "a dot: ends nothing that has no count".to_owned(),
            ));
        }
        Ok(Some((Head::Ends, taken)))
    }

    /// A value begins that is one, and no attribute.
    fn begins(&mut self, sign: u8) {
        if self.open.is_empty() {
            self.reply.sign = sign;
        } else if self.open.len() == 1 && !self.is_in_attribute() {
            self.elements += 1;
        }
    }

    /// Whether what has begun is the outermost's element of this place.
    fn keeps(&self, place: u64) -> bool {
        self.open.len() == 1 && !self.is_in_attribute() && self.elements == place + 1
    }

    fn is_in_attribute(&self) -> bool {
        self.open.first().is_some_and(|open| open.is_attribute)
    }

    /// Elements follow; whether the reply is whole: it has none.
    fn opens(&mut self, open: Open) -> bool {
        self.open.push(open);
        open.until == Until::Count(0) && self.closes()
    }

    /// What was opened last is over; whether the reply is whole.
    fn closes(&mut self) -> bool {
        let closed = self.open.pop();
        // The value behind it is still to come.
        !closed.is_some_and(|open| open.is_attribute) && self.passes_element()
    }

    /// A value is over; whether the reply is whole.
    fn passes_element(&mut self) -> bool {
        loop {
            let Some(open) = self.open.last_mut() else {
                return true;
            };
            let Until::Count(left) = &mut open.until else {
                return false;
            };
            *left -= 1;
            if *left > 0 {
                return false;
            }
            if self.open.pop().is_some_and(|open| open.is_attribute) {
                return false;
            }
        }
    }
}

/// A line that ends as all lines of replies do.
fn ended(bytes: &[u8]) -> Result<Option<(&[u8], usize)>, Malformed> {
    match line(bytes)? {
        Some((line, taken)) if taken != line.len() + END_BYTES => Err(Malformed(
            "a line of a reply: ends without a carriage return".to_owned(),
        )),
        found => Ok(found),
    }
}

fn unknown(sign: u8) -> Malformed {
    Malformed(format!(
        "a reply: begins with byte {sign:#04x}, which is no type of the protocol's"
    ))
}
