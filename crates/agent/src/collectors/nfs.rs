//! Mounts of NFS, each operation by itself, and the transport below them: `/proc/self/mountstats`.
//!
//! A stock client keeps no EWMA of acknowledgements and no ratio of process times. What can be had honestly is made here
//! from its totals: the mean gap between two replies and between two transmissions over a tick, and the mean round trip
//! beside the shortest one that a tick has had (thesis 3.1.2). An average of single gaps needs a look at each reply, which
//! this file does not give; `[[average]]` makes one of the ticks' means.

use std::collections::HashMap;

use super::Collector;
use super::text::KernelFile;
use crate::glob;
use crate::sample::Sample;

/// Most mounts that are read, and most operations of one: no kernel has more than about 80.
const MOUNTS_MAX: usize = 64;
const OPERATIONS_MAX: usize = 128;

/// The collector.
#[derive(Debug)]
pub struct Nfs {
    file: KernelFile,
    mounts: Vec<String>,
    /// The shortest mean round trip seen, by indicator.
    trip_min_ms: HashMap<String, f64>,
}

impl Nfs {
    /// Of mounts whose places fit one of these patterns; of all where there is none.
    pub fn new(mounts: Vec<String>) -> Self {
        Self {
            file: KernelFile::new("/proc/self/mountstats"),
            mounts,
            trip_min_ms: HashMap::new(),
        }
    }
}

impl Collector for Nfs {
    fn sample(&mut self, sample: &mut Sample) {
        let Some(text) = self.file.read() else {
            return;
        };
        for mount in parse(text) {
            if glob::fits_any(&self.mounts, mount.place) {
                mount.tell(&mut self.trip_min_ms, sample);
            }
        }
    }
}

/// What the kernel counts of a mount; all of it grows but `slots` and `connections`.
#[derive(Debug, Default)]
pub struct MountTotals<'a> {
    /// Where it is mounted, as the kernel writes it: a space is `\040`.
    pub place: &'a str,
    /// Bytes that programs read and wrote through the page cache and past it, and that the server was asked for.
    bytes: Option<[f64; 6]>,
    transport: Option<Transport>,
    operations: Vec<Operation<'a>>,
}

/// The connections of a mount together (`nconnect`); the kernel adds the length of a queue up at each transmission.
#[derive(Debug, Default)]
struct Transport {
    connections: f64,
    sends: f64,
    replies: f64,
    in_flight: f64,
    backlog: f64,
    slots: f64,
    waiting_to_send: f64,
    waiting_for_reply: f64,
}

#[derive(Debug)]
struct Operation<'a> {
    name: &'a str,
    count: f64,
    transmissions: f64,
    timeouts: f64,
    sent_bytes: f64,
    received_bytes: f64,
    queue_ms: f64,
    trip_ms: f64,
    execute_ms: f64,
    errors: f64,
}

/// The mounts of NFS in `/proc/self/mountstats`; what cannot be read is left out.
pub fn parse(text: &str) -> Vec<MountTotals<'_>> {
    let mut found: Vec<MountTotals<'_>> = Vec::new();
    let mut is_nfs = false;
    let mut is_operations = false;
    for line in text.lines() {
        if line.starts_with("device ") {
            is_operations = false;
            let words: Vec<&str> = line.split_ascii_whitespace().take(8).collect();
            is_nfs = matches!(
                words[..],
                [_, _, "mounted", "on", _, "with", "fstype", "nfs" | "nfs4"]
            ) && found.len() < MOUNTS_MAX;
            if is_nfs {
                found.push(MountTotals {
                    place: words[4],
                    ..MountTotals::default()
                });
            }
            continue;
        }
        let (true, Some(mount)) = (is_nfs, found.last_mut()) else {
            continue;
        };
        let line = line.trim_start();
        if line.starts_with("per-op statistics") {
            is_operations = true;
        } else if is_operations {
            if mount.operations.len() < OPERATIONS_MAX {
                mount.operations.extend(operation(line));
            }
        } else if let Some(rest) = line.strip_prefix("bytes:") {
            mount.bytes = numbers(rest).get(..6).and_then(|six| six.try_into().ok());
        } else if let Some(rest) = line.strip_prefix("xprt:") {
            connection(rest, &mut mount.transport);
        }
    }
    found
}

fn numbers(text: &str) -> Vec<f64> {
    text.split_ascii_whitespace()
        .map_while(|word| word.parse::<i64>().ok())
        .map(|number| number as f64)
        .collect()
}

