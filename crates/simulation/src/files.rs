//! Files, their objects on servers, and where these lie on the devices.

use ascar_random::Random;

use crate::page_cache::CachedParts;
use crate::prefetch::prefetch;
use crate::scenario::{FileSet, Layout};

const KIB: u64 = 1024;
/// Grain of allocation.
const BLOCK: u64 = KIB * KIB;
/// No place yet.
const UNALLOCATED: u32 = u32::MAX;

/// A file.
#[derive(Debug, Clone)]
pub struct File {
    /// Bytes it has.
    pub size: u64,
    /// Its first object; the others follow.
    pub object_base: u32,
    /// Server of its first object; the others lie on the servers that follow.
    pub first_server: u32,
    /// For files of shared sets: its first lock; [`crate::lists::NONE`] for others.
    pub lock_base: u32,
    /// What of it is in the client's page cache; nothing of a file that clients share.
    pub cached: CachedParts,
}

/// A set of files, of one client or of all.
#[derive(Debug, Clone)]
pub struct Set {
    /// Files that exist.
    pub existing: Vec<u32>,
    /// Files that can be created.
    pub absent: Vec<u32>,
    /// All, in order.
    pub first: u32,
    /// How many.
    pub entries: u32,
    /// Whether all clients work on it.
    pub shared: bool,
    /// Mean size of a new file.
    size_mean: f64,
    /// Shape of the gamma distribution of sizes; 0: all alike.
    size_gamma: f64,
}

impl Set {
    fn draw_size(&self, random: &mut Random) -> u64 {
        let size = if self.size_gamma > 0.0 {
            random.gamma(self.size_gamma, self.size_mean)
        } else {
            self.size_mean
        };
        (size as u64).max(1)
    }
}

/// How files are striped.
#[derive(Debug, Clone, Copy)]
pub struct Stripes {
    /// Servers in all.
    pub servers: u32,
    /// Servers a file lies on.
    pub count: u32,
    /// Bytes in a row on one server.
    pub size: u64,
}

/// A part of a file that lies on one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Which of the file's objects, counted from 0.
    pub stripe: u32,
    /// The server that it lies on.
    pub server: u32,
    /// Offset in the object.
    pub offset: u64,
    /// Bytes.
    pub length: u32,
}

impl Stripes {
    /// The longest part of `offset..end` that is one request of at most `request` bytes.
    #[inline]
    pub fn piece(&self, file: &File, offset: u64, end: u64, request: u64) -> Piece {
        let stripe_number = offset / self.size;
        let within = offset - stripe_number * self.size;
        let row = stripe_number / u64::from(self.count);
        let stripe = (stripe_number - row * u64::from(self.count)) as u32;
        let server = file.first_server + stripe;
        // Requests begin at multiples of their size inside a stripe, as a cache forms them.
        let length = (self.size - within)
            .min(end - offset)
            .min(request - within % request);
        Piece {
            stripe,
            server: if server >= self.servers {
                server - self.servers
            } else {
                server
            },
            offset: row * self.size + within,
            length: length as u32,
        }
    }
}

/// Hands out a server's space in runs of blocks.
#[derive(Debug)]
pub struct Allocator {
    extent: u64,
    first: u64,
    count: u64,
    cursor: u64,
    fragmentation: f64,
    used: f64,
    random: Random,
}

impl Allocator {
    /// The space of a device as a layout has it.
    #[must_use]
    pub fn new(layout: &Layout, capacity_bytes: u64, random: Random) -> Allocator {
        let blocks = (capacity_bytes / BLOCK).clamp(1, u64::from(UNALLOCATED - 1));
        let first = ((layout.start_percent / 100.0 * blocks as f64) as u64).min(blocks - 1);
        let count = (layout.spread_percent / 100.0 * blocks as f64) as u64;
        Allocator {
            extent: (u64::from(layout.extent_kib) * KIB / BLOCK).max(1),
            first,
            count: count.clamp(1, blocks - first),
            cursor: 0,
            fragmentation: layout.fragmentation_percent / 100.0,
            used: layout.used_percent / 100.0,
            random,
        }
    }

