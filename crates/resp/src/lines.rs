//! Lines, and the numbers in them.

use crate::{LINE_BYTES_MAX, Malformed, VALUE_BYTES_MAX};

/// The longest line that is a number, with its first sign and its end.
const NUMBER_BYTES_MAX: usize = 32;

/// Behind each value.
pub const END_BYTES: usize = 2;

/// A line, without its end where that is `\n` or `\r\n`, and the bytes that it takes; None where not all of it is there.
pub fn line(bytes: &[u8]) -> Result<Option<(&[u8], usize)>, Malformed> {
    within(bytes, LINE_BYTES_MAX)
}

/// A line that is a number behind its first sign, and the bytes that it takes.
pub fn number(bytes: &[u8], what: &str) -> Result<Option<(i64, usize)>, Malformed> {
    let Some((line, taken)) = within(bytes, NUMBER_BYTES_MAX)? else {
        return Ok(None);
    };
    match integer(&line[1..]).filter(|_| taken == line.len() + END_BYTES) {
        Some(value) => Ok(Some((value, taken))),
        None => Err(Malformed(format!(
            "{what}: its length is no number in a line"
        ))),
    }
}

/// A whole number as Redis writes it: no signs but a minus, no zeros before it.
pub fn integer(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let is_plain = digits == b"0" && text == digits
        || digits.first().is_some_and(|first| *first != b'0')
            && digits.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(text)
        .ok()
        .filter(|_| is_plain)?
        .parse()
        .ok()
}

/// The length of a value within limits.
pub fn value_bytes(length: i64, what: &str) -> Result<usize, Malformed> {
    match u64::try_from(length) {
        Ok(length) if length <= VALUE_BYTES_MAX => Ok(length as usize),
        _ => Err(Malformed(format!(
            "{what}: {length} bytes long; allowed are 0 to {VALUE_BYTES_MAX}"
        ))),
    }
}

fn within(bytes: &[u8], most: usize) -> Result<Option<(&[u8], usize)>, Malformed> {
    let looked = &bytes[..bytes.len().min(most)];
    match looked.iter().position(|byte| *byte == b'\n') {
        Some(end) => {
            let line = &looked[..end];
            Ok(Some((line.strip_suffix(b"\r").unwrap_or(line), end + 1)))
        }
        None if bytes.len() < most => Ok(None),
        None => Err(Malformed(format!(
            "a line: has no end within {most} bytes, which are allowed"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_where_they_end() {
        assert_eq!(line(b"PING\r\nGET"), Ok(Some((&b"PING"[..], 6))));
        assert_eq!(line(b"PING\nGET"), Ok(Some((&b"PING"[..], 5))));
        assert_eq!(line(b"\n"), Ok(Some((&b""[..], 1))));
        assert_eq!(line(b"PING\r"), Ok(None));
        assert!(line(&[b'x'; LINE_BYTES_MAX]).is_err());
        assert_eq!(line(&[b'x'; LINE_BYTES_MAX - 1]), Ok(None));
    }

    #[test]
    fn numbers_are_as_redis_writes_them() {
        assert_eq!(number(b"$12\r\nrest", "a value"), Ok(Some((12, 5))));
        assert_eq!(number(b"*-1\r\n", "a value"), Ok(Some((-1, 5))));
        assert_eq!(number(b"$12", "a value"), Ok(None));
        for wrong in [
            &b"$\r\n"[..],
            b"$+1\r\n",
            b"$01\r\n",
            b"$-0\r\n",
            b"$1 \r\n",
            b"$1\n",
            b"$0x10\r\n",
            b"$99999999999999999999\r\n",
            &[b'1'; NUMBER_BYTES_MAX],
        ] {
            let said = number(wrong, "a value").unwrap_err();
            assert!(said.0.starts_with("a "), "{said}");
        }
        assert!(value_bytes(-1, "a value").is_err());
        assert!(value_bytes(VALUE_BYTES_MAX as i64 + 1, "a value").is_err());
        assert_eq!(value_bytes(7, "a value"), Ok(7));
    }
}