/// `READ: 5 5 0 720 163840 2 31 40 0`; kernels before 5.3 count no errors.
fn operation(line: &str) -> Option<Operation<'_>> {
    let (name, rest) = line.split_once(':')?;
    let is_name = (1..=32).contains(&name.len())
        && name
            .bytes()
            .all(|it| it.is_ascii_uppercase() || it.is_ascii_digit() || it == b'_');
    if !is_name {
        return None;
    }
    let all = numbers(rest);
    let &[
        count,
        transmissions,
        timeouts,
        sent_bytes,
        received_bytes,
        queue_ms,
        trip_ms,
        execute_ms,
        ref more @ ..,
    ] = &all[..]
    else {
        return None;
    };
    Some(Operation {
        name,
        count,
        transmissions,
        timeouts,
        sent_bytes,
        received_bytes,
        queue_ms,
        trip_ms,
        execute_ms,
        errors: more.first().copied().unwrap_or(0.0),
    })
}

/// One connection, `tcp 0 0 2 0 0 231 231 0 3496 0 30 1946 2431`, as `xs_tcp_print_stats` and its siblings write it.
fn connection(line: &str, transport: &mut Option<Transport>) {
    let Some((kind, rest)) = line.trim_start().split_once(char::is_whitespace) else {
        return;
    };
    // What comes before the transmissions: ports, binds, connects, times.
    let before = match kind {
        "tcp" | "local" => 5,
        "udp" => 2,
        _ => return,
    };
    let all = numbers(rest);
    let Some(
        &[
            sends,
            replies,
            _,
            in_flight,
            backlog,
            slots,
            sending,
            pending,
        ],
    ) = all.get(before..).and_then(|rest| rest.first_chunk::<8>())
    else {
        return;
    };
    let sum = transport.get_or_insert_default();
    sum.connections += 1.0;
    sum.sends += sends;
    sum.replies += replies;
    sum.in_flight += in_flight;
    sum.backlog += backlog;
    sum.slots += slots;
    sum.waiting_to_send += sending;
    sum.waiting_for_reply += pending;
}

impl MountTotals<'_> {
    fn tell(&self, trip_min_ms: &mut HashMap<String, f64>, sample: &mut Sample) {
        let key = |what: &str| format!("nfs.{}.{what}", self.place);
        if let Some(
            [
                read,
                write,
                direct_read,
                direct_write,
                server_read,
                server_write,
            ],
        ) = self.bytes
        {
            sample.rate(&key("read_bytes_per_s"), read + direct_read);
            sample.rate(&key("write_bytes_per_s"), write + direct_write);
            sample.rate(&key("server_read_bytes_per_s"), server_read);
            sample.rate(&key("server_write_bytes_per_s"), server_write);
        }
        if let Some(it) = &self.transport {
            sample.level(&key("connections"), it.connections);
            sample.level(&key("slots"), it.slots);
            sample.ratio(&key("in_flight_mean"), it.in_flight, it.sends, 1.0);
            sample.ratio(&key("backlog_mean"), it.backlog, it.sends, 1.0);
            sample.ratio(
                &key("waiting_to_send_mean"),
                it.waiting_to_send,
                it.sends,
                1.0,
            );
            sample.ratio(
                &key("waiting_for_reply_mean"),
                it.waiting_for_reply,
                it.sends,
                1.0,
            );
            tell_gap(&key("send_gap_us"), it.sends, sample);
            tell_gap(&key("reply_gap_us"), it.replies, sample);
        }
        let all = |of: fn(&Operation<'_>) -> f64| self.operations.iter().map(of).sum::<f64>();
        sample.rate(&key("ops_per_s"), all(|it| it.count));
        sample.rate(&key("timeouts_per_s"), all(|it| it.timeouts));
        // Transmissions may be counted a moment before their operation is, so that the difference falls.
        sample.rate(&key("transmissions_per_s"), all(|it| it.transmissions));
        for operation in self.operations.iter().filter(|it| it.count > 0.0) {
            operation.tell(
                &key(&operation.name.to_ascii_lowercase()),
                trip_min_ms,
                sample,
            );
        }
    }
}

impl Operation<'_> {
    fn tell(&self, key: &str, trip_min_ms: &mut HashMap<String, f64>, sample: &mut Sample) {
        sample.rate(&format!("{key}.ops_per_s"), self.count);
        sample.rate(&format!("{key}.transmissions_per_s"), self.transmissions);
        sample.rate(&format!("{key}.timeouts_per_s"), self.timeouts);
        sample.rate(&format!("{key}.errors_per_s"), self.errors);
        sample.rate(&format!("{key}.sent_bytes_per_s"), self.sent_bytes);
        sample.rate(&format!("{key}.received_bytes_per_s"), self.received_bytes);
        sample.ratio(&format!("{key}.queue_ms"), self.queue_ms, self.count, 1.0);
        sample.ratio(
            &format!("{key}.execute_ms"),
            self.execute_ms,
            self.count,
            1.0,
        );
        let trip = format!("{key}.round_trip_ms");
        sample.ratio(&trip, self.trip_ms, self.count, 1.0);
        let mean_ms = f64::from(sample.value(&trip));
        // Only what moves data takes so long that the kernel's milliseconds say something.
        if mean_ms > 0.0 && matches!(self.name, "READ" | "WRITE") {
            let least = trip_min_ms.entry(trip).or_insert(mean_ms);
            *least = least.min(mean_ms);
            let ratio = 100.0 * mean_ms / *least;
            sample.level(&format!("{key}.round_trip_ratio_percent"), ratio);
        }
    }
}

