//! Bytes as letters.

const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// RFC 4648, section 6, without padding; None where a letter is none of it.
pub fn from_base32(letters: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(letters.len() * 5 / 8);
    let (mut held, mut bits) = (0_u32, 0);
    for letter in letters.bytes() {
        let value = BASE32.iter().position(|it| *it == letter)?;
        held = held << 5 | value as u32;
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            bytes.push((held >> bits) as u8);
            held &= (1 << bits) - 1;
        }
    }
    Some(bytes)
}

/// The other way.
#[cfg(test)]
pub fn to_base32(bytes: &[u8]) -> String {
    letters(bytes, 5, BASE32)
}

/// RFC 4648, section 5, without padding.
pub fn to_base64(bytes: &[u8]) -> String {
    letters(bytes, 6, BASE64)
}

fn letters(bytes: &[u8], width: u32, alphabet: &[u8]) -> String {
    let mut found = String::with_capacity(bytes.len() * 8 / width as usize + 1);
    let (mut held, mut bits) = (0_u32, 0);
    for byte in bytes {
        held = held << 8 | u32::from(*byte);
        bits += 8;
        while bits >= width {
            bits -= width;
            found.push(alphabet[(held >> bits) as usize] as char);
            held &= (1 << bits) - 1;
        }
    }
    if bits > 0 {
        found.push(alphabet[(held << (width - bits)) as usize] as char);
    }
    found
}

/// CRC-16/XMODEM.
pub fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |sum, byte| {
        (0..8).fold(sum ^ u16::from(*byte) << 8, |sum: u16, _| {
            sum << 1 ^ if sum & 0x8000 == 0 { 0 } else { 0x1021 }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_standards() {
        for (plain, coded) in [
            ("", ""),
            ("f", "MY"),
            ("fo", "MZXQ"),
            ("foo", "MZXW6"),
            ("foobar", "MZXW6YTBOI"),
        ] {
            assert_eq!(to_base32(plain.as_bytes()), coded);
            assert_eq!(from_base32(coded).unwrap(), plain.as_bytes());
        }
        for (plain, coded) in [("f", "Zg"), ("fo", "Zm8"), ("foobar", "Zm9vYmFy")] {
            assert_eq!(to_base64(plain.as_bytes()), coded);
        }
        assert_eq!(to_base64(&[0xff, 0xef]), "_-8");
        assert_eq!(crc16(b"123456789"), 0x31c3);
        for wrong in ["a", "1", "=", "ü"] {
            assert_eq!(from_base32(wrong), None);
        }
    }
}