    /// The first block of a run of so many.
    fn allocate(&mut self, blocks: u64) -> u32 {
        // A run does not reach beyond the spread.
        let places = self.count.saturating_sub(blocks) + 1;
        if self.fragmentation > 0.0 && self.random.unit() < self.fragmentation {
            return (self.first + self.random.below(places)) as u32;
        }
        while self.used > 0.0 && self.random.unit() < self.used {
            self.cursor += self.extent;
        }
        if self.cursor >= places {
            self.cursor %= places;
        }
        let block = self.first + self.cursor;
        self.cursor += blocks;
        block as u32
    }
}

/// What lies of a file on one server: where each of its blocks is.
#[derive(Debug, Clone)]
struct Object {
    file: u32,
    blocks: Vec<u32>,
}

impl Object {
    /// Allocates what is missing of the extent around a block, as far as the object of `blocks` blocks reaches: in one
    /// run, as a file system does that allocates ahead.
    fn allocate(&mut self, number: u64, blocks: u64, allocator: &mut Allocator) {
        let begin = number / allocator.extent * allocator.extent;
        let end = (begin + allocator.extent).min(blocks.max(number + 1));
        if self.blocks.len() < end as usize {
            self.blocks.resize(end as usize, UNALLOCATED);
        }
        let extent = &mut self.blocks[begin as usize..end as usize];
        let missing = extent.iter().filter(|block| **block == UNALLOCATED).count();
        let run = allocator.allocate(missing as u64);
        let unallocated = extent.iter_mut().filter(|block| **block == UNALLOCATED);
        for (block, place) in unallocated.zip(run..) {
            *block = place;
        }
    }
}

/// All files, and the layout of their objects.
#[derive(Debug)]
pub struct Files {
    /// The files.
    pub files: Vec<File>,
    /// The sets.
    pub sets: Vec<Set>,
    /// How they are striped.
    pub stripes: Stripes,
    objects: Vec<Object>,
    allocators: Vec<Allocator>,
    locks: u32,
}

impl Files {
    /// No files yet, on servers with the given space.
    #[must_use]
    pub fn new(stripes: Stripes, allocators: Vec<Allocator>) -> Files {
        Files {
            files: Vec::new(),
            sets: Vec::new(),
            stripes,
            objects: Vec::new(),
            allocators,
            locks: 0,
        }
    }

    /// Make a set of files; those that exist are laid out. `locks_a_file` locks are numbered for each of a shared
    /// set's. Returns the set's number.
    pub fn add_set(&mut self, set: &FileSet, locks_a_file: u32, random: &mut Random) -> u32 {
        let first = self.files.len() as u32;
        let preallocated = (set.prealloc_percent / 100.0 * f64::from(set.entries)).round() as u32;
        let mut made = Set {
            existing: Vec::new(),
            absent: Vec::new(),
            first,
            entries: set.entries,
            shared: set.shared,
            size_mean: set.size_mib * (KIB * KIB) as f64,
            size_gamma: set.size_gamma,
        };
        let grown = set
            .prealloc_size_mib
            .map_or(1.0, |size_mib| size_mib / set.size_mib);
        for entry in 0..set.entries {
            let file = self.files.len() as u32;
            let size = made.draw_size(random);
            let lock_base = if set.shared && locks_a_file > 0 {
                self.locks += locks_a_file;
                self.locks - locks_a_file
            } else {
                crate::lists::NONE
            };
            self.files.push(File {
                size: if entry < preallocated {
                    (size as f64 * grown) as u64
                } else {
                    size
                },
                object_base: self.objects.len() as u32,
                first_server: file % self.stripes.servers,
                lock_base,
                cached: CachedParts::new(),
            });
            let object = Object {
                file,
                blocks: Vec::new(),
            };
            let count = self.stripes.count as usize;
            self.objects.extend(std::iter::repeat_n(object, count));
            if entry < preallocated {
                made.existing.push(file);
            } else {
                made.absent.push(file);
            }
        }
        self.sets.push(made);
        (self.sets.len() - 1) as u32
    }

    /// Locks numbered so far.
    #[must_use]
    pub fn locks(&self) -> u32 {
        self.locks
    }

