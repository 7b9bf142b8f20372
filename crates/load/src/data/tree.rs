//! Which files of a set exist and who uses them, shared by all threads without a lock on the way of reads.
//!
//! Each file has one state word: absent, busy (being made or removed), or present with a count of users. A file
//! with users is never removed, a file is made or removed by one thread only, and none is ever lost: every way
//! out of busy leads to absent or present.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use ascar_random::{below, mix};

use crate::data::layout::Layout;
use crate::futex;

const ABSENT: u32 = 0;
const PRESENT: u32 = 1;
const BUSY: u32 = u32::MAX;
/// The size of a file that an earlier run may have changed.
pub const UNKNOWN_BYTES: u64 = u64::MAX;
/// Random tries before a search in order: at 20% hits, one pick in 10^6 needs the search.
const TRIES: u64 = 64;

/// A file set while a load runs.
pub struct Tree {
    /// Name of the set.
    pub name: String,
    /// Directories, paths and sizes.
    pub layout: Layout,
    root: OwnedFd,
    /// Whether files come and go; without, states are not touched by picks.
    tracked: bool,
    states: Vec<AtomicU32>,
    /// Present size of each file, or [`UNKNOWN_BYTES`].
    pub size_bytes: Vec<AtomicU64>,
    present: AtomicUsize,
    absent: Mutex<Vec<u32>>,
    /// Counts changes, for those who wait for one.
    changes: AtomicU32,
    waiting: AtomicU32,
}

impl Tree {
    /// A tree whose files exist as told. `tracked` says whether files will come and go.
    #[must_use]
    pub fn new(
        name: &str,
        layout: Layout,
        root: OwnedFd,
        exists: &[bool],
        tracked: bool,
        sizes_known: bool,
    ) -> Tree {
        let size_of = |(place, exists): (usize, &bool)| match (exists, sizes_known) {
            (false, _) => 0,
            (true, true) => layout.size_bytes[place],
            (true, false) => UNKNOWN_BYTES,
        };
        let absent: Vec<u32> = (0u32..)
            .zip(exists)
            .filter(|(_, exists)| !**exists)
            .map(|(entry, _)| entry)
            .collect();
        Tree {
            name: name.to_owned(),
            root,
            tracked: tracked || !absent.is_empty(),
            states: exists
                .iter()
                .map(|exists| AtomicU32::new(if *exists { PRESENT } else { ABSENT }))
                .collect(),
            size_bytes: exists
                .iter()
                .enumerate()
                .map(size_of)
                .map(AtomicU64::new)
                .collect(),
            present: AtomicUsize::new(exists.len() - absent.len()),
            absent: Mutex::new(absent),
            changes: AtomicU32::new(0),
            waiting: AtomicU32::new(0),
            layout,
        }
    }

    /// The set's own directory.
    #[must_use]
    pub fn root(&self) -> RawFd {
        self.root.as_raw_fd()
    }

    /// Entries of the set, present or not.
    #[must_use]
    pub fn entries(&self) -> u32 {
        self.states.len() as u32
    }

    /// Files that exist now.
    pub fn present(&self) -> usize {
        self.present.load(Ordering::Relaxed)
    }

    /// A present file chosen at random, which the caller now uses: it cannot be removed until released.
    #[inline]
    pub fn pick(&self, draw: u64) -> Option<u32> {
        let entries = self.states.len() as u64;
        if !self.tracked {
            return Some(below(draw, entries) as u32);
        }
        self.search(draw, |entry| self.acquire(entry))
    }

