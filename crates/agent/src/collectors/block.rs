//! Block devices: `/proc/diskstats`, whose lines are what a device's `stat` says, and each device's `inflight`.

use std::collections::HashMap;
use std::path::Path;

use super::Collector;
use super::text::KernelFile;
use crate::glob;
use crate::sample::Sample;

#[derive(Debug)]
pub struct Block {
    file: KernelFile,
    devices: Vec<String>,
    state: HashMap<String, DeviceState>,
}

/// What is kept of a device between ticks.
#[derive(Debug)]
struct DeviceState {
    in_flight: KernelFile,
    /// The shortest mean latency that a tick has had.
    latency_min_ms: f64,
}

impl DeviceState {
    fn new(folder: &Path, name: &str) -> Self {
        Self {
            in_flight: KernelFile::new(folder.join(name).join("inflight")),
            latency_min_ms: f64::INFINITY,
        }
    }
}

impl Block {
    pub fn new(devices: Vec<String>) -> Self {
        Self {
            file: KernelFile::new("/proc/diskstats"),
            devices,
            state: HashMap::new(),
        }
    }
}

impl Collector for Block {
    fn sample(&mut self, sample: &mut Sample) {
        let Some(text) = self.file.read() else {
            return;
        };
        for line in text.lines() {
            read(line, &self.devices, &mut self.state, sample);
        }
    }
}

/// Disks where none is named: no partitions, no empty loop devices.
fn is_disk(name: &str) -> bool {
    !name.starts_with("loop")
        && !name.starts_with("ram")
        && std::path::Path::new("/sys/block").join(name).exists()
}

fn read(
    line: &str,
    devices: &[String],
    state: &mut HashMap<String, DeviceState>,
    sample: &mut Sample,
) {
    let mut words = line.split_ascii_whitespace().skip(2);
    let Some(name) = words.next() else {
        return;
    };
    let wanted = if devices.is_empty() {
        is_disk(name)
    } else {
        devices.iter().any(|pattern| glob::fits(pattern, name))
    };
    // See the kernel's Documentation/admin-guide/iostats.rst.
    let fields: Vec<f64> = words.map_while(|word| word.parse().ok()).collect();
    let [
        reads,
        read_merges,
        read_sectors,
        read_ms,
        writes,
        write_merges,
        write_sectors,
        write_ms,
        in_flight,
        busy_ms,
        queue_ms,
        ..,
    ] = fields[..]
    else {
        return;
    };
    if !wanted {
        return;
    }
    let key = |what: &str| format!("block.{name}.{what}");
    sample.rate(&key("read_ops_per_s"), reads);
    sample.rate(&key("write_ops_per_s"), writes);
    sample.scaled_rate(&key("read_bytes_per_s"), read_sectors, 512.0);
    sample.scaled_rate(&key("write_bytes_per_s"), write_sectors, 512.0);
    sample.rate(&key("read_merges_per_s"), read_merges);
    sample.rate(&key("write_merges_per_s"), write_merges);
    sample.ratio(&key("read_latency_ms"), read_ms, reads, 1.0);
    sample.ratio(&key("write_latency_ms"), write_ms, writes, 1.0);
    sample.level(&key("in_flight"), in_flight);
    sample.scaled_rate(&key("busy_share"), busy_ms, 1e-3);
    sample.scaled_rate(&key("queue_mean"), queue_ms, 1e-3);
    // The mean gap between two completions, and the latency beside the shortest one (thesis 3.1.2); no value where none came.
    if let Some((growth, seconds)) = sample.growth(&key("reply_gap_us"), reads + writes)
        && growth > 0.0
    {
        sample.level(&key("reply_gap_us"), seconds * 1e6 / growth);
    }
    let known = state
        .entry(name.to_owned())
        .or_insert_with(|| DeviceState::new(Path::new("/sys/block"), name));
    sample.ratio(&key("latency_ms"), read_ms + write_ms, reads + writes, 1.0);
    let latency_ms = f64::from(sample.value(&key("latency_ms")));
    if latency_ms > 0.0 {
        known.latency_min_ms = known.latency_min_ms.min(latency_ms);
        let ratio = 100.0 * latency_ms / known.latency_min_ms;
        sample.level(&key("latency_ratio_percent"), ratio);
    }
    if let Some((reads, writes)) = known.in_flight.read().and_then(in_flight_of) {
        sample.level(&key("reads_in_flight"), reads);
        sample.level(&key("writes_in_flight"), writes);
    }
}

/// What a device's `inflight` says: reads, then writes.
fn in_flight_of(text: &str) -> Option<(f64, f64)> {
    let mut words = text.split_ascii_whitespace();
    let mut next = || words.next()?.parse::<u32>().ok().map(f64::from);
    Some((next()?, next()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn rates_and_latencies_are_of_the_last_interval() {
        let mut sample = Sample::new(vec![], vec![], None);
        let start = Instant::now();
        let devices = ["vda".to_owned()];
        let mut state = HashMap::new();
        for (second, line) in [
            (0, "254 0 vda 100 5 2000 50 10 1 80 30 0 40 80 0 0 0 0"),
            (2, "254 0 vda 300 9 6000 250 10 1 80 30 3 1040 280 0 0 0 0"),
        ] {
            sample.begin(start + Duration::from_secs(second));
            read(line, &devices, &mut state, &mut sample);
            read(
                "254 1 vda1 1 1 1 1 1 1 1 1 1 1 1",
                &devices,
                &mut state,
                &mut sample,
            );
            read("garbage", &devices, &mut state, &mut sample);
            read("254 0 vda one two", &devices, &mut state, &mut sample);
        }
        for (name, expected) in [
            ("read_ops_per_s", 100.0),
            ("read_bytes_per_s", 1_024_000.0),
            ("read_latency_ms", 1.0),
            ("write_latency_ms", 0.0),
            ("in_flight", 3.0),
            ("busy_share", 0.5),
            ("queue_mean", 0.1),
            ("latency_ms", 1.0),
            ("latency_ratio_percent", 100.0),
            ("reply_gap_us", 10_000.0),
        ] {
            assert_eq!(
                sample.value(&format!("block.vda.{name}")),
                expected,
                "{name}"
            );
        }
        assert!(sample.names().iter().all(|name| !name.contains("vda1")));
    }

    #[test]
    fn what_is_in_flight_is_read_as_far_as_it_can_be() {
        assert_eq!(in_flight_of("       3        14\n"), Some((3.0, 14.0)));
        for text in ["", "3", "-1 2", "a b", "3 x"] {
            assert_eq!(in_flight_of(text), None, "{text}");
        }
    }

    #[test]
    fn a_latency_that_doubles_shows_in_the_ratio() {
        let mut sample = Sample::new(vec![], vec![], None);
        let (start, mut state) = (Instant::now(), HashMap::new());
        for (second, line) in [
            (0, "8 0 none 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0"),
            (1, "8 0 none 10 0 0 20 0 0 0 0 0 0 0 0 0 0 0"),
            (2, "8 0 none 15 0 0 30 5 0 0 30 0 0 0 0 0 0 0"),
        ] {
            sample.begin(start + Duration::from_secs(second));
            read(line, &["none".to_owned()], &mut state, &mut sample);
        }
        assert_eq!(sample.value("block.none.latency_ratio_percent"), 200.0);
        assert!(sample.value("block.none.reads_in_flight").is_nan());
    }
}
