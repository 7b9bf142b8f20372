//! Block devices: `/proc/diskstats`.

use super::Collector;
use super::text::KernelFile;
use crate::glob;
use crate::sample::Sample;

#[derive(Debug)]
pub struct Block {
    file: KernelFile,
    devices: Vec<String>,
}

impl Block {
    pub fn new(devices: Vec<String>) -> Self {
        Self {
            file: KernelFile::new("/proc/diskstats"),
            devices,
        }
    }
}

impl Collector for Block {
    fn sample(&mut self, sample: &mut Sample) {
        let Some(text) = self.file.read() else {
            return;
        };
        for line in text.lines() {
            read(line, &self.devices, sample);
        }
    }
}

/// Disks where none is named: no partitions, no empty loop devices.
fn is_disk(name: &str) -> bool {
    !name.starts_with("loop")
        && !name.starts_with("ram")
        && std::path::Path::new("/sys/block").join(name).exists()
}

fn read(line: &str, devices: &[String], sample: &mut Sample) {
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
        for (second, line) in [
            (0, "254 0 vda 100 5 2000 50 10 1 80 30 0 40 80 0 0 0 0"),
            (2, "254 0 vda 300 9 6000 250 10 1 80 30 3 1040 280 0 0 0 0"),
        ] {
            sample.begin(start + Duration::from_secs(second));
            read(line, &devices, &mut sample);
            read("254 1 vda1 1 1 1 1 1 1 1 1 1 1 1", &devices, &mut sample);
            read("garbage", &devices, &mut sample);
            read("254 0 vda one two", &devices, &mut sample);
        }
        for (name, expected) in [
            ("read_ops_per_s", 100.0),
            ("read_bytes_per_s", 1_024_000.0),
            ("read_latency_ms", 1.0),
            ("write_latency_ms", 0.0),
            ("in_flight", 3.0),
            ("busy_share", 0.5),
            ("queue_mean", 0.1),
        ] {
            assert_eq!(
                sample.value(&format!("block.vda.{name}")),
                expected,
                "{name}"
            );
        }
        assert!(sample.names().iter().all(|name| !name.contains("vda1")));
    }
}
