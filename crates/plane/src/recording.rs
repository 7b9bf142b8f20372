//! What a plane's clients did in a while, written down request by request, and told in parts that fit a message.

use std::time::Duration;

use serde::Serialize;

/// Requests that are written down at most; a longer recording ends after them.
pub const RECORDED_MAX: usize = 100_000;

/// Requests in a message, which stays far below the largest one.
const PART_ROWS: usize = 4_000;

/// Offsets that are told; what lies beyond is told as this.
const OFFSET_MAX: u64 = 1 << 62;

/// What a request does, by its number in a trace (Li, 3.1.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordedKind {
    /// Reads.
    Read = 0,
    /// Writes.
    Write = 1,
    /// Has what was written made durable.
    Sync = 5,
}

/// A request. Times count from the beginning of the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedRequest {
    /// When its client asked; None: before the beginning.
    pub asked: Option<Duration>,
    /// When it left for its server.
    pub sent: Duration,
    /// When it was answered; None: not before the end.
    pub answered: Option<Duration>,
    /// What it does.
    pub kind: RecordedKind,
    /// Whose it is: a number of the client's connection.
    pub connection: u64,
    /// A number of its stream.
    pub stream: u64,
    /// A number of what it is to, the same on all nodes.
    pub file: u64,
    /// Where it begins.
    pub offset_bytes: u64,
    /// What it moves, 0 where it failed; while it is not answered, what it was asked to.
    pub size_bytes: u32,
}

/// What clients did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    /// When it began, by the time of day.
    pub begin_s: f64,
    /// How long it lasted.
    pub length: Duration,
    /// Requests in the order in which they left.
    pub requests: Vec<RecordedRequest>,
}

/// Requests as their clients asked, or as they went to servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum What {
    /// As clients asked: latency counts from then, so that waiting for a window or a pace is in it.
    Operations,
    /// As they left.
    Requests,
}

/// A part of a recording, a column each.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Part {
    /// The controller that answers.
    pub controller: String,
    /// The number of parts; None: the recording is not over, and the rest says nothing.
    pub parts: Option<usize>,
    /// Of what its rows are.
    pub what: What,
    /// When each began, by the time of day.
    pub seconds: Vec<f64>,
    /// What each does.
    pub operation: Vec<u8>,
    /// Its connection, or its stream.
    pub thread: Vec<u64>,
    /// What it is to.
    pub file: Vec<u64>,
    /// Where it begins.
    pub offset_bytes: Vec<u64>,
    /// What it moves.
    pub size_bytes: Vec<u32>,
    /// How long it took; None: it was under way at the end.
    pub latency_s: Vec<Option<f64>>,
    /// The beginning of the recording.
    pub begin_s: f64,
    /// Its end; nothing is known of what began then or later.
    pub end_s: f64,
    /// Requests of a stream that waited to leave, over time.
    pub waiting_mean: f64,
    /// Bytes in caches of clients: a proxy sees none.
    pub dirty_bytes: f64,
    /// And the most that these may hold.
    pub dirty_limit_bytes: f64,
}

impl Part {
    /// The part of a recording that is not over.
    #[must_use]
    pub fn none_yet(controller: &str) -> Self {
        Self {
            controller: controller.to_owned(),
            parts: None,
            what: What::Operations,
            seconds: Vec::new(),
            operation: Vec::new(),
            thread: Vec::new(),
            file: Vec::new(),
            offset_bytes: Vec::new(),
            size_bytes: Vec::new(),
            latency_s: Vec::new(),
            begin_s: 0.0,
            end_s: 0.0,
            waiting_mean: 0.0,
            dirty_bytes: 0.0,
            dirty_limit_bytes: 0.0,
        }
    }

    fn add(&mut self, what: What, one: &RecordedRequest) {
        let (began, thread) = match what {
            What::Operations => (one.asked.unwrap_or_default(), one.connection),
            What::Requests => (one.sent, one.stream),
        };
        let took = one.answered.map(|at| at.saturating_sub(began));
        self.seconds.push(self.begin_s + began.as_secs_f64());
        self.operation.push(one.kind as u8);
        self.thread.push(thread);
        self.file.push(one.file);
        self.offset_bytes.push(one.offset_bytes.min(OFFSET_MAX));
        self.size_bytes.push(one.size_bytes);
        self.latency_s.push(took.map(|took| took.as_secs_f64()));
    }
}

/// A recording that is over, ready to be told.
#[derive(Clone, Debug, PartialEq)]
pub struct Parted {
    recording: Recording,
    /// Places of requests by the time at which their clients asked.
    operations: Vec<usize>,
    /// Places of those that move data: servers see no others in the simulation either.
    requests: Vec<usize>,
    waiting_mean: f64,
}

impl From<Recording> for Parted {
    fn from(recording: Recording) -> Self {
        let all = &recording.requests;
        let mut operations: Vec<usize> = (0..all.len())
            .filter(|place| all[*place].asked.is_some())
            .collect();
        operations.sort_by_key(|place| all[*place].asked);
        let requests = (0..all.len())
            .filter(|place| all[*place].kind != RecordedKind::Sync)
            .collect();
        let waiting_mean = waiting_mean(&recording);
        Self {
            operations,
            requests,
            waiting_mean,
            recording,
        }
    }
}

impl Parted {
    /// How many parts it has, one at least.
    #[must_use]
    pub fn count(&self) -> usize {
        let (of_operations, of_requests) = self.counts();
        (of_operations + of_requests).max(1)
    }

