//! Lines and fields, which heads and trailers are made of (RFC 9112, sections 2.2 and 5).

use std::ops::Range;

use crate::body::Body;
use crate::refusal::{Refusal, Status, bad, shown};
use crate::{FIELDS_MAX, HEAD_BYTES_MAX};

/// Behind the empty line that ends a head or a trailer; None where that has not come.
///
/// # Errors
/// Where a line ends without a carriage return: some would take it for an end, and others not.
pub(crate) fn end_of_lines(bytes: &[u8]) -> Result<Option<usize>, Refusal> {
    let mut start = 0;
    while let Some(length) = bytes[start..].iter().position(|byte| *byte == b'\n') {
        match bytes[start..start + length] {
            [b'\r'] => return Ok(Some(start + length + 1)),
            [.., b'\r'] => start += length + 1,
            _ => return Err(bad("a line: ends without a carriage return")),
        }
    }
    Ok(None)
}

/// The head at the beginning of what has come, without its empty line; None where not all of it has.
///
/// # Errors
/// Where it is too long, or a line does not end as it must.
pub(crate) fn whole_head(bytes: &[u8]) -> Result<Option<&[u8]>, Refusal> {
    let looked = &bytes[..bytes.len().min(HEAD_BYTES_MAX)];
    match end_of_lines(looked)? {
        Some(end) => Ok(Some(&bytes[..end - 2])),
        None if looked.len() < HEAD_BYTES_MAX => Ok(None),
        None => Err(Refusal::new(
            Status::HeadTooLarge,
            format!("a head: is longer than {HEAD_BYTES_MAX} bytes"),
        )),
    }
}

/// One line of a head or a trailer: its places, with its end.
pub(crate) fn lines(bytes: &[u8]) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut start = 0;
    std::iter::from_fn(move || {
        let length = bytes[start..].iter().position(|byte| *byte == b'\n')?;
        let line = start..start + length + 1;
        start = line.end;
        Some(line)
    })
}

/// The first line, where all of it has come, without its end.
pub(crate) fn first_line(bytes: &[u8]) -> Option<&[u8]> {
    let line = lines(bytes).next()?;
    bytes[line].strip_suffix(b"\r\n")
}

/// A field: where its line is, its name, and its value without blanks around it.
#[derive(Clone, Debug)]
pub(crate) struct Field<'a> {
    pub line: Range<usize>,
    pub name: &'a [u8],
    pub value: Range<usize>,
}

impl Field<'_> {
    pub(crate) fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name.as_bytes())
    }
}

/// The field on a line of a head.
///
/// # Errors
/// Where it is none.
pub(crate) fn field(head: &[u8], line: Range<usize>) -> Result<Field<'_>, Refusal> {
    let text = &head[line.start..line.end - 2];
    if text.first().is_some_and(|byte| is_blank(*byte)) {
        return Err(bad("a field: goes on in the next line"));
    }
    let name_bytes = text.iter().take_while(|byte| is_token(**byte)).count();
    if name_bytes == 0 || text.get(name_bytes) != Some(&b':') {
        return Err(bad(format!("a field: {} is none", shown(text))));
    }
    let name = &text[..name_bytes];
    let value = trimmed(head, line.start + name_bytes + 1..line.end - 2);
    if !head[value.clone()].iter().all(|byte| is_text(*byte)) {
        return Err(bad(format!(
            "{}: its value has a control character",
            name.escape_ascii()
        )));
    }
    Ok(Field { line, name, value })
}

/// A place without the blanks around what stands there.
fn trimmed(bytes: &[u8], mut place: Range<usize>) -> Range<usize> {
    while !place.is_empty() && is_blank(bytes[place.start]) {
        place.start += 1;
    }
    while !place.is_empty() && is_blank(bytes[place.end - 1]) {
        place.end -= 1;
    }
    place
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

fn is_text(byte: u8) -> bool {
    matches!(byte, b'\t' | b' '..=b'~' | 0x80..=0xff)
}

/// Whether a byte may be one of a name (RFC 9110, section 5.6.2).
pub(crate) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// What the fields of a head say of how its message goes on.
#[derive(Debug, Default)]
pub(crate) struct Framing<'a> {
    /// How many hosts are named, and the last of them.
    pub hosts: u32,
    pub host: &'a [u8],
    pub upgrade: Option<&'a [u8]>,
    content_length: Option<&'a [u8]>,
    transfer_encoding: Option<&'a [u8]>,
    /// What `Connection` names besides `close` and `keep-alive`.
    options: Vec<&'a [u8]>,
    /// Whether there are fields of one hop alone.
    has_hop: bool,
}

/// Fields that are of one hop also where `Connection` does not name them (RFC 9110, section 7.6.1). Not among them:
/// `Keep-Alive`, for what it says of one connection holds for its other half, which begins and ends with it.
const OF_HOP: [&str; 3] = ["proxy-connection", "te", "upgrade"];

/// Fields that nobody may have removed by naming them in `Connection`.
const OF_MESSAGE: [&str; 4] = [
    "content-length",
    "transfer-encoding",
    "host",
    "authorization",
];

impl<'a> Framing<'a> {
    /// Looks through the fields of a head, behind its first line.
    ///
    /// # Errors
    /// Where one is none, or says what another does not.
    pub(crate) fn read(head: &'a [u8]) -> Result<Self, Refusal> {
        let mut framing = Self::default();
        for (count, line) in lines(head).skip(1).enumerate() {
            if count == FIELDS_MAX {
                return Err(Refusal::new(
                    Status::HeadTooLarge,
                    format!("a head: has more than {FIELDS_MAX} fields"),
                ));
            }
            framing.take(head, &field(head, line)?)?;
        }
        Ok(framing)
    }

