//! Several devices as one: stripes (RAID 0), mirrors (RAID 1), stripes with parity (RAID 5).
//!
//! Patterson, Gibson and Katz, "A case for redundant arrays of inexpensive disks (RAID)", SIGMOD 1988. Parity rotates to
//! the left, and the data of a row begins behind its parity (Linux' `left-symmetric`). A write of less than a row reads
//! the old data and the old parity before it writes both; one of whole rows reads nothing.

use super::slab::Slab;
use super::{DeviceCounters, DeviceRequest, Storage, StorageParts, Turned, build};

/// How data lies on the members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// One chunk on each member in turn; nothing is kept twice.
    Stripes,
    /// The same on each member. A read goes to the one that has the least to do.
    Mirrors,
    /// Stripes, of whose chunks one in each row is parity.
    Parity,
}

impl Level {
    /// The fewest members that make sense.
    #[must_use]
    pub fn members_min(self) -> usize {
        match self {
            Self::Stripes | Self::Mirrors => 2,
            Self::Parity => 3,
        }
    }
}

/// What an array is made of.
#[derive(Debug, Clone, Copy)]
pub struct ArrayParts<'a> {
    /// Each member, but for its seed, which is this one's and the member's number.
    pub member: StorageParts<'a>,
    /// How many members; at least [`Level::members_min`].
    pub members: usize,
    /// How data lies on them.
    pub level: Level,
    /// Bytes in a row on one member; above zero.
    pub chunk_bytes: u64,
}

/// An array whose members are idle at time 0.
///
/// # Panics
/// Where there are too few members, or a chunk is empty.
#[must_use]
pub fn build_array(parts: ArrayParts<'_>) -> Box<dyn Storage> {
    assert!(
        parts.members >= parts.level.members_min(),
        "{:?} takes at least {} members",
        parts.level,
        parts.level.members_min()
    );
    assert!(parts.chunk_bytes > 0, "a chunk has at least one byte");
    let members = (0..parts.members).map(|number| {
        build(StorageParts {
            seed: parts.member.seed.wrapping_add(number as u64),
            ..parts.member
        })
    });
    Box::new(Array {
        places: Places {
            members: parts.members as u64,
            level: parts.level,
            chunk_bytes: parts.chunk_bytes,
        },
        under_way: vec![0; parts.members],
        members: members.collect(),
        jobs: Slab::with_capacity(64),
        pieces: Slab::with_capacity(64),
        is_noting: false,
        landed: Vec::new(),
        counters: DeviceCounters::default(),
        scratch: Vec::new(),
    })
}

/// A stretch of one member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stretch {
    member: usize,
    position: u64,
    bytes: u64,
}

/// Where bytes of the array lie.
#[derive(Debug, Clone, Copy)]
struct Places {
    members: u64,
    level: Level,
    chunk_bytes: u64,
}

impl Places {
    /// Members of each row that hold data.
    fn data_members(&self) -> u64 {
        match self.level {
            Level::Stripes => self.members,
            Level::Mirrors => 1,
            Level::Parity => self.members - 1,
        }
    }

    fn row_bytes(&self) -> u64 {
        self.data_members() * self.chunk_bytes
    }

    /// The member that holds a row's parity.
    fn parity_member(&self, row: u64) -> u64 {
        self.members - 1 - row % self.members
    }

    /// Where the data of `position..end` lies, in pieces of at most a chunk; those that adjoin on a member are one.
    fn data(&self, position: u64, end: u64) -> Vec<Stretch> {
        let mut found: Vec<Stretch> = Vec::new();
        let mut at = position;
        while at < end {
            let chunk = at / self.chunk_bytes;
            let next = end.min((chunk + 1) * self.chunk_bytes);
            let (row, column) = (chunk / self.data_members(), chunk % self.data_members());
            let member = match self.level {
                Level::Parity => (self.parity_member(row) + 1 + column) % self.members,
                Level::Stripes | Level::Mirrors => column,
            };
            let stretch = Stretch {
                member: member as usize,
                position: row * self.chunk_bytes + at % self.chunk_bytes,
                bytes: next - at,
            };
            let before = found
                .iter_mut()
                .rev()
                .find(|it| it.member == stretch.member);
            match before {
                Some(before) if before.position + before.bytes == stretch.position => {
                    before.bytes += stretch.bytes;
                }
                _ => found.push(stretch),
            }
            at = next;
        }
        found
    }

