//! The JSON lines: fill, readings, summary, lists. Units end the keys.

use std::io::Write;

use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};

use crate::LoadError;
use crate::definition::{Definition, Flowop};
use crate::personality::Personality;
use crate::quantity::Quantity;
use crate::reading::{Account, FlowopAccount, Reader};

/// Latencies in milliseconds; all `None` without an operation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Mean.
    pub latency_ms_mean: Option<f64>,
    /// Median.
    pub latency_ms_p50: Option<f64>,
    /// 95th percentile.
    pub latency_ms_p95: Option<f64>,
    /// 99th percentile.
    pub latency_ms_p99: Option<f64>,
    /// Largest.
    pub latency_ms_max: Option<f64>,
}

impl Latency {
    fn of(account: &Account) -> Latency {
        let milli = |nanos: f64| (nanos / 10.0).round() / 1e5;
        let max = account.max_nanos as f64;
        // A bucket's middle may lie above the largest time in it.
        let parts = account
            .histogram
            .percentiles([0.5, 0.95, 0.99])
            .map(|parts| parts.map(|part| part.min(max)));
        let of = |place: usize| parts.map(|parts| milli(parts[place]));
        Latency {
            latency_ms_mean: (account.ops > 0)
                .then(|| milli(account.nanos as f64 / account.ops as f64)),
            latency_ms_p50: of(0),
            latency_ms_p95: of(1),
            latency_ms_p99: of(2),
            latency_ms_max: parts.map(|_| milli(max)),
        }
    }
}

#[derive(Serialize)]
struct FlowopLine {
    r#type: &'static str,
    ops: u64,
    bytes: u64,
    #[serde(flatten)]
    latency: Latency,
}

/// Flowops as a JSON object in the order of the workload.
struct Flowops<'a>(&'a [FlowopAccount], fn(&FlowopAccount) -> &Account);

impl Serialize for Flowops<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for flowop in self.0 {
            let account = (self.1)(flowop);
            let line = FlowopLine {
                r#type: flowop.kind.word(),
                ops: account.ops,
                bytes: account.bytes,
                latency: Latency::of(account),
            };
            map.serialize_entry(&flowop.name, &line)?;
        }
        map.end()
    }
}

/// Cumulative latency distributions: pairs of milliseconds and share, by flowop.
struct Distributions<'a>(&'a [FlowopAccount]);

impl Serialize for Distributions<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for flowop in self.0 {
            let pairs = flowop.total.histogram.distribution();
            let pairs: Vec<(f64, f64)> = pairs
                .into_iter()
                .map(|(nanos, share)| (nanos / 1e6, share))
                .collect();
            map.serialize_entry(&flowop.name, &pairs)?;
        }
        map.end()
    }
}

#[derive(Serialize)]
struct Body<'a> {
    ops: u64,
    bytes: u64,
    throughput_ops_per_s: f64,
    bytes_per_s: f64,
    read_bytes_per_s: f64,
    write_bytes_per_s: f64,
    #[serde(flatten)]
    latency: Latency,
    flowops: Flowops<'a>,
}

impl<'a> Body<'a> {
    fn of(reader: &'a Reader, seconds: f64, of: fn(&FlowopAccount) -> &Account) -> Body<'a> {
        let all = reader.all(of);
        let (read, written) = reader.bytes(of);
        let rate = |count: u64| {
            if seconds > 0.0 {
                round(count as f64 / seconds)
            } else {
                0.0
            }
        };
        Body {
            ops: all.ops,
            bytes: all.bytes,
            throughput_ops_per_s: rate(all.ops),
            bytes_per_s: rate(all.bytes),
            read_bytes_per_s: rate(read),
            write_bytes_per_s: rate(written),
            latency: Latency::of(&all),
            flowops: Flowops(&reader.flowops, of),
        }
    }
}

#[derive(Serialize)]
struct ReadingLine<'a> {
    kind: &'static str,
    /// Since the run began, at the end of the interval.
    seconds: f64,
    interval_s: f64,
    #[serde(flatten)]
    body: Body<'a>,
}

/// What the summary tells beside the counts.
#[derive(Debug, Clone, Serialize)]
pub struct Facts {
    /// Personality or file.
    pub workload: String,
    /// Factor of the data set.
    pub scale: f64,
    /// Threads in all.
    pub threads: u32,
    /// Seed.
    pub seed: u64,
    /// Bytes of the files before the run.
    pub data_bytes: u64,
    /// Files before the run.
    pub data_files: u64,
    /// Why the run ended: time, signal, finished.
    pub ended: &'static str,
    /// Operations left out because no file was to be had within a second, or others had the file to delete open.
    pub starved: u64,
    /// Passes that arrived a second, in an open loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<f64>,
    /// Passes that had arrived, and not begun, when the run ended; their latencies are in no figure.
    pub waiting: u64,
    /// Threads still in a system call when the summary was made.
    pub threads_late: u32,
    /// From the program's start until the first operation could begin, fill included.
    pub start_s: f64,
}

