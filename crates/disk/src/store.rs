//! The data: the medium, a file or memory, and beside it what lies in the disk's cache.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex};

use ascar_log::Fault;
use ascar_nbd::ErrorCode;

use crate::held::Cache;
use crate::memory::Share;
use crate::{LOG, locked};

/// Zeroes are written so many at a time, where no hole can be made.
static ZEROES: [u8; 64 << 10] = [0; 64 << 10];

/// What a write brings.
#[derive(Debug)]
pub(crate) enum Data {
    /// Bytes, with their share of the server's memory.
    Bytes {
        /// The bytes.
        bytes: Vec<u8>,
        /// Given back with them.
        share: Share,
    },
    /// Zeroes.
    Zeroes {
        /// How many.
        count: u64,
        /// Whether a hole may stand for them.
        may_be_hole: bool,
    },
}

/// A write.
#[derive(Debug)]
pub(crate) struct Change {
    /// Where, on the disk.
    pub(crate) position: u64,
    /// What.
    pub(crate) data: Data,
    /// How often power had been cut before it came.
    pub(crate) cuts: u64,
    /// It is answered only when it is on the medium.
    pub(crate) fua: bool,
}

impl Change {
    /// From where to where.
    pub(crate) fn range(&self) -> Range<u64> {
        let count = match &self.data {
            Data::Bytes { bytes, .. } => bytes.len() as u64,
            Data::Zeroes { count, .. } => *count,
        };
        self.position..self.position + count
    }
}

/// What came after what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    /// A write's number.
    pub(crate) number: u64,
    /// The lowest number of a write that is still under way, this one included; later orders have none below it.
    pub(crate) oldest: u64,
}

impl Turn {
    /// Of a write that could not be written in its turn.
    pub(crate) fn again(number: u64) -> Self {
        Self { number, oldest: 0 }
    }
}

/// What is protected by one lock.
#[derive(Debug, Default)]
struct Volatile {
    cache: Cache,
    cuts: u64,
    /// Why the cache takes nothing, where it does not.
    refusal: Option<ErrorCode>,
}

/// The medium and the cache.
#[derive(Debug)]
pub(crate) struct Store {
    medium: File,
    in_memory: bool,
    volatile: Mutex<Volatile>,
    /// Held while the medium is written, so that a power cut and an end find no write half way.
    writing: Mutex<()>,
    /// Why what was written may not last, where that has been told.
    failure: Mutex<Option<i32>>,
}

impl Store {
    /// A medium in memory, which takes what is written of it.
    ///
    /// # Errors
    /// When the kernel gives none of this size.
    pub(crate) fn in_memory(size_bytes: u64) -> Result<Self, Fault> {
        let made = anonymous().and_then(|file| file.set_len(size_bytes).map(|()| file));
        let medium =
            made.map_err(|error| Fault(format!("--size: memory of {size_bytes} bytes: {error}")))?;
        Ok(Self::of(medium, true))
    }

    /// A medium in a file.
    pub(crate) fn in_file(file: File) -> Self {
        Self::of(file, false)
    }

    fn of(medium: File, in_memory: bool) -> Self {
        Self {
            medium,
            in_memory,
            volatile: Mutex::default(),
            writing: Mutex::default(),
            failure: Mutex::default(),
        }
    }

    /// How often power has been cut.
    pub(crate) fn cuts(&self) -> u64 {
        locked(&self.volatile).cuts
    }

    /// Reads what was written last, wherever it lies.
    ///
    /// # Errors
    /// The medium's.
    pub(crate) fn read(&self, position: u64, buffer: &mut [u8]) -> io::Result<()> {
        let range = position..position + buffer.len() as u64;
        // Before the medium is read: what leaves the cache meanwhile is on the medium then.
        let held = locked(&self.volatile).cache.touching(&range);
        self.medium.read_exact_at(buffer, position)?;
        for write in held {
            write.lay_over(position, buffer);
        }
        Ok(())
    }

    /// Takes a write into the cache, to be acknowledged. Numbers tell what came after what.
    ///
    /// # Errors
    /// That power has been cut since it came, and that what is in the cache cannot be written.
    pub(crate) fn hold(&self, number: u64, change: Arc<Change>) -> Result<(), ErrorCode> {
        let mut volatile = locked(&self.volatile);
        if change.cuts != volatile.cuts {
            return Err(ErrorCode::InputOutput);
        }
        if let Some(code) = volatile.refusal {
            return Err(code);
        }
        volatile.cache.hold(number, change);
        Ok(())
    }

    /// A write in the cache cannot be written: no other is taken. Its memory is free for those that are told so: what
    /// can be kept like this is no more than all of the memory.
    pub(crate) fn refuse_for(&self, number: u64, code: ErrorCode) {
        let mut volatile = locked(&self.volatile);
        volatile.refusal = Some(code);
        if let Some(held) = volatile.cache.get(number)
            && let Data::Bytes { share, .. } = &held.change.data
        {
            share.give_back();
        }
    }

    /// All could be written.
    pub(crate) fn refuse_no_more(&self) {
        locked(&self.volatile).refusal = None;
    }