    /// Lay out the files that exist at the start: every set's one after the other, all sets at the same time, as clients
    /// do that prepare theirs in parallel.
    pub fn lay_out(&mut self) {
        let mut cursors: Vec<(usize, u64)> = vec![(0, 0); self.sets.len()];
        let mut open = true;
        while open {
            open = false;
            for (set, (entry, extent)) in cursors.iter_mut().enumerate() {
                let Some(&file) = self.sets[set].existing.get(*entry) else {
                    continue;
                };
                open = true;
                if self.lay_out_extent(file, *extent) {
                    *extent += 1;
                } else {
                    (*entry, *extent) = (*entry + 1, 0);
                }
            }
        }
    }

    /// The blocks that each object of a file has.
    fn blocks(&self, file: u32) -> u64 {
        let row = self.stripes.size * u64::from(self.stripes.count);
        (self.files[file as usize].size.div_ceil(row) * self.stripes.size).div_ceil(BLOCK)
    }

    /// Allocates one extent of each of a file's objects; false beyond the last one.
    fn lay_out_extent(&mut self, file: u32, extent: u64) -> bool {
        let blocks = self.blocks(file);
        let (first_server, base) = {
            let file = &self.files[file as usize];
            (file.first_server, file.object_base)
        };
        let mut any = false;
        for stripe in 0..self.stripes.count {
            let server = ((first_server + stripe) % self.stripes.servers) as usize;
            let allocator = &mut self.allocators[server];
            let number = extent * allocator.extent;
            if number < blocks {
                self.objects[(base + stripe) as usize].allocate(number, blocks, allocator);
                any = true;
            }
        }
        any
    }

    /// Where on its server's device an object's offset lies; space is allocated at the first use.
    #[inline]
    pub fn position(&mut self, server: u32, object: u32, offset: u64) -> u64 {
        let number = offset / BLOCK;
        let known = self.objects[object as usize].blocks.get(number as usize);
        let block = match known {
            Some(&block) if block != UNALLOCATED => block,
            _ => self.allocate(server, object, number),
        };
        u64::from(block) * BLOCK + offset % BLOCK
    }

    fn allocate(&mut self, server: u32, object: u32, number: u64) -> u32 {
        let blocks = self.blocks(self.objects[object as usize].file);
        let entry = &mut self.objects[object as usize];
        entry.allocate(number, blocks, &mut self.allocators[server as usize]);
        entry.blocks[number as usize]
    }

    /// What lies of a file on one server is needed soon.
    #[inline]
    pub fn prefetch_object(&self, object: u32) {
        prefetch(&self.objects, object);
    }

    /// A place on a device is needed soon.
    #[inline]
    pub fn prefetch_position(&self, object: u32, offset: u64) {
        prefetch(
            &self.objects[object as usize].blocks,
            (offset / BLOCK) as u32,
        );
    }

    /// A random place in a server's spread, for requests of nobody's file.
    pub fn anywhere(&mut self, server: u32) -> u64 {
        let allocator = &mut self.allocators[server as usize];
        (allocator.first + allocator.random.below(allocator.count)) * BLOCK
    }

    /// Create a random file of those that are absent, with a size of its own; and the size that it had before.
    pub fn create(&mut self, set: u32, random: &mut Random) -> Option<(u32, u64)> {
        let set = &mut self.sets[set as usize];
        let absent = set.absent.len() as u64;
        if absent == 0 {
            return None;
        }
        let file = set.absent.swap_remove(random.below(absent) as usize);
        set.existing.push(file);
        let size = set.draw_size(random);
        let before = std::mem::replace(&mut self.files[file as usize].size, size);
        Some((file, before))
    }

    /// A random file of those that exist.
    pub fn choose(&self, set: u32, random: &mut Random) -> Option<u32> {
        let existing = &self.sets[set as usize].existing;
        let index = random.below(existing.len() as u64) as usize;
        existing.get(index).copied()
    }

