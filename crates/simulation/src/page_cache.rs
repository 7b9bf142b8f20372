//! A client's page cache: the file data that it took in last; what was used longest ago makes room.
//!
//! All files of a client share its cache. Bytes are counted, not pages: of each file how many were used last in which
//! of a row of *ages*. What comes in and what is used again belongs to the newest age; where the cache is full, the
//! oldest one makes room, all its files in proportion. Which bytes of a file are used again is known by how it is used:
//!
//! - *at random places*: of each age as much as it holds of the file. A read finds the share that is there. Shares of
//!   files that are read at random become what Che, Tung and Wang's approximation of a least-recently-used cache gives
//!   (IEEE JSAC 20(7), 2002): `1 - exp(-r T / S)` of a file of size `S` that is read at a rate `r`, with the one time `T` for
//!   which all shares together fill the cache.
//! - *in sequence*: the oldest bytes. Of a file that is not there as a whole a pass finds nothing, since each page goes just
//!   before its turn comes again.
//!
//! An age ends when a 64th of what the cache holds was used in it, or of what was used since the oldest age began, if that
//! is more: what makes room is known that finely.

use std::collections::VecDeque;

use crate::files::File;

/// Ages of a full cache in which nothing is used twice.
const AGES: f64 = 64.0;
/// Fewer bytes than these are none.
const NOTHING: f64 = 1e-3;
/// By so much of a byte a file may miss its size and be there as a whole.
const ROUNDING: f64 = 0.01;

/// A client's page cache.
#[derive(Debug)]
pub struct PageCache {
    capacity: f64,
    /// Bytes used since the start, those that were there and those that were not: the clock of ages.
    used: f64,
    /// Bytes that are there.
    there: f64,
    /// From the oldest to the newest.
    ages: VecDeque<Age>,
    /// The number of the oldest.
    oldest: u64,
}

/// What was used last between two instants.
#[derive(Debug)]
struct Age {
    /// When it began.
    begun: f64,
    /// Bytes that files count in it, and such as no file counts.
    counted: f64,
    /// Bytes of these that are there: all, but of the oldest age.
    left: f64,
}

impl Age {
    /// The share of what is counted that is there.
    fn share(&self) -> f64 {
        if self.counted > 0.0 {
            self.left / self.counted
        } else {
            0.0
        }
    }
}

/// What the page cache knows of a file: bytes by age, from the oldest to the newest. Ages that are gone stay in it until
/// the file is used again.
pub type CachedParts = Vec<CachedPart>;

/// Bytes of a file that were last used in one age.
#[derive(Debug, Clone, Copy)]
pub struct CachedPart {
    age: u64,
    counted: f64,
}

impl PageCache {
    /// An empty cache of so many bytes.
    #[must_use]
    pub fn new(capacity: u64) -> PageCache {
        PageCache {
            capacity: capacity as f64,
            used: 0.0,
            there: 0.0,
            ages: VecDeque::new(),
            oldest: 0,
        }
    }

    /// Whether an operation on `begin..end` finds its data: if the file is there as a whole; otherwise never in sequence,
    /// and at random if its place is among the share that is there. Which places these are is fixed by their numbers
    /// (multiples of the golden ratio), so that they are spread evenly and become more or fewer one by one.
    #[must_use]
    pub fn holds(&self, file: &File, (begin, end): (u64, u64), in_sequence: bool) -> bool {
        const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
        let there = self.whole_bytes_of(file);
        if there >= file.size {
            return true;
        }
        let number = begin / (end - begin).max(1);
        let place = u128::from(number.wrapping_mul(GOLDEN)) * u128::from(file.size);
        !in_sequence && ((place >> 64) as u64) < there
    }

    /// A file is used as a whole, or was prepared.
    pub fn use_whole(&mut self, file: &mut File) {
        self.forget(file);
        self.add(Some(&mut file.cached), file.size as f64);
    }

