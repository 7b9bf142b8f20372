//! What a server offers under a name.

use crate::PAYLOAD_BYTES_MAX;
use crate::numbers::transmission_flag as flag;

/// Lengths and alignments of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSizes {
    /// The shortest request, of which all are multiples.
    pub least_bytes: u32,
    /// What is fastest.
    pub preferred_bytes: u32,
    /// The longest request.
    pub most_bytes: u32,
}

impl Default for BlockSizes {
    fn default() -> Self {
        Self {
            least_bytes: 1,
            preferred_bytes: 4096,
            most_bytes: PAYLOAD_BYTES_MAX,
        }
    }
}

/// An export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// By which clients ask for it, at most [`crate::TEXT_BYTES_MAX`] long. The first export of a server also answers to
    /// the empty name.
    pub name: String,
    /// A text for people; may be empty.
    pub description: String,
    /// Its size.
    pub size_bytes: u64,
    /// What it can do; see [`crate::numbers::transmission_flag`]. `SEND_DF` is not of the export but of the connection.
    pub flags: u16,
    /// Lengths and alignments of requests.
    pub block_sizes: BlockSizes,
}

impl Export {
    /// The flags that are told on a connection with or without structured replies.
    #[must_use]
    pub fn told_flags(&self, structured_replies: bool) -> u16 {
        let known = flag::HAS_FLAGS | (self.flags & !flag::SEND_DF);
        if structured_replies {
            known | flag::SEND_DF
        } else {
            known
        }
    }
}
