//! Network: `/proc/net/dev`, `/proc/net/snmp`.

use super::Collector;
use super::text::KernelFile;
use crate::glob;
use crate::sample::Sample;

#[derive(Debug)]
pub struct Network {
    devices: KernelFile,
    protocols: KernelFile,
    interfaces: Vec<String>,
}

impl Network {
    pub fn new(interfaces: Vec<String>) -> Self {
        Self {
            devices: KernelFile::new("/proc/net/dev"),
            protocols: KernelFile::new("/proc/net/snmp"),
            interfaces,
        }
    }
}

impl Collector for Network {
    fn sample(&mut self, sample: &mut Sample) {
        if let Some(text) = self.devices.read() {
            read_devices(text, &self.interfaces, sample);
        }
        if let Some(text) = self.protocols.read() {
            read_tcp(text, sample);
        }
    }
}

fn read_devices(text: &str, interfaces: &[String], sample: &mut Sample) {
    for line in text.lines().skip(2) {
        let Some((name, rest)) = line.split_once(':') else {
            continue;
        };
        let name = name.trim();
        let is_wanted = if interfaces.is_empty() {
            name != "lo"
        } else {
            interfaces.iter().any(|pattern| glob::fits(pattern, name))
        };
        let fields: Vec<f64> = rest
            .split_ascii_whitespace()
            .map_while(|it| it.parse().ok())
            .collect();
        if !is_wanted || fields.len() < 16 {
            continue;
        }
        for (what, place) in [
            ("received_bytes_per_s", 0),
            ("received_packets_per_s", 1),
            ("received_drops_per_s", 3),
            ("sent_bytes_per_s", 8),
            ("sent_packets_per_s", 9),
            ("sent_drops_per_s", 11),
        ] {
            sample.rate(&format!("network.{name}.{what}"), fields[place]);
        }
    }
}

/// Two lines a protocol: names, then values.
fn read_tcp(text: &str, sample: &mut Sample) {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Tcp:"));
    let (Some(names), Some(values)) = (lines.next(), lines.next()) else {
        return;
    };
    for (name, value) in names
        .split_ascii_whitespace()
        .zip(values.split_ascii_whitespace())
    {
        let Ok(value) = value.parse::<f64>() else {
            continue;
        };
        match name {
            "InSegs" => sample.rate("network.tcp.received_segments_per_s", value),
            "OutSegs" => sample.rate("network.tcp.sent_segments_per_s", value),
            "RetransSegs" => sample.rate("network.tcp.repeated_segments_per_s", value),
            "CurrEstab" => sample.level("network.tcp.connections", value),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn interfaces_and_retransmissions_are_read() {
        let mut sample = Sample::new(vec![], vec![], None);
        let start = Instant::now();
        for (second, bytes, repeated) in [(0, 1000, 1), (1, 3000, 4)] {
            sample.begin(start + Duration::from_secs(second));
            let device = format!("{bytes} 2 0 0 0 0 0 0 7 7 0 0 0 0 0 0");
            read_devices(
                &format!("a\nb\n eth0:{device}\n lo:{device}\n eth1: x\n"),
                &[],
                &mut sample,
            );
            read_tcp(
                &format!("Ip: x\nIp: 1\nTcp: CurrEstab RetransSegs Other\nTcp: 5 {repeated} -1\n"),
                &mut sample,
            );
        }
        assert_eq!(sample.value("network.eth0.received_bytes_per_s"), 2000.0);
        assert_eq!(sample.value("network.tcp.repeated_segments_per_s"), 3.0);
        assert_eq!(sample.value("network.tcp.connections"), 5.0);
        assert!(
            sample
                .names()
                .iter()
                .all(|name| !name.contains(".lo.") && !name.contains("eth1"))
        );
    }
}
