//! Which requests of a stream go on where others ended.

/// Ends that are remembered: as many files as are likely to be read or written in sequence at once.
const ENDS: usize = 16;

/// Where the latest requests of a stream ended. Sixteen streams of requests can be told apart, each in sequence.
#[derive(Clone, Copy, Debug)]
pub struct Sequences {
    ends: [(u32, u64); ENDS],
    oldest: usize,
}

impl Default for Sequences {
    fn default() -> Self {
        Self {
            // Nothing begins there: a request has a byte at least, so none ends at zero.
            ends: [(0, 0); ENDS],
            oldest: 0,
        }
    }
}

impl Sequences {
    /// A request of so many bytes of a file (or of a device: any one number) is sent; whether it goes on where one of
    /// the latest ended.
    pub fn on_send(&mut self, file: u32, offset_bytes: u64, bytes: u32) -> bool {
        let end = (file, offset_bytes.saturating_add(u64::from(bytes)));
        let begins = (file, offset_bytes);
        match self.ends.iter().position(|known| *known == begins) {
            Some(at) if offset_bytes > 0 => {
                self.ends[at] = end;
                true
            }
            _ => {
                self.ends[self.oldest] = end;
                self.oldest = (self.oldest + 1) % ENDS;
                false
            }
        }
    }
}
