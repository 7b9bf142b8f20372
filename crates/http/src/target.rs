//! What a request is to, for who writes down what clients do; nothing is passed on or refused by it.

use crate::FIELDS_MAX;
use crate::fields::{field, lines};

/// The unit in which parts of objects are asked for (RFC 9110, section 14.1.2).
const BYTES_UNIT: &[u8] = b"bytes=";

/// A place in an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target<'a> {
    /// Its path, as it was said, without a query: signatures and the like differ from request to request.
    pub path: &'a [u8],
    /// Where what is asked for begins; 0 where nothing says so.
    pub first_byte: u64,
}

impl<'a> Target<'a> {
    /// That of a request that begins at these bytes and has been read; None where nothing begins there.
    #[must_use]
    pub fn of(bytes: &'a [u8]) -> Option<Self> {
        let mut head = lines(bytes);
        let said = bytes[head.next()?].split(|byte| *byte == b' ').nth(1)?;
        let path = said.split(|byte| *byte == b'?').next()?;
        let range = head
            .take_while(|line| line.len() > 2)
            .take(FIELDS_MAX)
            .filter_map(|line| field(bytes, line).ok())
            .find(|field| field.is("range"));
        let first_byte = range.and_then(|field| first_byte(&bytes[field.value]));
        Some(Self {
            path,
            first_byte: first_byte.unwrap_or(0),
        })
    }
}

/// The beginning of the first range; None where it counts from the end, or is none.
fn first_byte(value: &[u8]) -> Option<u64> {
    let (unit, ranges) = value.split_at_checked(BYTES_UNIT.len())?;
    let is_of_bytes = unit.eq_ignore_ascii_case(BYTES_UNIT);
    let digits = ranges.split(|byte| *byte == b'-').next()?;
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(digits)
        .ok()
        .filter(|_| is_of_bytes && is_number)?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<(&str, u64)> {
        let target = Target::of(text.as_bytes())?;
        Some((std::str::from_utf8(target.path).unwrap(), target.first_byte))
    }

    #[test]
    fn objects_are_told_by_their_paths_and_places_by_ranges() {
        let range = |value: &str| {
            let head = format!("GET /b/a?x=1 HTTP/1.1\r\nHost: s3\r\nrange: {value}\r\n\r\n");
            of(&head).map(|(path, first_byte)| (path.to_owned(), first_byte))
        };
        let at = |first_byte| Some(("/b/a".to_owned(), first_byte));
        assert_eq!(range("bytes=4096-8191"), at(4096));
        assert_eq!(range("Bytes=7-"), at(7));
        assert_eq!(range("bytes=5-6, 9-10"), at(5));
        for other in [
            "bytes=-500",
            "bytes=",
            "lines=3-4",
            "bytes=+3-4",
            "bytes=99999999999999999999-",
            "",
        ] {
            assert_eq!(range(other), at(0), "{other}");
        }
        assert_eq!(
            of("GET / HTTP/1.1\r\n\r\nRange: bytes=9-\r\n"),
            Some(("/", 0))
        );
        assert_eq!(
            of("PUT http://a/b HTTP/1.1\r\n\r\n"),
            Some(("http://a/b", 0))
        );
        for none in ["", "GET", "GET\r\n", "\r\n"] {
            assert_eq!(of(none), None, "{none:?}");
        }
    }
}