    /// Where the parity of `position..end` lies, which is in one row.
    fn parity(&self, position: u64, end: u64) -> Stretch {
        let row = position / self.row_bytes();
        let (first, last) = (position % self.row_bytes(), (end - 1) % self.row_bytes());
        let (from, to) = if first / self.chunk_bytes == last / self.chunk_bytes {
            (first % self.chunk_bytes, last % self.chunk_bytes + 1)
        } else {
            (0, self.chunk_bytes)
        };
        Stretch {
            member: self.parity_member(row) as usize,
            position: row * self.chunk_bytes + from,
            bytes: to - from,
        }
    }

    /// What a write of `position..end` reads first, and what it writes.
    fn write(&self, position: u64, end: u64) -> (Vec<Stretch>, Vec<Stretch>) {
        match self.level {
            Level::Stripes => (Vec::new(), self.data(position, end)),
            Level::Mirrors => {
                let copy = |member| Stretch {
                    member,
                    position,
                    bytes: end - position,
                };
                (Vec::new(), (0..self.members as usize).map(copy).collect())
            }
            Level::Parity => {
                let (mut reads, mut writes) = (Vec::new(), Vec::new());
                let mut at = position;
                while at < end {
                    let next = end.min((at / self.row_bytes() + 1) * self.row_bytes());
                    let mut row = self.data(at, next);
                    row.push(self.parity(at, next));
                    if next - at < self.row_bytes() {
                        reads.extend_from_slice(&row);
                    }
                    writes.append(&mut row);
                    at = next;
                }
                (reads, writes)
            }
        }
    }
}

/// A request to the array.
#[derive(Debug, Clone, Copy)]
struct Job {
    tag: u32,
    /// Pieces that are not done.
    left: usize,
    /// Pieces of a write that have not reached the medium, where that is noted.
    to_land: usize,
    /// From where to where is written once the reads are done.
    then: Option<(u64, u64)>,
}

/// A request to a member.
#[derive(Debug, Clone, Copy)]
struct Piece {
    job: u32,
    is_write: bool,
    is_done: bool,
    has_landed: bool,
}

#[derive(Debug)]
struct Array {
    places: Places,
    members: Vec<Box<dyn Storage>>,
    under_way: Vec<usize>,
    jobs: Slab<Job>,
    pieces: Slab<Piece>,
    is_noting: bool,
    landed: Vec<u32>,
    counters: DeviceCounters,
    scratch: Vec<u32>,
}

impl Array {
    fn send(&mut self, now_ns: u64, job: u32, stretches: &[Stretch], write: bool) {
        let request = &mut self.jobs[job];
        request.left += stretches.len();
        if write && self.is_noting {
            request.to_land += stretches.len();
        }
        for stretch in stretches {
            let tag = self.pieces.insert(Piece {
                job,
                is_write: write,
                is_done: false,
                has_landed: false,
            });
            self.under_way[stretch.member] += 1;
            self.members[stretch.member].submit(
                now_ns,
                DeviceRequest {
                    tag,
                    write,
                    position_bytes: stretch.position,
                    length_bytes: stretch.bytes as u32,
                },
            );
        }
    }

    /// A member is done with a piece.
    fn piece_done(&mut self, now_ns: u64, tag: u32, done: &mut Vec<u32>) {
        let piece = &mut self.pieces[tag];
        piece.is_done = true;
        let Piece { job, is_write, .. } = *piece;
        self.forget(tag);
        self.jobs[job].left -= 1;
        if self.jobs[job].left > 0 {
            return;
        }
        if let Some((position, end)) = self.jobs[job].then.take_if(|_| !is_write) {
            let (_, writes) = self.places.write(position, end);
            self.send(now_ns, job, &writes, true);
            return;
        }
        done.push(self.jobs[job].tag);
        self.counters.completed += 1;
        if self.jobs[job].to_land == 0 {
            self.jobs.remove(job);
        }
    }

    /// A piece's data is on a member's medium.
    fn piece_landed(&mut self, tag: u32) {
        self.pieces[tag].has_landed = true;
        let job = self.pieces[tag].job;
        self.forget(tag);
        let request = &mut self.jobs[job];
        request.to_land -= 1;
        if request.to_land > 0 {
            return;
        }
        self.landed.push(request.tag);
        if request.left == 0 {
            self.jobs.remove(job);
        }
    }

    /// Lets go of a piece of which nothing more will be told.
    fn forget(&mut self, tag: u32) {
        let piece = self.pieces[tag];
        let lands = piece.is_write && self.is_noting;
        if piece.is_done && (piece.has_landed || !lands) {
            self.pieces.remove(tag);
        }
    }
}