    /// So many bytes of a file are used, which were there or were not.
    pub fn use_part(&mut self, file: &mut File, bytes: u64, (found, in_sequence): (bool, bool)) {
        file.cached.retain(|part| part.age >= self.oldest);
        let (there, bytes, size) = (self.bytes_of(file), bytes as f64, file.size as f64);
        let comes = if !found {
            // A file is not there twice.
            self.leave_oldest_ages(file, there + bytes - size);
            bytes.min(size)
        } else if in_sequence {
            self.leave_oldest_ages(file, bytes)
        } else {
            self.leave_all_ages(file, (bytes / there).min(1.0))
        };
        self.add(Some(&mut file.cached), comes);
    }

    /// Bytes come in, of no file that is read out of the cache.
    pub fn take_in(&mut self, bytes: u64) {
        self.add(None, bytes as f64);
    }

    /// A pass in sequence over a file has come to `position`, behind which there is no whole operation: the rest of the
    /// file was read ahead.
    pub fn pass(&mut self, file: &mut File, position: u64) {
        if (position..file.size).contains(&self.whole_bytes_of(file)) {
            let rest = file.size as f64 - self.bytes_of(file);
            self.add(Some(&mut file.cached), rest);
        }
    }

    /// A file has another size than before: what was there as a whole stays so.
    pub fn resize(&mut self, file: &mut File, before: u64) {
        let whole = self.whole_bytes_of(file) >= before;
        match (whole, file.size.checked_sub(before)) {
            (true, Some(more)) => self.add(Some(&mut file.cached), more as f64),
            (true, None) => self.use_whole(file),
            (false, Some(_)) => {}
            (false, None) => self.forget(file),
        }
    }

    /// Nothing of a file is there any more.
    pub fn forget(&mut self, file: &mut File) {
        self.leave_all_ages(file, 1.0);
        file.cached.clear();
    }

    /// Bytes of a file that are there.
    fn bytes_of(&self, file: &File) -> f64 {
        let there = |part: &CachedPart| {
            let age = part.age.checked_sub(self.oldest)?;
            Some(part.counted * self.ages[age as usize].share())
        };
        file.cached.iter().filter_map(there).sum()
    }

    fn whole_bytes_of(&self, file: &File) -> u64 {
        (self.bytes_of(file) + ROUNDING) as u64
    }

    /// A share of what is there of a file leaves its ages, each as much. Returns the bytes.
    fn leave_all_ages(&mut self, file: &mut File, share: f64) -> f64 {
        let mut left = 0.0;
        for part in &mut file.cached {
            let counted = part.counted * share;
            left += self.leave(part, counted);
        }
        file.cached.retain(|part| part.counted > 0.0);
        left
    }

    /// So many bytes of a file leave its ages, the oldest first. Returns how many there were.
    fn leave_oldest_ages(&mut self, file: &mut File, bytes: f64) -> f64 {
        let mut left = 0.0;
        for part in &mut file.cached {
            if left >= bytes {
                break;
            }
            let share = self.ages[(part.age - self.oldest) as usize].share();
            let counted = ((bytes - left) / share).min(part.counted);
            left += self.leave(part, counted);
        }
        file.cached.retain(|part| part.counted > 0.0);
        left
    }

    /// So much of what a file counts leaves an age; next to nothing does not stay. Returns the bytes that were there.
    fn leave(&mut self, part: &mut CachedPart, counted: f64) -> f64 {
        let counted = if part.counted - counted < NOTHING {
            part.counted
        } else {
            counted
        };
        part.counted -= counted;
        let Some(age) = part.age.checked_sub(self.oldest) else {
            return 0.0;
        };
        let age = &mut self.ages[age as usize];
        let left = counted * age.share();
        age.counted = (age.counted - counted).max(0.0);
        age.left = (age.left - left).max(0.0);
        self.there -= left;
        left
    }

    /// Bytes come into the newest age, a file's or nobody's; what has no room beside them goes.
    fn add(&mut self, parts: Option<&mut CachedParts>, bytes: f64) {
        let bytes = bytes.min(self.capacity);
        if bytes <= 0.0 {
            return;
        }
        self.begin_age(bytes);
        let newest = self.oldest + self.ages.len() as u64 - 1;
        if let Some(age) = self.ages.back_mut() {
            age.counted += bytes;
            age.left += bytes;
        }
        self.used += bytes;
        self.there += bytes;
        if let Some(parts) = parts {
            match parts.last_mut() {
                Some(part) if part.age == newest => part.counted += bytes,
                _ => parts.push(CachedPart {
                    age: newest,
                    counted: bytes,
                }),
            }
        }
        self.make_room();
    }

