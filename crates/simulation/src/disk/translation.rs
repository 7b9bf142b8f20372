//! The flash translation layer: where data lies, and what collecting garbage must move.

use super::ordered::NONE;
use super::random::Random;
use crate::scenario::Flash;

/// Blocks of the image.
const BLOCKS: usize = 512;
/// Regions that a block of the image holds.
const REGIONS: usize = 32;
/// Blocks kept free for what is written next.
const RESERVE: usize = 2;

/// A log-structured image of the drive, on a scale: `BLOCKS` blocks of `REGIONS` regions stand for all of it.
///
/// Write amplification hardly depends on the number or the size of blocks, only on the space that is spare (Agarwal
/// and Marrow, "A closed-form expression for write amplification in NAND flash", 2010), so the scale costs nothing.
/// A write moves the region that it lies in to the open block with a probability of its share of the region. When the
/// open block is full and the reserve is reached, the block with the least alive is collected (greedy).
///
/// At the start the drive is as after long use: blocks hold from all alive down to the share that a block has when it
/// is collected, in the proportion that random overwriting leaves.
#[derive(Clone, Debug)]
pub(super) struct Translation {
    region_bytes: f64,
    capacity_bytes: u64,
    /// Where each region lies: block times `REGIONS` plus place, or `NONE`.
    places: Vec<u32>,
    /// What lies in each place: a region, which lies there still only if `places` says so.
    contents: Vec<u32>,
    live: Vec<u16>,
    free: Vec<u32>,
    open: u32,
    filled: usize,
    alive: f64,
    written: u64,
    moved: u64,
    random: Random,
}

impl Translation {
    pub(super) fn new(spec: &Flash, seed: u64) -> Self {
        let places = BLOCKS * REGIONS;
        let usable = places - (RESERVE + 1) * REGIONS;
        let regions =
            ((places as f64 / (1.0 + spec.spare_percent / 100.0)) as usize).clamp(1, usable);
        let capacity_bytes = (spec.capacity_gb * 1e9) as u64;
        let mut image = Self {
            region_bytes: capacity_bytes as f64 / regions as f64,
            capacity_bytes,
            places: vec![NONE; regions],
            contents: vec![NONE; places],
            live: vec![0; BLOCKS],
            free: Vec::with_capacity(BLOCKS),
            open: 0,
            filled: 0,
            alive: 0.0,
            written: 0,
            moved: 0,
            random: Random::new(seed),
        };
        image.age((regions as f64 * spec.filled_percent / 100.0) as usize);
        image
    }

    /// Lays out `live` regions as after long random overwriting, and opens a block.
    fn age(&mut self, live: usize) {
        let closed = BLOCKS - RESERVE - 1;
        self.free
            .extend((BLOCKS - RESERVE..BLOCKS).map(|block| block as u32));
        self.open = closed as u32;
        let least = least_alive(live as f64 / (closed * REGIONS) as f64);
        let (mut done, mut due) = (0, 0.0);
        for block in 0..closed {
            // The block's share alive: from the oldest, least, to the newest, 1.
            let share = libm::pow(least, 1.0 - (block as f64 + 0.5) / closed as f64);
            due += share * REGIONS as f64;
            for place in 0..REGIONS {
                if done < live && (done as f64) < due {
                    // Logical neighbours lie anywhere: a permutation by stepping with a number coprime to the count.
                    let region = self.scatter(done, live);
                    self.put(region, (block * REGIONS + place) as u32);
                    done += 1;
                }
            }
        }
        self.alive = least;
    }

    fn scatter(&self, index: usize, count: usize) -> u32 {
        let mut step = (count as f64 * 0.618_034) as usize | 1;
        while gcd(step, count) != 1 {
            step += 2;
        }
        ((index * step) % count) as u32
    }

    fn put(&mut self, region: u32, place: u32) {
        self.places[region as usize] = place;
        self.contents[place as usize] = region;
        self.live[place as usize / REGIONS] += 1;
    }

    /// The share alive of the block that was collected last: what each block freed has to move.
    pub(super) fn alive(&self) -> f64 {
        self.alive
    }

    /// Regions written by the host, and moved by collecting, so far.
    #[cfg(test)]
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.written, self.moved)
    }

    /// `bytes` at `position` are written over.
    pub(super) fn write(&mut self, position: u64, bytes: u64) {
        let (mut at, end) = (
            position as f64,
            (position + bytes).min(self.capacity_bytes) as f64,
        );
        while at < end {
            let region = ((at / self.region_bytes) as usize).min(self.places.len() - 1);
            let region_end = (region + 1) as f64 * self.region_bytes;
            let share = (end.min(region_end) - at) / self.region_bytes;
            if self.random.unit() < share {
                self.rewrite(region as u32);
            }
            at = region_end.max(at + 1.0);
        }
    }

    fn rewrite(&mut self, region: u32) {
        let old = self.places[region as usize];
        if old != NONE {
            self.live[old as usize / REGIONS] -= 1;
        }
        self.written += 1;
        self.append(region);
        while self.free.len() < RESERVE {
            self.collect();
        }
    }

    fn append(&mut self, region: u32) {
        if self.filled == REGIONS {
            self.open = self.free.pop().expect("a reserve of blocks is kept");
            self.filled = 0;
        }
        let place = self.open * REGIONS as u32 + self.filled as u32;
        self.filled += 1;
        self.put(region, place);
    }

    /// Moves what is alive in the block with the least of it, and frees the block.
    fn collect(&mut self) {
        let closed =
            (0..BLOCKS as u32).filter(|block| *block != self.open && !self.free.contains(block));
        let victim = closed
            .min_by_key(|block| self.live[*block as usize])
            .expect("there are closed blocks");
        self.alive = f64::from(self.live[victim as usize]) / REGIONS as f64;
        for place in victim * REGIONS as u32..(victim + 1) * REGIONS as u32 {
            let region = self.contents[place as usize];
            if region == NONE || self.places[region as usize] != place {
                continue;
            }
            self.append(region);
            self.moved += 1;
        }
        self.live[victim as usize] = 0;
        self.contents[victim as usize * REGIONS..(victim as usize + 1) * REGIONS].fill(NONE);
        self.free.push(victim);
    }
}

/// The share `v` alive in a block when it is collected, if `used` of all space is: `used = (v - 1) / ln v` (Menon,
/// "A performance comparison of RAID-5 and log-structured arrays", 1995).
fn least_alive(used: f64) -> f64 {
    let (mut low, mut high) = (1e-6, 1.0 - 1e-6);
    for _ in 0..60 {
        let middle: f64 = (low + high) / 2.0;
        if (middle - 1.0) / libm::log(middle) < used {
            low = middle
        } else {
            high = middle
        }
    }
    low
}

fn gcd(mut a: usize, mut b: usize) -> usize {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