    /// Delete a random file of those that exist, and what it held on servers.
    pub fn delete(&mut self, set: u32, random: &mut Random) -> Option<u32> {
        let set = &mut self.sets[set as usize];
        let existing = set.existing.len() as u64;
        if existing == 0 {
            return None;
        }
        let file = set.existing.swap_remove(random.below(existing) as usize);
        set.absent.push(file);
        let base = self.files[file as usize].object_base as usize;
        for object in &mut self.objects[base..base + self.stripes.count as usize] {
            object.blocks.clear();
        }
        Some(file)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    use super::*;

    fn file(first_server: u32) -> File {
        File {
            size: 1,
            object_base: 0,
            first_server,
            lock_base: 0,
            cached: CachedParts::new(),
        }
    }

    fn files(layout: &Layout, servers: u32, sets: u32) -> Files {
        let stripes = Stripes {
            servers,
            count: servers.min(4),
            size: BLOCK,
        };
        let allocator = |server| Allocator::new(layout, 500_000_000_000, Random::of(7, &[server]));
        let mut files = Files::new(stripes, (0..u64::from(servers)).map(allocator).collect());
        let set = FileSet {
            name: "f".into(),
            entries: 20,
            size_mib: 50.0,
            size_gamma: 1.5,
            prealloc_percent: 50.0,
            prealloc_size_mib: None,
            shared: false,
        };
        for number in 0..sets {
            files.add_set(&set, 0, &mut Random::of(1, &[u64::from(number)]));
        }
        files.lay_out();
        files
    }

    proptest! {
        /// The pieces of a range are disjoint, in order, inside one stripe and one request, and cover it.
        #[test]
        fn pieces_cover_a_range(
            (servers, count) in (1u32..9).prop_flat_map(|servers| (Just(servers), 1..=servers)),
            stripe_kib in prop::sample::select(vec![64u64, 1024, 4096]),
            request_kib in prop::sample::select(vec![64u64, 256, 1024, 4096]),
            begin in 0u64..100_000_000,
            length in 1u64..20_000_000,
            first in 0u32..9,
        ) {
            let stripes = Stripes { servers, count, size: stripe_kib * KIB };
            let file = file(first % servers);
            let (mut at, end) = (begin, begin + length);
            while at < end {
                let piece = stripes.piece(&file, at, end, request_kib * KIB);
                let bytes = u64::from(piece.length);
                prop_assert!(bytes > 0 && bytes <= request_kib * KIB && bytes <= stripes.size);
                prop_assert!(piece.server < servers && piece.stripe < count);
                prop_assert_eq!(piece.server, (file.first_server + piece.stripe) % servers);
                // Back from the object to the file.
                let row = piece.offset / stripes.size;
                let number = row * u64::from(count) + u64::from(piece.stripe);
                prop_assert_eq!(number * stripes.size + piece.offset % stripes.size, at);
                at += bytes;
            }
            prop_assert_eq!(at, end);
        }

        /// Without fragmentation no two blocks share a place until the spread is full.
        #[test]
        fn files_do_not_overlap(used in 0.0f64..90.0, extent_kib in 1024u32..200_000, servers in 1u32..6) {
            let layout = Layout { used_percent: used, extent_kib, ..Layout::default() };
            let layout = Layout { spread_percent: 100.0, ..layout };
            let mut files = files(&layout, servers, 3);
            let mut places = BTreeSet::new();
            for number in 0..files.files.len() as u32 {
                let File { object_base, first_server, size, .. } = files.files[number as usize];
                for stripe in 0..files.stripes.count {
                    let server = (first_server + stripe) % servers;
                    for block in 0..size / BLOCK / u64::from(files.stripes.count) {
                        let at = files.position(server, object_base + stripe, block * BLOCK);
                        prop_assert!(at < 500_000_000_000);
                        prop_assert!(places.insert((server, at)));
                    }
                }
            }
        }
    }

    #[test]
    fn what_follows_in_a_file_follows_on_the_device() {
        let mut files = files(&Layout::default(), 4, 1);
        let base = files.files[0].object_base;
        let server = files.files[0].first_server;
        let start = files.position(server, base, 0);
        for block in 1..4 {
            assert_eq!(
                files.position(server, base, block * BLOCK + 5),
                start + block * BLOCK + 5
            );
        }
    }

    #[test]
    fn created_and_deleted_files_change_places() {
        let mut files = files(&Layout::default(), 4, 1);
        let mut random = Random::of(9, &[]);
        assert_eq!(
            (files.sets[0].existing.len(), files.sets[0].absent.len()),
            (10, 10)
        );
        let (created, _) = files.create(0, &mut random).expect("some are absent");
        assert!(files.sets[0].existing.contains(&created));
        for _ in 0..11 {
            assert!(files.delete(0, &mut random).is_some());
        }
        assert!(files.delete(0, &mut random).is_none() && files.choose(0, &mut random).is_none());
        assert_eq!(files.sets[0].absent.len(), 20);
    }
}
