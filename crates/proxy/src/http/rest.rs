//! What of a body is still to come, on either side. Long ones are told in pieces, so that what has passed is counted
//! while they pass.

use ascar_http::{Body, Chunks, Refusal};

use crate::protocol::Piece;

/// The data of a piece that need not be at hand.
const PIECE_BYTES_MAX: u64 = 1 << 20;

/// What of a body is to come, besides the pieces that were told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// So many bytes; 0: it is over.
    Bytes(u64),
    /// So many bytes of a chunk, and what follows it.
    Chunks(Chunks, u64),
    /// All that comes until the connection ends.
    UntilClose,
}

/// The next piece of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its bytes.
    pub piece: Piece,
    /// The data among them.
    pub data_bytes: u64,
    /// What follows it.
    pub rest: Rest,
}

impl Default for Rest {
    /// Nothing.
    fn default() -> Self {
        Self::Bytes(0)
    }
}

impl Rest {
    /// Whether nothing is to come.
    pub fn is_over(self) -> bool {
        self == Self::Bytes(0)
    }

    /// The piece at the beginning of these bytes, of which there is one at least; None where more must come.
    ///
    /// # Errors
    /// Where they are no chunk.
    pub fn next(self, bytes: &[u8]) -> Result<Option<Found>, Refusal> {
        Ok(match self {
            Self::Bytes(left) => Some(Found::data(bytes, left, Self::Bytes)),
            Self::Chunks(mut chunks, 0) => chunks.next(bytes)?.map(|line| {
                let of_chunk = |left| match line.is_last {
                    true => Self::Bytes(0),
                    false => Self::Chunks(chunks, left),
                };
                Found::behind(line.bytes, line.data_bytes, of_chunk)
            }),
            Self::Chunks(chunks, left) => {
                Some(Found::data(bytes, left, |left| Self::Chunks(chunks, left)))
            }
            Self::UntilClose => Some(Found {
                piece: Piece {
                    head_bytes: bytes.len(),
                    body_bytes: 0,
                },
                data_bytes: bytes.len() as u64,
                rest: Self::UntilClose,
            }),
        })
    }
}

impl Found {
    /// A head, and as much of its body as is told at once.
    pub fn begun(head_bytes: usize, body: Body) -> Self {
        match body {
            Body::Bytes(count) => Self::behind(head_bytes, count, Rest::Bytes),
            Body::Chunked => Self::behind(head_bytes, 0, |_| Rest::Chunks(Chunks::default(), 0)),
            Body::UntilClose => Self::behind(head_bytes, 0, |_| Rest::UntilClose),
        }
    }

    /// Bytes that are no data, and as much of the data behind them as is told at once.
    fn behind(head_bytes: usize, data_bytes: u64, rest: impl FnOnce(u64) -> Rest) -> Self {
        let told_bytes = data_bytes.min(PIECE_BYTES_MAX);
        Self {
            piece: Piece {
                head_bytes,
                body_bytes: told_bytes as usize,
            },
            data_bytes: told_bytes,
            rest: rest(data_bytes - told_bytes),
        }
    }

    /// Data that goes on with these bytes.
    fn data(bytes: &[u8], left: u64, rest: impl FnOnce(u64) -> Rest) -> Self {
        let here_bytes = left.min(bytes.len() as u64);
        let found = Self::behind(here_bytes as usize, left - here_bytes, rest);
        Self {
            data_bytes: here_bytes + found.data_bytes,
            ..found
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The data of all pieces of a message whose first one is this; `bytes` is what follows its head.
    fn passed(mut found: Found, mut bytes: &[u8], at_hand: usize) -> u64 {
        let mut data_bytes = 0;
        let mut left = found.piece.body_bytes;
        loop {
            data_bytes += found.data_bytes;
            bytes = &bytes[left..];
            if found.rest.is_over() {
                assert!(bytes.is_empty());
                return data_bytes;
            }
            let here = &bytes[..at_hand.min(bytes.len())];
            found = found.rest.next(here).unwrap().expect("a piece");
            assert!(found.piece.head_bytes > 0 && found.piece.head_bytes <= here.len());
            left = found.piece.head_bytes + found.piece.body_bytes;
        }
    }

    #[test]
    fn long_bodies_come_in_pieces() {
        for count in [
            0,
            1,
            PIECE_BYTES_MAX,
            PIECE_BYTES_MAX + 1,
            3 * PIECE_BYTES_MAX + 700,
        ] {
            let body = vec![0; count as usize];
            for at_hand in [1, 512, 64 << 10] {
                let found = Found::begun(10, Body::Bytes(count));
                assert_eq!(passed(found, &body, at_hand), count);
            }
            if count > 0 {
                let chunk = [format!("{count:x}\r\n").as_bytes(), &body, b"\r\n0\r\n\r\n"].concat();
                let found = Found::begun(10, Body::Chunked);
                assert_eq!(passed(found, &chunk, 512), count);
            }
        }
    }

    #[test]
    fn what_ends_with_the_connection_passes_as_it_comes() {
        let found = Found::begun(10, Body::UntilClose);
        assert_eq!((found.piece.body_bytes, found.rest), (0, Rest::UntilClose));
        let next = found.rest.next(b"abc").unwrap().unwrap();
        assert_eq!((next.piece.head_bytes, next.data_bytes), (3, 3));
        assert!(!next.rest.is_over());
    }
}
