//! Which requests of a stream go on where others ended.

/// Ends that are remembered: as many files as are likely to be read or written in sequence at once.
const ENDS: usize = 16;

/// Where the latest requests of a stream ended. Sixteen streams of requests can be told apart, each in sequence.
#[derive(Clone, Copy, Debug)]
pub struct Sequences {
    /// File and offset, the oldest first. Nothing begins at (0, 0): a request that goes on does so behind a byte.
    ends: [(u32, u64); ENDS],
}

impl Default for Sequences {
    fn default() -> Self {
        Self {
            ends: [(0, 0); ENDS],
        }
    }
}

impl Sequences {
    /// A request of so many bytes of a file (or of a device: any one number) is sent; whether it goes on where one of
    /// the latest ended.
    pub fn on_send(&mut self, file: u32, offset_bytes: u64, bytes: u32) -> bool {
        let begins = (file, offset_bytes);
        let known = self.ends.iter().position(|end| *end == begins);
        let known = known.filter(|_| offset_bytes > 0);
        self.ends[known.unwrap_or(0)..].rotate_left(1);
        self.ends[ENDS - 1] = (file, offset_bytes.saturating_add(u64::from(bytes)));
        known.is_some()
    }
}