    /// Puts a write that lies in the cache on the medium. One that power took is none.
    ///
    /// # Errors
    /// The medium's; the write stays in the cache.
    pub(crate) fn land(&self, turn: Turn) -> io::Result<()> {
        let _writing = locked(&self.writing);
        let Some(held) = locked(&self.volatile).cache.get(turn.number) else {
            return Ok(());
        };
        for part in &held.parts {
            self.write(&held.change, part)?;
        }
        let range = held.change.range();
        locked(&self.volatile).cache.landed(turn, &range);
        Ok(())
    }

    /// Puts a write on the medium that never lay in the cache, but for what a later one has put there before.
    ///
    /// # Errors
    /// The medium's, and that power has been cut since the write came.
    pub(crate) fn put(&self, turn: Turn, change: &Change) -> io::Result<()> {
        let _writing = locked(&self.writing);
        self.powered_since(change.cuts)?;
        let range = change.range();
        let parts = locked(&self.volatile).cache.missing(turn.number, &range);
        for part in &parts {
            self.write(change, part)?;
        }
        locked(&self.volatile).cache.landed(turn, &range);
        Ok(())
    }

    /// Whether power has stayed on since it had been cut so often.
    ///
    /// # Errors
    /// Where it has not.
    pub(crate) fn powered_since(&self, cuts: u64) -> io::Result<()> {
        if self.cuts() == cuts {
            return Ok(());
        }
        Err(io::Error::other("power has been cut"))
    }

    fn write(&self, change: &Change, part: &Range<u64>) -> io::Result<()> {
        match &change.data {
            Data::Bytes { bytes, .. } => {
                let from = (part.start - change.position) as usize;
                let to = (part.end - change.position) as usize;
                self.medium.write_all_at(&bytes[from..to], part.start)
            }
            Data::Zeroes { may_be_hole, .. } => {
                if *may_be_hole && self.punch(part).is_ok() {
                    return Ok(());
                }
                let mut at = part.start;
                while at < part.end {
                    let count = (part.end - at).min(ZEROES.len() as u64);
                    self.medium.write_all_at(&ZEROES[..count as usize], at)?;
                    at += count;
                }
                Ok(())
            }
        }
    }

    /// Gives back the room of data that nobody needs, unless power has been cut since that was said. It is none of the
    /// errors that this cannot be done.
    pub(crate) fn trim(&self, range: &Range<u64>, cuts: u64) {
        let _writing = locked(&self.writing);
        if self.powered_since(cuts).is_ok() {
            let _ = self.punch(range);
        }
    }

