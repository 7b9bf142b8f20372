//! What stands between the data of a chunked body (RFC 9112, section 7.1).

use crate::fields::{check_trailer, end_of_lines};
use crate::refusal::{Refusal, bad, shown};
use crate::{CHUNK_LINE_BYTES_MAX, TRAILER_BYTES_MAX};

/// Digits of the size of a chunk at most.
const DIGITS_MAX: usize = 15;

/// A chunked body, up to where it was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chunks {
    /// Whether data came last, behind which its line ends.
    is_behind_data: bool,
}

/// What stands before the data of a chunk, behind it, or at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its length.
    pub bytes: usize,
    /// The data that follows it.
    pub data_bytes: u64,
    /// Whether the body is over with it.
    pub is_last: bool,
}

impl Chunks {
    /// Reads what comes behind the head or behind the data of a chunk; None where not all of it has come.
    ///
    /// # Errors
    /// Where it is no chunk.
    pub fn next(&mut self, bytes: &[u8]) -> Result<Option<Piece>, Refusal> {
        if self.is_behind_data {
            return self.end_of_data(bytes);
        }
        let Some((mut end, data_bytes)) = size_line(bytes)? else {
            return Ok(None);
        };
        let is_last = data_bytes == 0;
        if is_last {
            match trailer(&bytes[end..])? {
                None => return Ok(None),
                Some(trailer_bytes) => end += trailer_bytes,
            }
        }
        self.is_behind_data = !is_last;
        Ok(Some(Piece {
            bytes: end,
            data_bytes,
            is_last,
        }))
    }

    /// The end of a chunk's line of data, which does not wait for the next chunk.
    fn end_of_data(&mut self, bytes: &[u8]) -> Result<Option<Piece>, Refusal> {
        match bytes {
            [b'\r', b'\n', ..] => {}
            [] | [b'\r'] => return Ok(None),
            _ => return Err(bad("a chunk: is longer than it says")),
        }
        self.is_behind_data = false;
        Ok(Some(Piece {
            bytes: 2,
            data_bytes: 0,
            is_last: false,
        }))
    }
}

/// A line of a chunk: its length, and the size that it tells.
fn size_line(bytes: &[u8]) -> Result<Option<(usize, u64)>, Refusal> {
    let looked = &bytes[..bytes.len().min(CHUNK_LINE_BYTES_MAX)];
    let Some(length) = looked.iter().position(|byte| *byte == b'\n') else {
        let digits = looked
            .iter()
            .take_while(|it| it.is_ascii_hexdigit())
            .count();
        let is_begun = matches!(looked.get(digits), None | Some(b';' | b'\r'));
        if looked.len() < CHUNK_LINE_BYTES_MAX && digits <= DIGITS_MAX && is_begun {
            return Ok(None);
        }
        return Err(wrong(looked));
    };
    let Some(line) = looked[..length].strip_suffix(b"\r") else {
        return Err(bad("a chunk: its line ends without a carriage return"));
    };
    let digits = line.iter().take_while(|it| it.is_ascii_hexdigit()).count();
    let (digits, extension) = line.split_at(digits);
    let is_extension = matches!(extension, [] | [b';', ..])
        && extension
            .iter()
            .all(|byte| matches!(byte, b'\t' | b' '..=b'~'));
    let text = std::str::from_utf8(digits).unwrap_or_default();
    match u64::from_str_radix(text, 16) {
        Ok(size) if is_extension && digits.len() <= DIGITS_MAX => Ok(Some((length + 1, size))),
        _ => Err(wrong(line)),
    }
}

fn wrong(line: &[u8]) -> Refusal {
    bad(format!("a chunk: {} is no size", shown(line)))
}

/// The length of what follows the last chunk: fields, and an empty line.
fn trailer(bytes: &[u8]) -> Result<Option<usize>, Refusal> {
    let looked = &bytes[..bytes.len().min(TRAILER_BYTES_MAX)];
    match end_of_lines(looked)? {
        Some(end) => check_trailer(&looked[..end - 2]).map(|()| Some(end)),
        None if looked.len() < TRAILER_BYTES_MAX => Ok(None),
        None => Err(bad(format!(
            "a trailer: is longer than {TRAILER_BYTES_MAX} bytes"
        ))),
    }
}
