//! Numbers and texts in a row, big-endian.

use crate::parsed::{Malformed, Parsed};

/// Fields that are read one after another. What is lacking reads as zero, and [`Fields::is_whole`] tells it afterwards.
#[derive(Clone, Debug)]
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
    lacking: bool,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes,
            lacking: false,
        }
    }

    pub(crate) fn bytes(&mut self, count: usize) -> &'a [u8] {
        if let Some((taken, rest)) = self.rest.split_at_checked(count) {
            self.rest = rest;
            return taken;
        }
        self.lacking = true;
        std::mem::take(&mut self.rest)
    }

    fn number<const N: usize>(&mut self) -> [u8; N] {
        self.bytes(N).try_into().unwrap_or([0; N])
    }

    pub(crate) fn u16(&mut self) -> u16 {
        u16::from_be_bytes(self.number())
    }

    pub(crate) fn u32(&mut self) -> u32 {
        u32::from_be_bytes(self.number())
    }

    pub(crate) fn u64(&mut self) -> u64 {
        u64::from_be_bytes(self.number())
    }

    /// All that is left.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    /// Whether every field was there, and nothing besides.
    pub(crate) fn is_whole(&self) -> bool {
        !self.lacking && self.rest.is_empty()
    }

    /// How many bytes are left.
    pub(crate) fn left(&self) -> usize {
        self.rest.len()
    }
}

/// A header of a known length, once all of it is there.
///
/// # Errors
/// Those of `read`.
pub(crate) fn header<T>(
    bytes: &[u8],
    length: usize,
    read: impl FnOnce(&mut Fields<'_>) -> Result<T, Malformed>,
) -> Result<Parsed<T>, Malformed> {
    let Some(whole) = bytes.get(..length) else {
        return Ok(Parsed::Needs {
            more_bytes: length - bytes.len(),
        });
    };
    read(&mut Fields::new(whole)).map(|value| Parsed::Found {
        value,
        consumed_bytes: length,
    })
}