    /// Use this very file, if it is present.
    #[inline]
    pub fn acquire(&self, entry: u32) -> bool {
        if !self.tracked {
            return true;
        }
        let state = &self.states[entry as usize];
        let mut seen = state.load(Ordering::Relaxed);
        while (PRESENT..BUSY - 1).contains(&seen) {
            match state.compare_exchange_weak(seen, seen + 1, Ordering::Acquire, Ordering::Relaxed)
            {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    /// End the use of a file.
    #[inline]
    pub fn release(&self, entry: u32) {
        if self.tracked {
            let before = self.states[entry as usize].fetch_sub(1, Ordering::Release);
            debug_assert!(
                before > PRESENT && before < BUSY,
                "released a file that nobody used"
            );
            if before == PRESENT + 1 {
                self.changed();
            }
        }
    }

    /// A present file without users, chosen at random, which the caller alone may now remove.
    pub fn pick_to_delete(&self, draw: u64) -> Option<u32> {
        debug_assert!(self.tracked);
        self.search(draw, |entry| self.take(entry, PRESENT))
    }

    /// Take a file that only the caller uses, to remove it.
    pub fn take_used(&self, entry: u32) -> bool {
        self.take(entry, PRESENT + 1)
    }

    fn take(&self, entry: u32, state: u32) -> bool {
        self.states[entry as usize]
            .compare_exchange(state, BUSY, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// A removal is done: the file taken to delete is absent.
    pub fn deleted(&self, entry: u32) {
        self.size_bytes[entry as usize].store(0, Ordering::Relaxed);
        self.states[entry as usize].store(ABSENT, Ordering::Release);
        self.present.fetch_sub(1, Ordering::Relaxed);
        self.absent.lock().expect("no panic while held").push(entry);
        self.changed();
    }

    /// An absent file chosen at random, which the caller alone may now make.
    pub fn pick_to_create(&self, draw: u64) -> Option<u32> {
        let mut absent = self.absent.lock().expect("no panic while held");
        if absent.is_empty() {
            return None;
        }
        let place = below(draw, absent.len() as u64) as usize;
        let entry = absent.swap_remove(place);
        drop(absent);
        let before = self.states[entry as usize].swap(BUSY, Ordering::Acquire);
        debug_assert_eq!(before, ABSENT, "an entry was listed as absent but was not");
        Some(entry)
    }

    /// A file was made; the caller uses it, as after a pick.
    pub fn created(&self, entry: u32) {
        self.size_bytes[entry as usize].store(0, Ordering::Relaxed);
        self.present.fetch_add(1, Ordering::Relaxed);
        self.states[entry as usize].store(PRESENT + 1, Ordering::Release);
        self.changed();
    }

    fn search(&self, draw: u64, mut take: impl FnMut(u32) -> bool) -> Option<u32> {
        let entries = self.states.len() as u64;
        if self.present.load(Ordering::Relaxed) == 0 {
            return None;
        }
        for attempt in 0..TRIES.min(2 * entries) {
            let place = if attempt == 0 {
                draw
            } else {
                mix(draw.wrapping_add(attempt))
            };
            let entry = below(place, entries) as u32;
            if take(entry) {
                return Some(entry);
            }
        }
        let start = below(mix(!draw), entries);
        (0..entries)
            .map(|step| ((start + step) % entries) as u32)
            .find(|entry| take(*entry))
    }

    fn changed(&self) {
        self.changes.fetch_add(1, Ordering::SeqCst);
        if self.waiting.load(Ordering::SeqCst) > 0 {
            futex::wake_all(&self.changes);
        }
    }

    /// A number that changes whenever a pick that failed may succeed; read it before the pick.
    pub fn changes(&self) -> u32 {
        self.changes.load(Ordering::SeqCst)
    }

    /// Sleep until the number differs from `seen`, or the time is over.
    pub fn wait_change(&self, seen: u32, limit: Duration) {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        futex::wait(&self.changes, seen, limit);
        self.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::FileSet;
    use crate::quantity::Quantity;
    use ascar_random::Random;
    use std::sync::atomic::AtomicBool;

    fn tree(entries: u64, prealloc_percent: f64) -> Tree {
        let set = FileSet {
            name: "f".into(),
            size_bytes: Quantity::Fixed(10.0),
            entries,
            dirwidth: 0.0,
            dirgamma: 1.5,
            prealloc_percent,
            reuse: false,
            readonly: false,
            writeonly: false,
        };
        let layout = Layout::of(&set, 0, 1).unwrap();
        let exists = layout.prealloc.clone();
        let root = OwnedFd::from(std::fs::File::open("/").unwrap());
        Tree::new("f", layout, root, &exists, true, true)
    }

    #[test]
    fn every_pick_is_even() {
        let tree = tree(10, 100.0);
        let mut random = Random::of(1, &[]);
        let mut counts = [0; 10];
        for _ in 0..10_000 {
            let entry = tree.pick(random.draw()).unwrap();
            counts[entry as usize] += 1;
            tree.release(entry);
        }
        assert!(
            counts.iter().all(|count| (850..1150).contains(count)),
            "{counts:?}"
        );
    }

    #[test]
    fn a_used_file_is_not_removed() {
        let tree = tree(1, 100.0);
        let entry = tree.pick(0).unwrap();
        assert_eq!(tree.pick_to_delete(0), None);
        assert!(tree.take_used(entry));
        tree.deleted(entry);
        assert_eq!((tree.pick(0), tree.present()), (None, 0));
        assert_eq!(tree.pick_to_create(0), Some(0));
        assert_eq!(tree.pick_to_create(0), None);
        tree.created(0);
        tree.release(0);
        assert_eq!(tree.pick_to_delete(7), Some(0));
    }

    /// Eight threads make, use and remove files of a set of twelve; a second account, kept per file, must agree.
    #[test]
    fn no_file_is_removed_twice_or_lost_under_contention() {
        let tree = tree(12, 50.0);
        let really: Vec<AtomicBool> = tree
            .layout
            .prealloc
            .iter()
            .map(|p| AtomicBool::new(*p))
            .collect();
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let (tree, really) = (&tree, &really);
                scope.spawn(move || {
                    let mut random = Random::of(5, &[thread]);
                    for _ in 0..20_000 {
                        match random.below(3) {
                            0 => {
                                if let Some(entry) = tree.pick_to_create(random.draw()) {
                                    assert!(
                                        !really[entry as usize].swap(true, Ordering::SeqCst),
                                        "made twice"
                                    );
                                    tree.created(entry);
                                    tree.release(entry);
                                }
                            }
                            1 => {
                                if let Some(entry) = tree.pick_to_delete(random.draw()) {
                                    assert!(
                                        really[entry as usize].swap(false, Ordering::SeqCst),
                                        "removed twice"
                                    );
                                    tree.deleted(entry);
                                }
                            }
                            _ => {
                                if let Some(entry) = tree.pick(random.draw()) {
                                    assert!(
                                        really[entry as usize].load(Ordering::SeqCst),
                                        "used while absent"
                                    );
                                    tree.release(entry);
                                }
                            }
                        }
                    }
                });
            }
        });
        let left = really
            .iter()
            .filter(|exists| exists.load(Ordering::SeqCst))
            .count();
        assert_eq!(left, tree.present());
        let mut absent = tree.absent.lock().unwrap().clone();
        absent.sort_unstable();
        absent.dedup();
        assert_eq!(
            left + absent.len(),
            12,
            "every file is present or listed as absent, once"
        );
    }
}
