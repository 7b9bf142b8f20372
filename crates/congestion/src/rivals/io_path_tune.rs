//! IOPathTune's heuristic, as far as its window goes: climb by doubling and halving, judged by the own throughput.
//!
//! Source: Rashid, He, Bao and Dai, "IOPathTune: adaptive online parameter tuning for parallel file system I/O path",
//! arXiv 2301.06622, 2023: each client alone, without a model of the workload, changes one parameter of its path by a
//! factor, keeps the direction while its throughput follows, and turns around when it does not. There two parameters
//! take turns, request size and requests in flight; here requests have the size they have. The length of an interval
//! and the tolerances are ours.

use super::limit::Limit;
use crate::controller::{Controller, Reply, Window};

/// Throughput is compared over intervals of one second.
const INTERVAL_US: u64 = 1_000_000;

/// A change of throughput smaller than this is noise: the window stays where it is.
const NOISE: f64 = 0.02;

/// After so many quiet intervals the window is tried again.
const QUIET_INTERVALS: u8 = 5;

/// Hill climbing on throughput.
#[derive(Clone, Debug)]
pub struct IoPathTune {
    limit: Limit,
    interval_end_us: u64,
    interval_bytes: u64,
    bytes_before: u64,
    in_flight_max: u32,
    grows: bool,
    moved: bool,
    quiet: u8,
}

impl Default for IoPathTune {
    fn default() -> Self {
        Self {
            limit: Limit::default(),
            interval_end_us: 0,
            interval_bytes: 0,
            bytes_before: 0,
            in_flight_max: 0,
            grows: true,
            moved: false,
            quiet: 0,
        }
    }
}

impl IoPathTune {
    fn end_interval(&mut self) {
        let limit = self.limit.get();
        let before = self.bytes_before as f64;
        let change = (self.interval_bytes as f64 - before) / before.max(1.0);
        // A window that the application did not fill says nothing about windows.
        if f64::from(self.in_flight_max) * 2.0 < limit {
            self.moved = false;
            return;
        }
        if self.moved && change < -NOISE {
            self.grows = !self.grows;
            self.step();
        } else if self.moved && change <= NOISE {
            self.moved = false;
            self.quiet = 0;
        } else if self.moved {
            self.step();
        } else {
            self.quiet += 1;
            if self.quiet >= QUIET_INTERVALS || change.abs() > 5.0 * NOISE {
                self.step();
            }
        }
    }

    fn step(&mut self) {
        let before = self.limit;
        let factor = if self.grows { 2.0 } else { 0.5 };
        self.limit.set(before.get() * factor);
        self.moved = self.limit != before;
        if !self.moved {
            self.grows = !self.grows;
        }
        self.quiet = 0;
    }
}

impl Controller for IoPathTune {
    fn reserve(&mut self, now_us: u64, _bytes: u32) -> u64 {
        now_us
    }

    #[inline]
    fn on_reply(&mut self, reply: &Reply) {
        self.interval_bytes += u64::from(reply.bytes);
        self.in_flight_max = self.in_flight_max.max(reply.in_flight.requests);
        if reply.now_us < self.interval_end_us {
            return;
        }
        if self.interval_end_us == 0 {
            // Nothing to compare the first interval with: the first change is made after it.
            self.moved = true;
        } else {
            self.end_interval();
        }
        self.bytes_before = self.interval_bytes;
        (self.interval_bytes, self.in_flight_max) = (0, 0);
        self.interval_end_us = reply.now_us + INTERVAL_US;
    }

    fn on_timeout(&mut self, _sent_us: u64, _now_us: u64) {}

    #[inline]
    fn window(&self) -> Window {
        self.limit.window()
    }

    fn gap_us(&self) -> u32 {
        0
    }
}
