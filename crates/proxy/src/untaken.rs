//! What a server has said and its client has not taken: kept up to a limit, so that the server is read meanwhile.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::side::Side;

/// What is kept for all clients.
static ALL_BYTES: AtomicUsize = AtomicUsize::new(0);

/// While it is more than this, little is kept for each.
const ALL_BYTES_MAX: usize = 256 << 20;

/// That little.
const SHARE_BYTES: usize = 64 << 10;

/// More of it than this is worth moving together; less is written behind it.
const PASSED_BYTES_MAX: usize = 64 << 10;

/// Answers on their way, in their order.
#[derive(Debug, Default)]
pub struct Untaken {
    bytes: Vec<u8>,
    passed: usize,
}

impl Untaken {
    /// How much there is.
    #[must_use]
    #[inline]
    pub fn count(&self) -> usize {
        self.bytes.len() - self.passed
    }

    /// Whether it is more than may be kept for a client.
    #[must_use]
    #[inline]
    pub fn is_over(&self, most: usize) -> bool {
        let count = self.count();
        count > most || count > SHARE_BYTES && ALL_BYTES.load(Ordering::Relaxed) > ALL_BYTES_MAX
    }

    /// Hands more to the client, behind what there is; what it does not take at once is kept.
    ///
    /// # Errors
    /// When the client is gone.
    pub fn hand(&mut self, mut more: &[u8], client: &Side) -> io::Result<()> {
        while self.count() == 0 && !more.is_empty() {
            match client.write_some(more)? {
                0 => break,
                count => more = &more[count..],
            }
        }
        self.bytes.extend_from_slice(more);
        ALL_BYTES.fetch_add(more.len(), Ordering::Relaxed);
        Ok(())
    }

    /// Hands over what the client takes at once.
    ///
    /// # Errors
    /// When the client is gone.
    pub fn hand_over(&mut self, client: &Side) -> io::Result<()> {
        while self.count() > 0 {
            match client.write_some(&self.bytes[self.passed..])? {
                0 => break,
                count => {
                    self.passed += count;
                    ALL_BYTES.fetch_sub(count, Ordering::Relaxed);
                }
            }
        }
        if self.count() == 0 {
            *self = Self::default(); // its memory is not needed between floods
        } else if self.passed > PASSED_BYTES_MAX && self.passed >= self.count() {
            self.bytes.drain(..self.passed);
            self.passed = 0;
        }
        Ok(())
    }
}

impl Drop for Untaken {
    fn drop(&mut self) {
        ALL_BYTES.fetch_sub(self.count(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    use crate::socket::Socket;

    use super::*;

    #[test]
    fn what_is_not_taken_is_kept_in_its_order() {
        let (own, mut other) = UnixStream::pair().unwrap();
        let client = Side::plain(Socket::Unix(own));
        client.limit_writes(Some(Duration::from_millis(1))).unwrap();
        let mut untaken = Untaken::default();
        untaken.hand(b"first", &client).unwrap();
        assert_eq!(untaken.count(), 0);
        let all: Vec<u8> = (0..3_000_000).map(|at: u32| (at >> 3) as u8).collect();
        for piece in all.chunks(70_001) {
            untaken.hand(piece, &client).unwrap();
        }
        assert!(untaken.count() > 1_000_000, "sockets hold less");
        assert!(untaken.is_over(1_000_000) && !untaken.is_over(3_000_000));
        assert_eq!(ALL_BYTES.load(Ordering::Relaxed), untaken.count());
        let mut taken = vec![0; 5];
        other.read_exact(&mut taken).unwrap();
        assert_eq!(taken, b"first");
        taken.clear();
        while taken.len() < all.len() {
            let mut piece = vec![0; 50_000];
            let count = other.read(&mut piece).unwrap();
            taken.extend_from_slice(&piece[..count]);
            untaken.hand_over(&client).unwrap();
        }
        assert!(taken == all && untaken.count() == 0);
        untaken.hand(&all, &client).unwrap();
        drop(other);
        assert!(untaken.hand_over(&client).is_err());
        drop(untaken);
        assert_eq!(ALL_BYTES.load(Ordering::Relaxed), 0);
    }
}
