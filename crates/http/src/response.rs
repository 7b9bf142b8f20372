//! Heads of responses (RFC 9112, section 4).

use std::ops::Range;

use crate::body::Body;
use crate::fields::{Framing, first_line, whole_head};
use crate::refusal::{Refusal, Status, bad, shown};

/// What every response begins with.
const VERSION: &[u8] = b"HTTP/1.";

/// What a proxy has to know of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The length of its head, with the empty line.
    pub head_bytes: usize,
    /// Its status.
    pub status: u16,
    /// What follows its head.
    pub body: Body,
    /// The places in its head that are of one hop alone, in their order: they are not passed on.
    pub cuts: Vec<Range<usize>>,
}

impl Response {
    /// Reads a head; None where not all of it has come. `to_head` is whether a HEAD is answered.
    ///
    /// # Errors
    /// Where it is none, or could be read in two ways.
    pub fn parse(bytes: &[u8], to_head: bool) -> Result<Option<Self>, Refusal> {
        parse(bytes, to_head).map_err(|refusal| Refusal {
            status: Status::BadGateway,
            ..refusal
        })
    }

    /// Whether it answers its request; one that does not tells something before that (1xx).
    #[must_use]
    pub fn is_final(&self) -> bool {
        self.status >= 200
    }

    /// Whether the server turns the request down because there are too many (RFC 6585, section 4; RFC 9110, section
    /// 15.6.4; S3 says `SlowDown` by the latter).
    #[must_use]
    pub fn is_overload(&self) -> bool {
        matches!(self.status, 429 | 503)
    }
}

fn parse(bytes: &[u8], to_head: bool) -> Result<Option<Response>, Refusal> {
    // The end of the head of what is no response would be waited for in vain.
    let begin = &bytes[..bytes.len().min(VERSION.len())];
    if !VERSION.starts_with(begin) {
        return Err(bad(format!("a status line: {} begins none", shown(bytes))));
    }
    let Some(head) = whole_head(bytes)? else {
        return Ok(None);
    };
    let (status, is_http_10) = status_line(first_line(head).unwrap_or_default())?;
    if status == 101 {
        return Err(bad(
            "101: the server changes the protocol, and nobody has asked for that",
        ));
    }
    let framing = Framing::read(head)?;
    let told = framing.body(is_http_10)?;
    let body = match status {
        ..200 | 204 | 304 => Body::NONE,
        _ if to_head => Body::NONE,
        _ => told.unwrap_or(Body::UntilClose),
    };
    Ok(Some(Response {
        head_bytes: head.len() + 2,
        status,
        body,
        cuts: framing.cuts(head),
    }))
}

/// The status, and whether the version is the old one.
fn status_line(line: &[u8]) -> Result<(u16, bool), Refusal> {
    let wrong = || bad(format!("a status line: {} is none", shown(line)));
    let is_http_10 = match line.get(..9) {
        Some(b"HTTP/1.1 ") => false,
        Some(b"HTTP/1.0 ") => true,
        _ => return Err(wrong()),
    };
    let [hundreds @ b'1'..=b'5', tens, ones, rest @ ..] = &line[9..] else {
        return Err(wrong());
    };
    let is_phrase = |byte: &u8| matches!(byte, b'\t' | b' '..=b'~' | 0x80..);
    let is_end = rest.first().is_none_or(|byte| *byte == b' ');
    if !tens.is_ascii_digit() || !ones.is_ascii_digit() || !is_end || !rest.iter().all(is_phrase) {
        return Err(wrong());
    }
    let digit = |byte: &u8| u16::from(byte - b'0');
    Ok((
        digit(hundreds) * 100 + digit(tens) * 10 + digit(ones),
        is_http_10,
    ))
}
