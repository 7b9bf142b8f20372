//! A flash drive: channels that work side by side behind one bus, and the garbage that they collect.

use super::translation::Translation;
use super::work::{Direction, Span};
use super::{NS_PER_MS, NS_PER_US};
use crate::scenario::Flash;

/// One direction of a channel.
#[derive(Clone, Copy, Debug)]
struct Speed {
    fixed_ns: f64,
    ns_per_byte: f64,
}

/// A request is spread over the channels by address. A channel does one thing after the other, the bus too.
///
/// Collecting garbage costs a channel time: for each erase block that its writes have used up, it reads and programs
/// again what was alive in the block collected for it, and erases it.
#[derive(Clone, Debug)]
pub(super) struct Drive {
    capacity_bytes: u64,
    unit_bytes: u64,
    speeds: [Speed; 2],
    bus_ns_per_byte: f64,
    erase_ns: f64,
    erase_bytes: f64,
    translation: Translation,
    free_ns: Vec<f64>,
    /// Bytes that each channel has used of its erase block.
    used: Vec<f64>,
    bus_free_ns: f64,
}

impl Drive {
    pub(super) fn new(spec: &Flash, seed: u64) -> Self {
        let channels = spec.channels.max(1) as usize;
        let speed = |fixed_us: f64, mb_per_s: f64| Speed {
            fixed_ns: fixed_us * NS_PER_US,
            ns_per_byte: 1e3 / mb_per_s,
        };
        Self {
            capacity_bytes: (spec.capacity_gb * 1e9) as u64,
            unit_bytes: u64::from(spec.channel_kib.max(1)) * 1024,
            speeds: [
                speed(spec.read_us, spec.channel_read_mb_per_s),
                speed(spec.write_us, spec.channel_write_mb_per_s),
            ],
            bus_ns_per_byte: 1e3 / spec.bus_mb_per_s,
            erase_ns: spec.erase_ms * NS_PER_MS,
            erase_bytes: spec.erase_block_mib * 1_048_576.0,
            translation: Translation::new(spec, seed),
            free_ns: vec![0.0; channels],
            used: vec![0.0; channels],
            bus_free_ns: 0.0,
        }
    }

    pub(super) fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    /// The time from `now_ns` until `span` is done, `factor` times as slowly as usual.
    pub(super) fn serve(&mut self, now_ns: f64, span: Span, factor: f64) -> f64 {
        let bus_ns = span.bytes as f64 * self.bus_ns_per_byte * factor;
        let done_ns = match span.direction {
            Direction::Read => {
                let read_ns = self.channels(now_ns, span, factor);
                // The bus carries what is read as it comes; it ends with the last unit at the earliest.
                self.bus_free_ns = self.bus_free_ns.max(now_ns) + bus_ns;
                self.bus_free_ns = self.bus_free_ns.max(read_ns);
                self.bus_free_ns
            }
            Direction::Write => {
                self.bus_free_ns = self.bus_free_ns.max(now_ns) + bus_ns;
                self.translation.write(span.position, span.bytes);
                self.channels(now_ns, span, factor).max(self.bus_free_ns)
            }
        };
        done_ns - now_ns
    }

    /// Queues the units of `span` on their channels; the instant at which the last one ends.
    fn channels(&mut self, now_ns: f64, span: Span, factor: f64) -> f64 {
        let Speed {
            fixed_ns,
            ns_per_byte,
        } = self.speeds[span.direction as usize];
        let (mut position, mut done_ns) = (span.position, now_ns);
        while position < span.end() {
            let unit = position / self.unit_bytes;
            let next = span.end().min((unit + 1) * self.unit_bytes);
            let channel = (unit % self.free_ns.len() as u64) as usize;
            let bytes = (next - position) as f64;
            let mut time_ns = fixed_ns + bytes * ns_per_byte;
            if span.direction == Direction::Write {
                time_ns += self.collect(channel, bytes);
            }
            self.free_ns[channel] = self.free_ns[channel].max(now_ns) + time_ns * factor;
            done_ns = done_ns.max(self.free_ns[channel]);
            position = next;
        }
        done_ns
    }

    /// The time of collecting for what `channel` has written, due whenever an erase block is used up.
    fn collect(&mut self, channel: usize, bytes: f64) -> f64 {
        let alive = self.translation.alive();
        // Of a block collected, the share that was alive is used up at once by what is moved there.
        self.used[channel] += bytes / (1.0 - alive);
        let blocks = (self.used[channel] / self.erase_bytes).floor();
        if blocks == 0.0 {
            return 0.0;
        }
        self.used[channel] -= blocks * self.erase_bytes;
        let [read, write] = self.speeds;
        blocks * (self.erase_ns + alive * self.erase_bytes * (read.ns_per_byte + write.ns_per_byte))
    }
}