#[derive(Serialize)]
struct SummaryLine<'a> {
    kind: &'static str,
    load_s: f64,
    #[serde(flatten)]
    facts: &'a Facts,
    #[serde(flatten)]
    body: Body<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    latency_cdf_ms: Option<Distributions<'a>>,
}

/// What a fill did.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct FillLine {
    /// Always "fill".
    pub kind: &'static str,
    /// Files of the data set.
    pub files: u64,
    /// Bytes of the data set.
    pub bytes: u64,
    /// Files that had to be made.
    pub files_made: u64,
    /// How long it took, flushing included.
    pub fill_s: f64,
}

/// To microseconds: more digits would be noise, and make lines longer.
fn round(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

/// Where lines go.
pub struct Output<'a>(pub &'a mut dyn Write);

impl Output<'_> {
    /// Write a value as one line.
    ///
    /// # Errors
    /// Nobody reads it any more.
    pub fn line(&mut self, value: &impl Serialize) -> Result<(), LoadError> {
        let text = serde_json::to_string(value).expect("reports are plain JSON");
        let written = writeln!(self.0, "{text}").and_then(|()| self.0.flush());
        written.map_err(|e| LoadError::Work(format!("cannot write the readings: {e}")))
    }

    /// A reading of the interval that just ended.
    ///
    /// # Errors
    /// Nobody reads it any more.
    pub fn reading(
        &mut self,
        reader: &Reader,
        seconds: f64,
        interval_s: f64,
    ) -> Result<(), LoadError> {
        let body = Body::of(reader, interval_s, |flowop| &flowop.interval);
        let (seconds, interval_s) = (round(seconds), round(interval_s));
        self.line(&ReadingLine {
            kind: "reading",
            seconds,
            interval_s,
            body,
        })
    }

    /// The summary of the run.
    ///
    /// # Errors
    /// Nobody reads it any more.
    pub fn summary(
        &mut self,
        reader: &Reader,
        load_s: f64,
        facts: &Facts,
        cdf: bool,
    ) -> Result<(), LoadError> {
        let body = Body::of(reader, load_s, |flowop| &flowop.total);
        let latency_cdf_ms = cdf.then(|| Distributions(&reader.flowops));
        self.line(&SummaryLine {
            kind: "summary",
            load_s: round(load_s),
            facts,
            body,
            latency_cdf_ms,
        })
    }

    /// A built-in workload.
    ///
    /// # Errors
    /// Nobody reads it any more.
    pub fn personality(&mut self, personality: &Personality) -> Result<(), LoadError> {
        self.line(&serde_json::json!({
            "kind": "personality",
            "name": personality.name,
            "aliases": personality.aliases,
            "description": personality.description(),
        }))
    }

    /// What a workload is.
    ///
    /// # Errors
    /// Nobody reads it any more.
    pub fn description(
        &mut self,
        name: &str,
        text: &str,
        definition: &Definition,
    ) -> Result<(), LoadError> {
        let filesets = definition.filesets.iter().map(|set| {
            serde_json::json!({
                "name": set.name,
                "entries": set.entries,
                "prealloc_files": set.prealloc_files(),
                "mean_size_bytes": set.size_bytes.mean(),
                "expected_bytes": set.expected_bytes(),
                "dirwidth": set.dirwidth,
            })
        });
        let filesets: Vec<_> = filesets.collect();
        let groups: Vec<_> = definition
            .groups
            .iter()
            .map(|group| {
                let flowops: Vec<_> = group.flowops.iter().map(|flowop| describe(flowop, definition)).collect();
                serde_json::json!({
                    "process": group.process, "thread": group.name, "threads": group.threads, "flowops": flowops,
                })
            })
            .collect();
        self.line(&serde_json::json!({
            "kind": "description",
            "workload": name,
            "threads": definition.threads(),
            "expected_bytes": definition.expected_bytes(),
            "events_per_s": definition.event_rate_per_s,
            "run_s": definition.run_s,
            "filesets": filesets,
            "groups": groups,
            "wml": text,
        }))
    }
}

fn describe(flowop: &Flowop, definition: &Definition) -> serde_json::Value {
    let size = |quantity: &Quantity| quantity.mean();
    serde_json::json!({
        "name": flowop.name,
        "type": flowop.kind.word(),
        "fileset": flowop.fileset.map(|place| &definition.filesets[place].name),
        "iters": flowop.iters,
        "iosize_bytes_mean": size(&flowop.iosize_bytes),
        "value_mean": size(&flowop.value),
        "random": flowop.random,
        "directio": flowop.directio,
        "dsync": flowop.dsync,
    })
}