    fn take(&mut self, head: &'a [u8], field: &Field<'a>) -> Result<(), Refusal> {
        let value = &head[field.value.clone()];
        let twice = |name: &str| Err(bad(format!("{name}: is given twice")));
        if field.is("host") {
            (self.hosts, self.host) = (self.hosts + 1, value);
        } else if field.is("content-length") {
            if self.content_length.replace(value).is_some() {
                return twice("Content-Length");
            }
        } else if field.is("transfer-encoding") {
            if self.transfer_encoding.replace(value).is_some() {
                return twice("Transfer-Encoding");
            }
        } else if field.is("connection") {
            for option in options(head, &field.value) {
                let option = &head[option];
                if OF_MESSAGE.iter().any(|it| is_named(option, it)) {
                    return Err(bad(format!(
                        "Connection: names {}, which is not of a connection",
                        shown(option)
                    )));
                }
                if !is_own(option) {
                    self.options.push(option);
                }
            }
        } else if OF_HOP.iter().any(|name| field.is(name)) {
            self.has_hop = true;
            if field.is("upgrade") {
                self.upgrade = Some(value);
            }
        }
        Ok(())
    }

    /// How long the body is; None where the fields do not say.
    ///
    /// # Errors
    /// Where they say it in two ways, or in one that is not passed on.
    pub(crate) fn body(&self, is_http_10: bool) -> Result<Option<Body>, Refusal> {
        match (self.transfer_encoding, self.content_length) {
            (None, None) => Ok(None),
            (None, Some(digits)) => number(digits).map(|bytes| Some(Body::Bytes(bytes))),
            (Some(_), Some(_)) => Err(bad(
                "Content-Length: is given beside Transfer-Encoding; only one of them may be",
            )),
            (Some(_), None) if is_http_10 => {
                Err(bad("Transfer-Encoding: HTTP/1.0 does not have it"))
            }
            (Some(coding), None) if is_named(coding, "chunked") => Ok(Some(Body::Chunked)),
            (Some(coding), None) => Err(Refusal::new(
                Status::NotImplemented,
                format!(
                    "Transfer-Encoding: {}; only chunked is passed on",
                    shown(coding)
                ),
            )),
        }
    }

    /// The places of what is of one hop alone, in their order.
    pub(crate) fn cuts(&self, head: &[u8]) -> Vec<Range<usize>> {
        let mut cuts = Vec::new();
        if self.options.is_empty() && !self.has_hop {
            return cuts;
        }
        for field in lines(head).skip(1).flat_map(|line| field(head, line)) {
            if field.is("connection") {
                cut_options(head, &field, &mut cuts);
            } else if self.is_of_hop(field.name) {
                cuts.push(field.line);
            }
        }
        cuts
    }

    fn is_of_hop(&self, name: &[u8]) -> bool {
        OF_HOP.iter().any(|it| is_named(name, it))
            || self.options.iter().any(|it| it.eq_ignore_ascii_case(name))
    }
}

/// Leaves of a `Connection` what is said of both halves alike, or nothing where that is nothing.
fn cut_options(head: &[u8], field: &Field<'_>, cuts: &mut Vec<Range<usize>>) {
    let mut own: Vec<Range<usize>> = options(head, &field.value)
        .filter(|option| is_own(&head[option.clone()]))
        .collect();
    own.sort_by_key(|option| !is_named(&head[option.clone()], "close"));
    match own.first() {
        None => cuts.push(field.line.clone()),
        Some(kept) => {
            let around = [field.value.start..kept.start, kept.end..field.value.end];
            cuts.extend(around.into_iter().filter(|cut| !cut.is_empty()));
        }
    }
}

/// The places of the members of a list.
fn options<'a>(head: &'a [u8], value: &Range<usize>) -> impl Iterator<Item = Range<usize>> + 'a {
    let mut start = value.start;
    let end = value.end;
    std::iter::from_fn(move || {
        while start < end {
            let length = head[start..end]
                .iter()
                .position(|byte| *byte == b',')
                .unwrap_or(end - start);
            let member = trimmed(head, start..start + length);
            start += length + 1;
            if !member.is_empty() {
                return Some(member);
            }
        }
        None
    })
}

fn is_named(text: &[u8], name: &str) -> bool {
    text.eq_ignore_ascii_case(name.as_bytes())
}

/// What a connection's option says of one half and holds for the other.
fn is_own(option: &[u8]) -> bool {
    is_named(option, "close") || is_named(option, "keep-alive")
}

/// A length: digits alone.
fn number(digits: &[u8]) -> Result<u64, Refusal> {
    let text = std::str::from_utf8(digits).unwrap_or_default();
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse()
        .ok()
        .filter(|bytes| is_number && *bytes <= i64::MAX as u64)
        .ok_or_else(|| {
            bad(format!(
                "Content-Length: {} is no number of bytes",
                shown(digits)
            ))
        })
}

/// Refuses what is no trailer: a line that is no field, or a field that tells where a message ends.
///
/// # Errors
/// Where there is such.
pub(crate) fn check_trailer(bytes: &[u8]) -> Result<(), Refusal> {
    for line in lines(bytes) {
        let field = field(bytes, line)?;
        if OF_MESSAGE.iter().any(|name| field.is(name)) {
            return Err(bad(format!(
                "a trailer: {} may not stand there",
                shown(field.name)
            )));
        }
    }
    Ok(())
}