impl Storage for Array {
    fn submit(&mut self, now_ns: u64, request: DeviceRequest) {
        assert!(request.length_bytes > 0, "a request has at least one byte");
        self.counters.submitted += 1;
        let (position, bytes) = (request.position_bytes, u64::from(request.length_bytes));
        let end = position + bytes;
        if request.write {
            self.counters.written_bytes += bytes;
        } else {
            self.counters.read_bytes += bytes;
        }
        let job = self.jobs.insert(Job {
            tag: request.tag,
            left: 0,
            to_land: 0,
            then: None,
        });
        if request.write {
            let (reads, writes) = self.places.write(position, end);
            if reads.is_empty() {
                self.send(now_ns, job, &writes, true);
            } else {
                self.jobs[job].then = Some((position, end));
                self.send(now_ns, job, &reads, false);
            }
            return;
        }
        if self.places.level == Level::Mirrors {
            let idlest = (0..self.members.len()).min_by_key(|member| self.under_way[*member]);
            let stretch = Stretch {
                member: idlest.expect("an array has members"),
                position,
                bytes,
            };
            self.send(now_ns, job, &[stretch], false);
            return;
        }
        let stretches = self.places.data(position, end);
        self.send(now_ns, job, &stretches, false);
    }

    fn advance(&mut self, now_ns: u64, done: &mut Vec<u32>) -> Option<u64> {
        let mut tags = std::mem::take(&mut self.scratch);
        let mut next;
        loop {
            next = None;
            let mut came = false;
            for member in 0..self.members.len() {
                let after = self.members[member].advance(now_ns, &mut tags);
                next = [next, after].into_iter().flatten().min();
                came |= !tags.is_empty();
                for tag in tags.drain(..) {
                    self.under_way[member] -= 1;
                    self.piece_done(now_ns, tag, done);
                }
                if self.is_noting {
                    self.members[member].landed(&mut tags);
                    tags.drain(..).for_each(|tag| self.piece_landed(tag));
                }
            }
            // What was sent on to members that have had their turn is taken up at this very instant.
            if !came {
                break;
            }
        }
        self.scratch = tags;
        next
    }

    fn set_slowdown(&mut self, factor: f64) {
        for member in &mut self.members {
            member.set_slowdown(factor);
        }
    }

    fn set_queue(&mut self, now_ns: u64, turned: Turned) {
        for member in &mut self.members {
            member.set_queue(now_ns, turned);
        }
    }

    fn note_landings(&mut self) {
        assert!(
            self.counters.submitted == 0,
            "landings are noted from the start"
        );
        self.is_noting = true;
        for member in &mut self.members {
            member.note_landings();
        }
    }

    fn landed(&mut self, tags: &mut Vec<u32>) {
        tags.append(&mut self.landed);
    }

    fn capacity_bytes(&self) -> u64 {
        let rows = self.members[0].capacity_bytes() / self.places.chunk_bytes;
        rows * self.places.row_bytes()
    }

