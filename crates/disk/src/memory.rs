//! Memory for data of writes: taken piece by piece as data comes in, given back when it is on the medium.

use std::io::{self, Read};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use crate::locked;

/// Data comes in such pieces. All clients that are let in cannot take all of the memory by asking for one each.
const PIECE_BYTES: usize = 64 << 10;

/// Memory that all clients share.
///
/// One of them at a time may have a reserve, which is enough for any request: where all else is taken by data that has
/// come in half, at least one comes in whole.
#[derive(Debug)]
pub(crate) struct Memory {
    left: Mutex<Left>,
    more: Condvar,
}

#[derive(Debug)]
struct Left {
    bytes: u64,
    reserve: bool,
}

/// A share of it; letting go of it gives it back.
#[derive(Debug)]
pub(crate) struct Share {
    of: Arc<Memory>,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    bytes: u64,
    reserve: bool,
}

impl Memory {
    /// Memory of which nothing is taken, beside the reserve.
    pub(crate) fn new(bytes: u64) -> Arc<Self> {
        Arc::new(Self {
            left: Mutex::new(Left {
                bytes,
                reserve: true,
            }),
            more: Condvar::new(),
        })
    }

    /// A share of nothing.
    pub(crate) fn share(self: &Arc<Self>) -> Share {
        Share {
            of: self.clone(),
            taken: Mutex::default(),
        }
    }

    /// Reads so many bytes. Where there is no memory, it waits, and so does who sends them.
    ///
    /// # Errors
    /// The input's; that it ends before; and that it lets wait for longer than `patience`, all in all.
    pub(crate) fn receive(
        self: &Arc<Self>,
        input: &mut impl Read,
        count: usize,
        patience: Duration,
    ) -> io::Result<(Vec<u8>, Share)> {
        let share = self.share();
        let mut bytes = Vec::with_capacity(count);
        let mut left = patience;
        while bytes.len() < count {
            let begin = bytes.len();
            let end = count.min(begin + PIECE_BYTES);
            share.grow((end - begin) as u64);
            bytes.resize(end, 0);
            let begun = Instant::now();
            fill(input, &mut bytes[begin..], begun + left)?;
            left = left.saturating_sub(begun.elapsed());
        }
        Ok((bytes, share))
    }
}

fn fill(input: &mut impl Read, mut buffer: &mut [u8], until: Instant) -> io::Result<()> {
    while !buffer.is_empty() {
        match input.read(buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => buffer = &mut buffer[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if !buffer.is_empty() && Instant::now() > until {
            return Err(io::ErrorKind::TimedOut.into());
        }
    }
    Ok(())
}

impl Share {
    /// Takes more, once there is some. With the reserve, all that a request needs is taken.
    fn grow(&self, more_bytes: u64) {
        let mut taken = locked(&self.taken);
        if taken.reserve {
            return;
        }
        let mut left = locked(&self.of.left);
        while left.bytes < more_bytes && !left.reserve {
            let waited = self.of.more.wait(left);
            left = waited.unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        if left.bytes >= more_bytes {
            left.bytes -= more_bytes;
            taken.bytes += more_bytes;
        } else {
            left.reserve = false;
            taken.reserve = true;
        }
    }

    /// Gives it back before the data is let go of.
    pub(crate) fn give_back(&self) {
        let taken = std::mem::take(&mut *locked(&self.taken));
        let mut left = locked(&self.of.left);
        left.bytes += taken.bytes;
        left.reserve |= taken.reserve;
        drop(left);
        self.of.more.notify_all();
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.give_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    /// Gives a byte at a time, and takes its time for each.
    struct Trickle(Duration);

    impl Read for Trickle {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            std::thread::sleep(self.0);
            buffer[0] = 1;
            Ok(1)
        }
    }

    #[test]
    fn one_comes_in_whole_where_all_have_come_in_half() {
        let memory = Memory::new(3 * PIECE_BYTES as u64);
        let halves: Vec<Share> = (0..3).map(|_| memory.share()).collect();
        halves
            .iter()
            .for_each(|share| share.grow(PIECE_BYTES as u64));
        let count = 5 * PIECE_BYTES;
        let (bytes, share) = memory.receive(&mut io::repeat(7), count, PATIENCE).unwrap();
        assert_eq!(bytes, vec![7; count]);
        let late = std::thread::spawn({
            let memory = memory.clone();
            move || drop(memory.receive(&mut io::repeat(7), count, PATIENCE))
        });
        std::thread::sleep(Duration::from_millis(20));
        assert!(!late.is_finished());
        drop(share);
        late.join().unwrap();
        halves.iter().for_each(Share::give_back);
        drop(halves);
        let left = locked(&memory.left);
        assert_eq!(left.bytes, 3 * PIECE_BYTES as u64);
        assert!(left.reserve);
    }

    #[test]
    fn who_sends_a_byte_now_and_then_is_not_waited_for_for_ever() {
        let memory = Memory::new(1 << 20);
        let mut slow = Trickle(Duration::from_millis(2));
        let begun = Instant::now();
        let error = memory
            .receive(&mut slow, 1 << 20, Duration::from_millis(40))
            .unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(begun.elapsed() < Duration::from_secs(5));
        assert_eq!(locked(&memory.left).bytes, 1 << 20);
        let mut none = io::empty();
        assert!(memory.receive(&mut none, 1, PATIENCE).is_err());
        assert!(memory.receive(&mut none, 0, PATIENCE).is_ok());
    }
}