    /// A new age begins, unless so many bytes more leave the newest short enough.
    fn begin_age(&mut self, bytes: f64) {
        while self.ages.len() > 1 && self.ages[0].left < NOTHING {
            self.end_oldest();
        }
        if let (Some(oldest), Some(newest)) = (self.ages.front(), self.ages.back()) {
            let longest = self.capacity.max(self.used - oldest.begun) / AGES;
            if self.used - newest.begun + bytes <= longest {
                return;
            }
        }
        self.ages.push_back(Age {
            begun: self.used,
            counted: 0.0,
            left: 0.0,
        });
        // Errors of rounding do not add up.
        self.there = self.ages.iter().map(|age| age.left).sum();
    }

    fn make_room(&mut self) {
        while self.there > self.capacity {
            let over = self.there - self.capacity;
            match self.ages.front_mut() {
                Some(oldest) if oldest.left > over => {
                    oldest.left -= over;
                    self.there = self.capacity;
                }
                Some(_) => self.end_oldest(),
                None => self.there = 0.0,
            }
        }
    }

    fn end_oldest(&mut self) {
        if let Some(age) = self.ages.pop_front() {
            self.there -= age.left;
            self.oldest += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use ascar_random::Random;
    use proptest::prelude::*;

    use super::*;

    fn file(size: u64) -> File {
        File {
            size,
            object_base: 0,
            first_server: 0,
            lock_base: crate::lists::NONE,
            cached: CachedParts::new(),
        }
    }

    /// Pages one by one, the least recently used first: what the counts above stand for.
    struct Pages {
        capacity: usize,
        queue: VecDeque<(usize, u64)>,
    }

    impl Pages {
        fn hits(&mut self, page: (usize, u64)) -> bool {
            let found = self.queue.iter().position(|one| *one == page);
            if let Some(at) = found {
                self.queue.remove(at);
            } else if self.queue.len() == self.capacity {
                self.queue.pop_front();
            }
            self.queue.push_back(page);
            found.is_some()
        }
    }

    /// Files of so many pages of one byte, and what finds its data by the counts and page by page.
    struct Both {
        cache: PageCache,
        files: Vec<File>,
        exact: Pages,
    }

    impl Both {
        /// With the files prepared, one after the other.
        fn prepared(capacity: u64, sizes: &[u64]) -> Both {
            let mut both = Both {
                cache: PageCache::new(capacity),
                files: sizes.iter().copied().map(file).collect(),
                exact: Pages {
                    capacity: capacity as usize,
                    queue: VecDeque::new(),
                },
            };
            for number in 0..sizes.len() {
                both.whole(number);
            }
            both
        }

        /// One page.
        fn page(&mut self, number: usize, page: u64, in_sequence: bool) -> (bool, bool) {
            let file = &mut self.files[number];
            let found = self.cache.holds(file, (page, page + 1), in_sequence);
            self.cache.use_part(file, 1, (found, in_sequence));
            (found, self.exact.hits((number, page)))
        }

        /// All of a file: whether all was found.
        fn whole(&mut self, number: usize) -> (bool, bool) {
            let file = &mut self.files[number];
            let found = self.cache.holds(file, (0, file.size), true);
            self.cache.use_whole(file);
            let pages = 0..file.size;
            let hits = pages.filter(|page| self.exact.hits((number, *page)));
            (found, hits.count() as u64 == file.size)
        }

        fn there(&self, number: usize) -> u64 {
            self.cache.whole_bytes_of(&self.files[number])
        }
    }

    /// Of each file, the share of reads of one page at random places that find it, here and page by page; files are
    /// chosen at random, too, in proportion to their rates.
    fn shares(sizes: &[u64], rates: &[u64], capacity: u64) -> Vec<(f64, f64)> {
        let (mut both, mut random) = (Both::prepared(capacity, sizes), Random::of(3, sizes));
        let mut counts = vec![(0_u32, 0_u32, 0_u32); sizes.len()];
        for turn in 0..20_000 {
            let mut draw = random.below(rates.iter().sum());
            let chosen = rates.iter().position(|rate| {
                let here = draw < *rate;
                draw = draw.saturating_sub(*rate);
                here
            });
            let number = chosen.expect("it is below their sum");
            let found = both.page(number, random.below(sizes[number]), false);
            if turn >= 5_000 {
                let (all, ours, theirs) = &mut counts[number];
                *all += 1;
                *ours += u32::from(found.0);
                *theirs += u32::from(found.1);
            }
        }
        let share = |count: u32, all: u32| f64::from(count) / f64::from(all);
        let shares = counts.iter();
        shares
            .map(|(all, ours, theirs)| (share(*ours, *all), share(*theirs, *all)))
            .collect()
    }

    #[test]
    fn reads_at_random_find_each_file_by_its_rate_and_size() {
        // By hand: 1 - x^(rate / size) of each, with the x for which all of them together fill the cache. In the fourth
        // x^3 + x = 1.25, in the fifth 100 x^7 + 700 x = 400.
        for (sizes, rates, capacity, by_hand) in [
            (vec![400], vec![1], 100, vec![0.25]),
            (vec![150], vec![1], 140, vec![0.933]),
            (
                vec![400, 400, 400],
                vec![1, 1, 1],
                300,
                vec![0.25, 0.25, 0.25],
            ),
            (vec![400, 400], vec![3, 1], 300, vec![0.528, 0.222]),
            (vec![100, 700], vec![1, 1], 400, vec![0.981, 0.431]),
            (vec![100, 100], vec![5, 1], 200, vec![1.0, 1.0]),
        ] {
            let found = shares(&sizes, &rates, capacity);
            for ((ours, theirs), by_hand) in found.iter().zip(by_hand) {
                assert!((ours - by_hand).abs() < 0.03, "{sizes:?}: {ours} {by_hand}");
                assert!(
                    (theirs - by_hand).abs() < 0.03,
                    "{sizes:?}: {theirs} {by_hand}"
                );
            }
        }
    }

    #[test]
    fn whole_files_are_there_until_what_came_since_leaves_no_room() {
        // Three of 40 in turns never fit into 100; two do. Where the first is used every other time, it stays, and the
        // others, for each of which 80 of others come, do not.
        let cases: [(&[usize], &[bool]); 3] = [
            (&[0, 1, 2], &[false, false, false]),
            (&[0, 1], &[true, true]),
            (&[0, 1, 0, 2], &[true, false, true, false]),
        ];
        for (order, by_hand) in cases {
            let mut both = Both::prepared(100, &[40, 40, 40]);
            for turn in 0..20 {
                for (number, wanted) in order.iter().zip(by_hand) {
                    let (ours, theirs) = both.whole(*number);
                    if turn > 0 {
                        assert_eq!((ours, theirs), (*wanted, *wanted), "{order:?} {number}");
                    }
                }
            }
        }
    }

    #[test]
    fn passes_find_all_or_nothing() {
        for (sizes, capacity, by_hand) in [
            (vec![100], 99, false),
            (vec![100], 100, true),
            (vec![60, 60], 119, false),
            (vec![60, 60], 120, true),
        ] {
            let mut both = Both::prepared(capacity, &sizes);
            for pass in 0..4 {
                for page in 0..sizes[0] {
                    for number in 0..sizes.len() {
                        let found = both.page(number, page, true);
                        // In the first pass the file that was prepared last is still there.
                        let wanted = (by_hand, by_hand);
                        assert!(pass == 0 || found == wanted, "{sizes:?} {capacity}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_file_that_is_read_for_the_first_time_is_there_after_a_pass() {
        let (mut cache, mut file) = (PageCache::new(100), file(45));
        for position in [0, 10, 20, 30] {
            assert!(!cache.holds(&file, (position, position + 10), true));
            cache.use_part(&mut file, 10, (false, true));
        }
        assert_eq!(cache.whole_bytes_of(&file), 40);
        cache.pass(&mut file, 40);
        assert!(cache.holds(&file, (0, 10), true));
        // One that lost something meanwhile is not.
        cache.take_in(90);
        cache.pass(&mut file, 40);
        assert!(!cache.holds(&file, (0, 10), true));
    }

    #[test]
    fn files_give_way_to_others_and_their_room_back() {
        let mut both = Both::prepared(100, &[400, 30]);
        assert_eq!((both.there(0), both.there(1)), (70, 30));
        both.cache.take_in(20);
        assert_eq!((both.there(0), both.there(1)), (50, 30));
        for _ in 0..25 {
            both.cache.use_part(&mut both.files[0], 1, (false, false));
        }
        assert_eq!((both.there(0), both.there(1)), (50, 30));
        both.cache.forget(&mut both.files[1]);
        assert_eq!(both.there(1), 0);
        both.cache.use_part(&mut both.files[0], 20, (false, false));
        assert_eq!(both.there(0), 70);
        both.cache.take_in(100);
        assert_eq!(both.there(0), 0);
    }

    #[test]
    fn a_file_that_grows_is_there_as_a_whole_if_it_was() {
        let (mut cache, mut known, mut unknown) = (PageCache::new(100), file(30), file(30));
        cache.use_whole(&mut known);
        for file in [&mut known, &mut unknown] {
            file.size = 50;
            cache.resize(file, 30);
        }
        assert_eq!(cache.whole_bytes_of(&known), 50);
        assert_eq!(cache.whole_bytes_of(&unknown), 0);
        known.size = 10;
        cache.resize(&mut known, 50);
        assert_eq!(cache.whole_bytes_of(&known), 10);
        cache.use_part(&mut unknown, 20, (false, true));
        unknown.size = 10;
        cache.resize(&mut unknown, 50);
        assert_eq!(cache.whole_bytes_of(&unknown), 0);
    }

    #[test]
    fn no_cache_holds_nothing() {
        let mut both = Both {
            cache: PageCache::new(0),
            files: vec![file(10)],
            exact: Pages {
                capacity: 1,
                queue: VecDeque::new(),
            },
        };
        both.whole(0);
        for in_sequence in [false, true] {
            assert!(!both.page(0, 5, in_sequence).0);
        }
        both.cache.pass(&mut both.files[0], 8);
        both.cache.resize(&mut both.files[0], 5);
        assert_eq!(both.there(0), 0);
    }

    proptest! {
        /// Whatever happens, there is never more than fits, nor more of a file than it has.
        #[test]
        fn there_is_never_more_than_fits(
            capacity in 1_u64..200,
            steps in proptest::collection::vec((0_usize..3, 0_u8..8, 1_u64..30), 0..200),
        ) {
            let mut cache = PageCache::new(capacity);
            let mut files = [file(5), file(20), file(60)];
            for (number, what, bytes) in steps {
                let file = &mut files[number];
                let bytes = bytes.min(file.size);
                match what {
                    0 => cache.use_whole(file),
                    1 | 2 => {
                        let found = cache.holds(file, (0, bytes), what == 1);
                        cache.use_part(file, bytes, (found, what == 1));
                    }
                    // It may have gone since it was found.
                    3 => cache.use_part(file, bytes, (true, false)),
                    4 => {
                        let position = file.size - bytes;
                        cache.pass(file, position);
                    }
                    5 => cache.forget(file),
                    6 => {
                        let before = file.size;
                        file.size = if bytes % 2 == 0 { bytes } else { before + bytes };
                        cache.resize(file, before);
                    }
                    _ => cache.take_in(bytes),
                }
                let there: f64 = files.iter().map(|file| cache.bytes_of(file)).sum();
                prop_assert!(there <= capacity as f64 + 1e-6, "{there} {capacity}");
                prop_assert!((cache.ages.iter().map(|age| age.left).sum::<f64>() - cache.there).abs() < 1e-6);
                for file in &files {
                    prop_assert!(cache.bytes_of(file) <= file.size as f64 + 1e-6);
                }
            }
        }
    }
}