/// The mean gap over the tick; no value where nothing came.
fn tell_gap(key: &str, total: f64, sample: &mut Sample) {
    if let Some((growth, seconds)) = sample.growth(key, total)
        && growth > 0.0
    {
        sample.level(key, seconds * 1e6 / growth);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    const RECORDED: &str = include_str!("../../data/mountstats");
    const LATER: &str = include_str!("../../data/mountstats-later");

    fn told(texts: &[&str]) -> Sample {
        let mut sample = Sample::new(vec![], vec![], None);
        let mut least = HashMap::new();
        let start = Instant::now();
        for (tick, text) in texts.iter().enumerate() {
            sample.begin(start + Duration::from_millis(100 * tick as u64));
            for mount in parse(text) {
                mount.tell(&mut least, &mut sample);
            }
        }
        sample
    }

    #[test]
    fn a_recorded_client_is_read() {
        let mounts = parse(RECORDED);
        assert_eq!(mounts.len(), 1, "what is no NFS has no counters");
        let mount = &mounts[0];
        assert_eq!(mount.place, "/mnt/data");
        let write = mount
            .operations
            .iter()
            .find(|it| it.name == "WRITE")
            .unwrap();
        assert!(write.count > 0.0 && write.transmissions >= write.count);
        assert_eq!(
            mount.transport.as_ref().unwrap().connections,
            2.0,
            "nconnect=2"
        );
    }

    #[test]
    fn two_looks_make_rates_gaps_and_ratios() {
        let sample = told(&[RECORDED, LATER]);
        let value = |what: &str| f64::from(sample.value(&format!("nfs./mnt/data.{what}")));
        let growth = |of: fn(&Operation<'_>) -> f64| {
            let sum = |text| -> f64 { parse(text)[0].operations.iter().map(of).sum() };
            sum(LATER) - sum(RECORDED)
        };
        assert!((value("ops_per_s") - growth(|it| it.count) / 0.1).abs() < 0.01);
        let sends = |text| parse(text)[0].transport.as_ref().unwrap().sends;
        let gap_us = 1e5 / (sends(LATER) - sends(RECORDED));
        assert!((value("send_gap_us") - gap_us).abs() < 0.001 * gap_us);
        for what in [
            "read.round_trip_ms",
            "in_flight_mean",
            "reply_gap_us",
            "slots",
        ] {
            assert!(value(what) > 0.0, "{what}");
        }
        assert_eq!(value("read.round_trip_ratio_percent"), 100.0);
        assert_eq!(value("timeouts_per_s"), 0.0);
    }

    #[test]
    fn nothing_comes_is_no_gap_of_zero() {
        let sample = told(&[RECORDED, RECORDED]);
        assert!(sample.value("nfs./mnt/data.reply_gap_us").is_nan());
        assert_eq!(sample.value("nfs./mnt/data.ops_per_s"), 0.0);
    }

    #[test]
    fn a_mount_that_was_made_anew_says_nothing_once() {
        let sample = told(&[LATER, RECORDED]);
        assert!(sample.value("nfs./mnt/data.ops_per_s").is_nan());
    }

    #[test]
    fn garbage_is_left_out() {
        for (from, to) in [
            ("xprt:", "xprt"),
            ("tcp ", "rdma "),
            ("fstype nfs4", "fstype ext4"),
            ("READ: ", "READ: -"),
            ("READ: ", "read: "),
            ("READ: ", "READ: 99999999999999999999 "),
            ("per-op statistics", "per-op"),
            ("bytes:\t", "bytes:\tx "),
        ] {
            let text = RECORDED.replace(from, to);
            assert_ne!(text, RECORDED, "{from}");
            told(&[&text, &text]);
        }
        let half = &RECORDED[..RECORDED.len() / 2];
        assert_eq!(parse(half).len(), 1);
        let many = "device a mounted on /a with fstype nfs\n".repeat(1000);
        assert_eq!(parse(&many).len(), MOUNTS_MAX);
    }
}
