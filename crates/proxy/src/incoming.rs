//! What has come from one side and was not passed on: one buffer a direction, which a piece of a header outlasts.

use std::io;
use std::ops::Range;

use crate::side::Side;
use crate::splicing::{LENGTH_BYTES_MIN, SHORT_BYTES};

/// The memory for what passes in one direction, and so the longest head of a message.
pub const HEAD_BYTES_MAX: usize = 64 << 10;

/// The bytes of one direction of a connection.
#[derive(Debug)]
pub struct Incoming {
    buffer: Box<[u8]>,
    /// Where what was not passed on begins.
    start: usize,
    end: usize,
    /// Data of the last message that is still to come.
    payload_left: usize,
    /// Whether the last payload was long.
    reads_short: bool,
}

impl Incoming {
    /// Nothing has come.
    #[must_use]
    pub fn new() -> Self {
        Self {
            buffer: vec![0; HEAD_BYTES_MAX].into(),
            start: 0,
            end: 0,
            payload_left: 0,
            reads_short: false,
        }
    }

    /// Reads what has come; false at the end.
    ///
    /// # Errors
    /// When the side is broken, or silent for as long as its reads may wait.
    pub fn fill(&mut self, from: &Side) -> io::Result<bool> {
        // A piece of a header is left over at most.
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        // Where payloads are long, what is read here is copied in vain: the next header is enough.
        let room = if self.reads_short {
            self.end + SHORT_BYTES
        } else {
            self.buffer.len()
        };
        debug_assert!(room > self.end, "a head is longer than any");
        let count = from.read(&mut self.buffer[self.end..room])?;
        self.reads_short = false;
        self.end += count;
        Ok(count > 0)
    }

    /// Where the first message begins that was not passed on.
    #[must_use]
    #[inline]
    pub fn start(&self) -> usize {
        self.start
    }

    /// What has come from a place on.
    #[must_use]
    #[inline]
    pub fn from(&self, at: usize) -> &[u8] {
        &self.buffer[at..self.end]
    }

    /// What may be passed on up to a place.
    #[must_use]
    #[inline]
    pub fn until(&self, at: usize) -> &[u8] {
        &self.buffer[self.start..at]
    }

    /// Takes out some of what has come behind a place: they are not passed on.
    pub fn cut(&mut self, at: usize, range: Range<usize>) {
        let (start, end) = (at + range.start, at + range.end);
        self.buffer.copy_within(end..self.end, start);
        self.end -= end - start;
    }

    /// So many bytes were passed on.
    #[inline]
    pub fn pass(&mut self, count: usize) {
        self.start += count;
    }

    /// Behind all that has come, where no data is waited for any more: what follows is not looked at.
    pub fn pass_all(&mut self) -> usize {
        self.payload_left = 0;
        self.end
    }

    /// Whether nothing has come behind a place.
    #[must_use]
    #[inline]
    pub fn ends_at(&self, at: usize) -> bool {
        at == self.end
    }

    /// Data follows a header.
    #[inline]
    pub fn expect_payload(&mut self, count: usize) {
        self.payload_left = count;
    }

    /// Data of the last message that is still to come.
    #[must_use]
    #[inline]
    pub fn payload_left(&self) -> usize {
        self.payload_left
    }

    /// Behind the data of the last message, as far as it has come.
    #[inline]
    pub fn skip_payload(&mut self, at: usize) -> usize {
        let here = self.payload_left.min(self.end - at);
        self.payload_left -= here;
        at + here
    }

    /// Whether all that has come was passed on, and much of a payload is to follow.
    #[must_use]
    #[inline]
    pub fn awaits_long_payload(&self) -> bool {
        self.start == self.end && self.payload_left >= LENGTH_BYTES_MIN
    }

    /// The payload has passed by another way.
    pub fn on_spliced(&mut self) {
        self.payload_left = 0;
        self.reads_short = true;
    }
}

impl Default for Incoming {
    fn default() -> Self {
        Self::new()
    }
}