    fn punch(&self, range: &Range<u64>) -> io::Result<()> {
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        let (offset, length) = (range.start as i64, (range.end - range.start) as i64);
        // SAFETY: the descriptor is open, and the call takes integers.
        if unsafe { libc::fallocate(self.medium.as_raw_fd(), mode, offset, length) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// What is on the medium outlasts this machine.
    ///
    /// # Errors
    /// The medium's, for good: the kernel tells once what it could not write, and may have forgotten the data
    /// (Rebello et al., "Can applications recover from fsync failures?", USENIX ATC 2020).
    pub(crate) fn sync(&self) -> io::Result<()> {
        if self.in_memory {
            return Ok(());
        }
        let mut failure = locked(&self.failure);
        if let Some(code) = *failure {
            return Err(io::Error::from_raw_os_error(code));
        }
        self.medium.sync_data().inspect_err(|error| {
            LOG.line(format_args!(
                "the file cannot be synchronised, and data may be lost; all flushes fail from now on: {error}"
            ));
            *failure = Some(error.raw_os_error().unwrap_or(libc::EIO));
        })
    }

    /// Power is cut: the cache is lost.
    pub(crate) fn cut(&self) {
        let _writing = locked(&self.writing);
        let mut volatile = locked(&self.volatile);
        volatile.cuts += 1;
        volatile.cache.clear();
        volatile.refusal = None;
    }

    /// An orderly end: all of the cache goes to the medium that can.
    ///
    /// # Errors
    /// The medium's first.
    pub(crate) fn settle(&self) -> io::Result<()> {
        let numbers = locked(&self.volatile).cache.numbers();
        let landed: Vec<_> = numbers
            .into_iter()
            .map(|number| self.land(Turn::again(number)))
            .collect();
        let synced = self.sync();
        landed.into_iter().collect::<io::Result<()>>()?;
        synced
    }
}

/// A file that has no name and lies in memory.
fn anonymous() -> io::Result<File> {
    // SAFETY: the name ends with a zero; the descriptor that comes back is nobody else's.
    unsafe {
        let descriptor = libc::memfd_create(c"ascard-disk".as_ptr(), libc::MFD_CLOEXEC);
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(File::from_raw_fd(descriptor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Memory;

    fn change(position: u64, bytes: &[u8], cuts: u64) -> Arc<Change> {
        Arc::new(Change {
            position,
            data: Data::Bytes {
                bytes: bytes.to_vec(),
                share: Memory::new(0).share(),
            },
            cuts,
            fua: false,
        })
    }

    /// The turn of a write beside which no other is under way.
    fn alone(number: u64) -> Turn {
        Turn {
            number,
            oldest: number,
        }
    }

    fn read(store: &Store, position: u64, count: usize) -> Vec<u8> {
        let mut buffer = vec![0xff; count];
        store.read(position, &mut buffer).unwrap();
        buffer
    }

    #[test]
    fn what_is_read_is_what_was_written_last_wherever_it_lies() {
        let store = Store::in_memory(1 << 20).unwrap();
        store.put(alone(1), &change(0, b"aaaaaaaa", 0)).unwrap();
        store.hold(2, change(2, b"bbbb", 0)).unwrap();
        store.hold(3, change(4, b"cccc", 0)).unwrap();
        assert_eq!(read(&store, 0, 10), b"aabbcccc\0\0");
        // The later one reaches the medium first, and is not written over.
        store.land(alone(3)).unwrap();
        assert_eq!(read(&store, 0, 10), b"aabbcccc\0\0");
        store.land(alone(2)).unwrap();
        assert_eq!(read(&store, 0, 10), b"aabbcccc\0\0");
        store.cut();
        assert_eq!(read(&store, 0, 10), b"aabbcccc\0\0");
    }

    #[test]
    fn what_came_before_is_not_put_over_what_came_later() {
        let store = Store::in_memory(1 << 20).unwrap();
        let (number, oldest) = (3, 1);
        let later = change(2, b"bbbb", 0);
        store.put(Turn { number, oldest }, &later).unwrap();
        let number = 2;
        let earlier = change(0, b"aaaaaaaa", 0);
        store.put(Turn { number, oldest }, &earlier).unwrap();
        assert_eq!(read(&store, 0, 9), b"aabbbbaa\0");
        store.hold(1, change(4, b"cccccc", 0)).unwrap();
        assert_eq!(read(&store, 0, 11), b"aabbbbaacc\0");
        store.land(alone(1)).unwrap();
        assert_eq!(read(&store, 0, 11), b"aabbbbaacc\0");
        store.put(alone(4), &change(0, b"dddd", 0)).unwrap();
        assert_eq!(read(&store, 0, 6), b"ddddbb");
    }

    #[test]
    fn a_power_cut_takes_the_cache_and_what_comes_too_late() {
        let store = Store::in_memory(1 << 20).unwrap();
        store.put(alone(1), &change(0, b"old", 0)).unwrap();
        store.hold(2, change(0, b"new", 0)).unwrap();
        store.cut();
        assert_eq!(read(&store, 0, 3), b"old");
        store.land(alone(2)).unwrap();
        store.put(alone(3), &change(0, b"new", 0)).unwrap_err();
        store.hold(4, change(0, b"new", 0)).unwrap_err();
        assert_eq!(read(&store, 0, 3), b"old");
        store.hold(5, change(0, b"new", 1)).unwrap();
        store.settle().unwrap();
        store.cut();
        assert_eq!(read(&store, 0, 3), b"new");
    }

    #[test]
    fn an_end_writes_what_can_be_written() {
        let store = Store::in_memory(1 << 20).unwrap();
        // No file takes what is so far out.
        store.hold(1, change(1 << 63, b"lost", 0)).unwrap();
        store.hold(2, change(0, b"kept", 0)).unwrap();
        store.settle().unwrap_err();
        store.cut();
        assert_eq!(read(&store, 0, 4), b"kept");
    }

    #[test]
    fn what_could_not_be_synchronised_once_never_is() {
        let zeroes = File::options().read(true).write(true).open("/dev/zero");
        let mut store = Store::of(zeroes.unwrap(), false);
        store.put(alone(1), &change(0, b"data", 0)).unwrap();
        let first = store.sync().unwrap_err().raw_os_error();
        store.medium = anonymous().unwrap();
        assert_eq!(store.sync().unwrap_err().raw_os_error(), first);
        store.settle().unwrap_err();
    }

    #[test]
    fn zeroes_are_written_with_and_without_holes() {
        let store = Store::in_memory(1 << 20).unwrap();
        for may_be_hole in [true, false] {
            store.put(alone(1), &change(0, &[7; 200_000], 0)).unwrap();
            let zeroes = Change {
                position: 10,
                data: Data::Zeroes {
                    count: 150_000,
                    may_be_hole,
                },
                cuts: 0,
                fua: false,
            };
            store.hold(2, Arc::new(zeroes)).unwrap();
            for _ in 0..2 {
                let found = read(&store, 0, 200_000);
                let is_zero = |at: usize| (10..150_010).contains(&at);
                assert!((0..200_000).all(|at| (found[at] == 0) == is_zero(at)));
                store.land(alone(2)).unwrap();
            }
        }
        store.trim(&(0..4096), 0);
        assert_eq!(read(&store, 0, 1), b"\0");
        store.put(alone(3), &change(0, b"later", 0)).unwrap();
        store.cut();
        store.trim(&(0..4096), 0);
        assert_eq!(read(&store, 0, 5), b"later");
    }
}