    fn counts(&self) -> (usize, usize) {
        let parts = |rows: &[usize]| rows.len().div_ceil(PART_ROWS);
        (parts(&self.operations), parts(&self.requests))
    }

    /// A part by its number, from 0; None where there are no more.
    #[must_use]
    pub fn part(&self, controller: &str, number: u64) -> Option<Part> {
        let number = usize::try_from(number).ok()?;
        let count = self.count();
        if number >= count {
            return None;
        }
        let (of_operations, _) = self.counts();
        let (what, places, at) = if number < of_operations.max(1) {
            (What::Operations, &self.operations, number)
        } else {
            (What::Requests, &self.requests, number - of_operations)
        };
        let Recording {
            begin_s, length, ..
        } = self.recording;
        let mut part = Part {
            parts: Some(count),
            what,
            begin_s,
            end_s: begin_s + length.as_secs_f64(),
            waiting_mean: self.waiting_mean,
            ..Part::none_yet(controller)
        };
        for place in places.iter().skip(at * PART_ROWS).take(PART_ROWS) {
            part.add(what, &self.recording.requests[*place]);
        }
        Some(part)
    }
}

/// How many requests of a stream waited to leave, over the recording: by Little's law, the sum of their waits over time.
fn waiting_mean(recording: &Recording) -> f64 {
    let mut streams: Vec<u64> = recording.requests.iter().map(|it| it.stream).collect();
    streams.sort_unstable();
    streams.dedup();
    let waits = recording.requests.iter();
    let waited_s: f64 = waits
        .map(|it| it.sent.saturating_sub(it.asked.unwrap_or_default()))
        .map(|waited| waited.as_secs_f64())
        .sum();
    let time_s = recording.length.as_secs_f64() * streams.len() as f64;
    if time_s > 0.0 { waited_s / time_s } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(number: u64) -> RecordedRequest {
        RecordedRequest {
            asked: Some(Duration::from_millis(number)),
            sent: Duration::from_millis(number + 10),
            answered: Some(Duration::from_millis(number + 15)),
            kind: RecordedKind::Write,
            connection: 3,
            stream: 2,
            file: 1,
            offset_bytes: number * 4096,
            size_bytes: 4096,
        }
    }

    fn parted(requests: Vec<RecordedRequest>) -> Parted {
        Parted::from(Recording {
            begin_s: 1e9,
            length: Duration::from_secs(10),
            requests,
        })
    }

    #[test]
    fn latency_counts_from_the_asking_or_from_the_sending() {
        let parted = parted(vec![request(0)]);
        assert_eq!(parted.count(), 2);
        let operations = parted.part("c", 0).unwrap();
        assert_eq!(operations.what, What::Operations);
        assert_eq!(
            (operations.thread[0], operations.latency_s[0]),
            (3, Some(0.015))
        );
        let requests = parted.part("c", 1).unwrap();
        assert_eq!(requests.what, What::Requests);
        assert_eq!(
            (requests.thread[0], requests.latency_s[0]),
            (2, Some(0.005))
        );
        assert_eq!(requests.seconds[0], 1e9 + 0.01);
        assert_eq!((requests.begin_s, requests.end_s), (1e9, 1e9 + 10.0));
        assert!(parted.part("c", 2).is_none() && parted.part("c", u64::MAX).is_none());
    }

    #[test]
    fn nothing_is_one_part_without_rows() {
        let nothing = parted(Vec::new());
        assert_eq!(nothing.count(), 1);
        let part = nothing.part("c", 0).unwrap();
        assert_eq!(
            (part.parts, part.seconds.len(), part.waiting_mean),
            (Some(1), 0, 0.0)
        );
    }

    #[test]
    fn parts_hold_all_once_and_in_order() {
        // In the order of leaving, which is not that of asking here.
        let late = RecordedRequest {
            asked: Some(Duration::ZERO),
            ..request(8_500)
        };
        let early = RecordedRequest {
            asked: None,
            ..request(0)
        };
        let sync = RecordedRequest {
            kind: RecordedKind::Sync,
            answered: None,
            ..request(8_000)
        };
        let mut all = vec![early];
        all.extend((1..8_000).map(request));
        all.extend([sync, late]);
        let parted = parted(all);
        let parts: Vec<Part> = (0..parted.count() as u64)
            .map(|number| parted.part("c", number).unwrap())
            .collect();
        let rows = |what: What| -> Vec<f64> {
            let of = parts.iter().filter(|part| part.what == what);
            of.flat_map(|part| part.seconds.clone()).collect()
        };
        let (operations, requests) = (rows(What::Operations), rows(What::Requests));
        assert_eq!((operations.len(), requests.len()), (8_001, 8_001));
        assert!(operations.is_sorted() && requests.is_sorted());
        assert!(parts.iter().all(|part| part.seconds.len() <= PART_ROWS));
        let largest = parts.iter().map(|part| {
            let line = serde_json::to_string(part).unwrap();
            line.len()
        });
        assert!(largest.max().unwrap() < 1 << 19);
    }

    #[test]
    fn waits_of_streams_are_counted_over_time() {
        let other = RecordedRequest {
            stream: 9,
            sent: Duration::from_secs(6),
            asked: Some(Duration::from_secs(1)),
            ..request(0)
        };
        // 5 s of one stream's 10, and 10 ms of the other's.
        let waiting = parted(vec![request(0), other]).waiting_mean;
        assert!((waiting - 5.01 / 20.0).abs() < 1e-12, "{waiting}");
    }
}