    /// Requests and bytes are the array's; the rest are sums of its members, and the time of the busiest.
    fn counters(&self) -> DeviceCounters {
        let mut sums = self.counters;
        for member in self.members.iter().map(|it| it.counters()) {
            sums.pieces += member.pieces;
            sums.sequential_pieces += member.sequential_pieces;
            sums.busy_ns = sums.busy_ns.max(member.busy_ns);
            sums.positioning_ns += member.positioning_ns;
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Device, Mechanical, Memory, Noise, Queue};

    const CHUNK: u64 = 64 << 10;

    fn array(device: &Device, level: Level, members: usize) -> Box<dyn Storage> {
        build_array(ArrayParts {
            member: StorageParts {
                device,
                queue: &Queue::default(),
                noise: &Noise::default(),
                seed: 1,
            },
            members,
            level,
            chunk_bytes: CHUNK,
        })
    }

    fn memory() -> Device {
        Device::Memory(Memory {
            copy_mb_per_s: 100.0,
            request_us: 0.0,
            ..Memory::default()
        })
    }

    /// When each of the requests is done, all sent at once.
    fn played(storage: &mut dyn Storage, requests: &[(bool, u64, u64)]) -> Vec<u64> {
        for (tag, (write, position_bytes, bytes)) in requests.iter().enumerate() {
            storage.submit(
                0,
                DeviceRequest {
                    tag: tag as u32,
                    write: *write,
                    position_bytes: *position_bytes,
                    length_bytes: *bytes as u32,
                },
            );
        }
        let (mut ends, mut now_ns, mut done) = (vec![0; requests.len()], 0, Vec::new());
        loop {
            let next = storage.advance(now_ns, &mut done);
            for tag in done.drain(..) {
                ends[tag as usize] = now_ns;
            }
            match next {
                Some(next_ns) => now_ns = next_ns,
                None => return ends,
            }
        }
    }

    #[test]
    fn stripes_share_the_work() {
        let request = [(false, 0, 4 * CHUNK)];
        let two = played(array(&memory(), Level::Stripes, 2).as_mut(), &request)[0];
        let four = played(array(&memory(), Level::Stripes, 4).as_mut(), &request)[0];
        assert!(two.abs_diff(2 * four) < 1000, "{two} {four}");
        assert_eq!(
            array(&memory(), Level::Stripes, 4).capacity_bytes(),
            4 * (64_000_000_000 / CHUNK) * CHUNK
        );
    }

    #[test]
    fn mirrors_read_side_by_side_and_write_everywhere() {
        let reads = [(false, 0, CHUNK), (false, CHUNK, CHUNK)];
        let ends = played(array(&memory(), Level::Mirrors, 2).as_mut(), &reads);
        assert_eq!(ends[0], ends[1]);
        let writes = [(true, 0, CHUNK), (true, CHUNK, CHUNK)];
        let ends = played(array(&memory(), Level::Mirrors, 2).as_mut(), &writes);
        assert!(ends[1] > ends[0]);
    }

    #[test]
    fn a_write_of_less_than_a_row_reads_first() {
        let places = Places {
            members: 4,
            level: Level::Parity,
            chunk_bytes: CHUNK,
        };
        let (reads, writes) = places.write(0, 3 * CHUNK);
        assert!(reads.is_empty());
        assert_eq!(writes.len(), 4);
        let (reads, writes) = places.write(CHUNK + 10, CHUNK + 30);
        assert_eq!(reads, writes);
        let expected = [(1, 10, 20), (3, 10, 20)];
        let found: Vec<_> = reads
            .iter()
            .map(|it| (it.member, it.position, it.bytes))
            .collect();
        assert_eq!(found, expected);

        let disk = Device::Mechanical(Mechanical::default());
        let small = [(true, 1 << 30, 4096)];
        let alone = played(array(&disk, Level::Stripes, 2).as_mut(), &small)[0];
        let with_parity = played(array(&disk, Level::Parity, 3).as_mut(), &small)[0];
        // The platter comes round once more between reading and writing.
        assert!(with_parity > alone + 8_000_000, "{alone} {with_parity}");
    }

    #[test]
    fn every_byte_has_a_place_of_its_own() {
        for (level, members) in [(Level::Stripes, 3), (Level::Parity, 5)] {
            let places = Places {
                members,
                level,
                chunk_bytes: 4,
            };
            let mut taken = std::collections::BTreeSet::new();
            for byte in 0..400 {
                let [stretch] = places.data(byte, byte + 1)[..] else {
                    panic!("a byte is one stretch");
                };
                assert!(taken.insert((stretch.member, stretch.position)));
                if level == Level::Parity {
                    let parity = places.parity(byte, byte + 1);
                    assert_eq!(parity.position, stretch.position);
                    assert_ne!(parity.member, stretch.member);
                }
            }
        }
    }

    #[test]
    fn a_write_has_landed_when_all_of_it_has() {
        let cached = Device::Mechanical(Mechanical {
            write_cache_kib: 8192,
            ..Mechanical::default()
        });
        for (level, members) in [(Level::Stripes, 2), (Level::Mirrors, 2), (Level::Parity, 3)] {
            let mut storage = array(&cached, level, members);
            storage.note_landings();
            let write = |tag, position_bytes| DeviceRequest {
                tag,
                write: true,
                position_bytes,
                length_bytes: 3 * CHUNK as u32,
            };
            storage.submit(0, write(0, 0));
            storage.submit(0, write(1, 1 << 30));
            let (mut done, mut landed, mut now_ns) = (Vec::new(), Vec::new(), 0);
            let mut first_done_ns = 0;
            while let Some(next_ns) = storage.advance(now_ns, &mut done) {
                if done.len() == 2 && first_done_ns == 0 {
                    first_done_ns = now_ns;
                }
                storage.landed(&mut landed);
                now_ns = next_ns;
            }
            storage.advance(now_ns, &mut done);
            storage.landed(&mut landed);
            landed.sort_unstable();
            assert_eq!((done.len(), landed), (2, vec![0, 1]), "{level:?}");
            assert!(first_done_ns < now_ns, "{level:?}");
        }
    }
}
