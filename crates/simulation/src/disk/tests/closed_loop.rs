//! A load that keeps a number of requests at a device: what a storage server with enough clients sees.

use super::{DeviceCounters, DeviceRequest, Storage};

/// Streams of requests, each on a stretch of the device of its own.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Share of requests that write, in percent.
    pub write_percent: u64,
    /// At random places; otherwise one behind the other.
    pub random: bool,
    pub request_bytes: u32,
    pub streams: u64,
    /// Requests that each stream keeps at the device.
    pub window: u64,
    /// Length of each stream's stretch.
    pub stretch_bytes: u64,
    /// From the beginning of one stretch to that of the next.
    pub step_bytes: u64,
    pub seconds: f64,
}

/// What a load brings.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome {
    pub mb_per_s: f64,
    /// Longest time of a request.
    pub latency_ms_max: f64,
    /// Share of the time that the device spent on positioning.
    pub positioning: f64,
    /// Mean number of requests at the device, by time.
    pub requests_mean: f64,
    /// Mean time of a request.
    pub latency_ms_mean: f64,
    pub requests_per_s: f64,
    pub counters: DeviceCounters,
}

fn mixed(state: &mut u64) -> u64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    (*state ^ (*state >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 11
}

impl Load {
    fn next(&self, state: &mut u64, (stream, count): (u64, u64)) -> DeviceRequest {
        let size = u64::from(self.request_bytes);
        let places = self.stretch_bytes / size;
        let place = if self.random {
            mixed(state) % places
        } else {
            count % places
        };
        DeviceRequest {
            tag: stream as u32,
            write: mixed(state) % 100 < self.write_percent,
            position_bytes: stream * self.step_bytes + place * size,
            length_bytes: self.request_bytes,
        }
    }

    /// Runs the load on `storage`, which is idle at time 0.
    pub fn run(&self, storage: &mut dyn Storage, seed: u64) -> Outcome {
        let end_ns = (self.seconds * 1e9) as u64;
        let (mut state, mut now_ns, mut done) = (seed, 0, Vec::new());
        let mut counts = vec![0; self.streams as usize];
        // Requests of a stream are answered in any order; for latency the device's tags are numbers of requests.
        let mut open: Vec<(u64, u64)> = Vec::new();
        let (mut area, mut slowest, mut sum, mut finished) = (0.0, 0_u64, 0_u64, 0_u64);
        for window in 0..self.window {
            for stream in 0..self.streams {
                let tag = (window * self.streams + stream) as u32;
                open.push((stream, 0));
                let request = self.next(&mut state, (stream, counts[stream as usize]));
                counts[stream as usize] += 1;
                storage.submit(0, DeviceRequest { tag, ..request });
            }
        }
        loop {
            storage.advance(now_ns, &mut done);
            for tag in done.drain(..) {
                let (stream, sent_ns) = open[tag as usize];
                let latency_ns = now_ns - sent_ns;
                (slowest, sum, finished) =
                    (slowest.max(latency_ns), sum + latency_ns, finished + 1);
                let request = self.next(&mut state, (stream, counts[stream as usize]));
                counts[stream as usize] += 1;
                open[tag as usize].1 = now_ns;
                storage.submit(now_ns, DeviceRequest { tag, ..request });
            }
            let next_ns = storage
                .advance(now_ns, &mut done)
                .expect("requests are under way");
            assert!(next_ns > now_ns, "{next_ns} is not after {now_ns}");
            if next_ns > end_ns {
                break;
            }
            area += (next_ns - now_ns) as f64 * open.len() as f64;
            now_ns = next_ns;
        }
        let counters = storage.counters();
        let seconds = now_ns as f64 / 1e9;
        Outcome {
            mb_per_s: finished as f64 * f64::from(self.request_bytes) / 1e6 / seconds,
            latency_ms_max: slowest as f64 / 1e6,
            latency_ms_mean: sum as f64 / 1e6 / finished.max(1) as f64,
            positioning: counters.positioning_ns as f64 / now_ns as f64,
            requests_mean: area / now_ns as f64,
            requests_per_s: finished as f64 / seconds,
            counters,
        }
    }
}
