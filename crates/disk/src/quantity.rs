//! Sizes as people write them, by the rules of the studies' files.

use ascar_log::Fault;

/// Units of 1024 by their first letter, bare or as KiB; with a B alone, of 1000.
const LETTERS: &str = "kMGTP";

/// Bytes of a text such as `512MiB`, `10G` (1024s), `12GB` (1000s) or `4096`; a whole number before the unit.
///
/// # Errors
/// Anything else, 0, and what 64 bits cannot hold.
pub(crate) fn bytes(option: &str, text: &str) -> Result<u64, Fault> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let found = number
        .parse::<u64>()
        .ok()
        .zip(factor(unit.trim_start()))
        .and_then(|(number, factor)| number.checked_mul(factor));
    match found {
        Some(bytes) if bytes > 0 && i64::try_from(bytes).is_ok() => Ok(bytes),
        _ => Err(Fault(format!(
            "{option} = {text:?}: must be a size above 0, such as 512MiB, 10G (1024s) or 12GB (1000s)"
        ))),
    }
}

fn factor(unit: &str) -> Option<u64> {
    if matches!(unit, "" | "B") {
        return Some(1);
    }
    let mut signs = unit.chars();
    let letter = signs.next()?;
    let letter = if letter == 'K' { 'k' } else { letter };
    let power = LETTERS.find(letter)? as u32 + 1;
    match signs.as_str() {
        "" | "iB" => Some(1024_u64.pow(power)),
        "B" => Some(1000_u64.pow(power)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_a_unit_or_is_bytes() {
        for (text, expected) in [
            ("4096", 4096),
            ("4096B", 4096),
            ("64k", 64 << 10),
            ("64KiB", 64 << 10),
            ("512MiB", 512 << 20),
            ("512 MiB", 512 << 20),
            ("10G", 10 << 30),
            ("12GB", 12_000_000_000),
            ("1T", 1 << 40),
        ] {
            assert_eq!(bytes("--size", text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in [
            "", "0", "0G", "G", "-1", "1.5G", "1Gi", "1X", "9000000P", "1 é",
        ] {
            let fault = bytes("--size", text).unwrap_err();
            assert!(fault.0.starts_with("--size = "), "{text}");
        }
    }
}
