//! What clients do, written down request by request while a rule manager wants to know: of its load, rules are chosen
//! (Li, 3.1.7). While nobody does, it costs a look at a flag.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ascar_nbd::{Command, Request};
use ascar_plane::{RECORDED_MAX, RecordedKind, RecordedRequest, Recording};

use crate::clock;

/// Numbers of files are told as whole numbers that every reader of JSON has.
const FILE_BITS: u32 = 53;

/// Writes down what all streams do.
#[derive(Debug, Default)]
pub struct Recorder {
    is_on: AtomicBool,
    written: Mutex<Written>,
}

#[derive(Debug, Default)]
struct Written {
    begun: Duration,
    recording: Recording,
    /// Places of those in flight, by connection and cookie.
    in_flight: HashMap<(u64, u64), usize>,
}

impl Recorder {
    /// Forgets what was written down, and begins anew.
    pub fn begin(&self, length: Duration) {
        let mut written = self.written();
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
        *written = Written {
            begun: clock::now(),
            recording: Recording {
                begin_s: since_epoch.unwrap_or_default().as_secs_f64(),
                length,
                requests: Vec::new(),
            },
            in_flight: HashMap::new(),
        };
        self.is_on.store(true, Ordering::Relaxed);
    }

    /// Ends, and gives away what was written down.
    pub fn take(&self) -> Recording {
        let mut written = self.written();
        self.is_on.store(false, Ordering::Relaxed);
        std::mem::take(&mut *written).recording
    }

    #[inline]
    fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    fn written(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cold]
    fn on_send(&self, request: RecordedRequest, cookie: u64, times: (Duration, Duration)) {
        let mut written = self.written();
        let (asked, now) = times;
        // One that was looked at before the beginning.
        let Some(sent) = now.checked_sub(written.begun) else {
            return;
        };
        let recording = &mut written.recording;
        if sent >= recording.length {
            self.is_on.store(false, Ordering::Relaxed);
            return;
        }
        if recording.requests.len() == RECORDED_MAX {
            // It ends with the last one that there was room for.
            recording.length = sent;
            self.is_on.store(false, Ordering::Relaxed);
            return;
        }
        let place = recording.requests.len();
        recording.requests.push(RecordedRequest { sent, ..request });
        let asked = asked.checked_sub(written.begun);
        written.recording.requests[place].asked = asked;
        written
            .in_flight
            .insert((request.connection, cookie), place);
    }

    #[cold]
    fn on_answer(&self, of: (u64, u64), has_failed: bool, now: Duration) {
        let mut written = self.written();
        let Some(place) = written.in_flight.remove(&of) else {
            return;
        };
        let answered = now.saturating_sub(written.begun);
        if answered < written.recording.length {
            let request = &mut written.recording.requests[place];
            request.answered = Some(answered);
            if has_failed {
                request.size_bytes = 0;
            }
        }
    }
}

/// One stream's part in it.
#[derive(Debug, Default)]
pub struct StreamRecord {
    recorder: Arc<Recorder>,
    stream: u64,
    file: u64,
}

impl StreamRecord {
    /// Of a stream with a number, to a server.
    #[must_use]
    pub fn new(recorder: Arc<Recorder>, stream: u64, server: &str) -> Self {
        Self {
            recorder,
            stream,
            file: file_number(server),
        }
    }

    /// A request of a connection leaves; it came with what was read at `asked_us`, or waited to be read before that.
    #[inline]
    pub fn on_send(&self, connection: u64, request: &Request, asked_us: u64, now_us: u64) {
        if self.recorder.is_on() {
            self.write_down(connection, request, asked_us, now_us);
        }
    }

    /// A connection's request was answered.
    #[inline]
    pub fn on_answer(&self, connection: u64, cookie: u64, has_failed: bool, now_us: u64) {
        if self.recorder.is_on() {
            let now = Duration::from_micros(now_us);
            self.recorder
                .on_answer((connection, cookie), has_failed, now);
        }
    }

    #[cold]
    fn write_down(&self, connection: u64, request: &Request, asked_us: u64, now_us: u64) {
        let kind = match request.command {
            Command::Read => RecordedKind::Read,
            Command::Write => RecordedKind::Write,
            Command::Flush => RecordedKind::Sync,
            // These move nothing, and say little of the load.
            _ => return,
        };
        let is_sync = kind == RecordedKind::Sync;
        let row = RecordedRequest {
            asked: None,
            sent: Duration::ZERO,
            answered: None,
            kind,
            connection,
            stream: self.stream,
            file: self.file,
            offset_bytes: request.offset_bytes,
            size_bytes: if is_sync { 0 } else { request.length_bytes },
        };
        let times = [asked_us, now_us].map(Duration::from_micros);
        self.recorder.on_send(row, request.cookie, times.into());
    }
}

/// A number of a server that all nodes share, which name it alike: FNV-1a of its address.
fn file_number(server: &str) -> u64 {
    let hash = server
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    hash >> (u64::BITS - FILE_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(command: Command, cookie: u64) -> Request {
        Request {
            flags: 0,
            command,
            cookie,
            offset_bytes: 8192,
            length_bytes: 4096,
        }
    }

    fn record(stream: u64) -> StreamRecord {
        StreamRecord::new(Arc::default(), stream, "unix:/s")
    }

    #[test]
    fn nothing_is_written_down_while_nobody_wants_to_know() {
        let record = record(1);
        record.on_send(1, &request(Command::Read, 1), 5, 10);
        assert_eq!(record.recorder.take(), Recording::default());
    }

    #[test]
    fn requests_are_found_by_connection_and_cookie() {
        let record = record(7);
        record.recorder.begin(Duration::from_secs(3_600));
        let now_us = clock::now_us() + 1_000;
        record.on_send(1, &request(Command::Read, 5), now_us, now_us + 20);
        record.on_send(2, &request(Command::Write, 5), now_us, now_us + 30);
        record.on_send(2, &request(Command::Flush, 6), 0, now_us + 40);
        record.on_send(2, &request(Command::Trim, 7), now_us, now_us + 50);
        record.on_answer(2, 5, true, now_us + 90);
        record.on_answer(1, 5, false, now_us + 100);
        record.on_answer(1, 99, false, now_us + 100);
        let found = record.recorder.take().requests;
        let kinds: Vec<_> = found.iter().map(|it| (it.kind, it.size_bytes)).collect();
        let (read, write, sync) = (RecordedKind::Read, RecordedKind::Write, RecordedKind::Sync);
        assert_eq!(kinds, [(read, 4096), (write, 0), (sync, 0)]);
        let micros = |from: usize| {
            let one = &found[from];
            (one.answered.unwrap() - one.asked.unwrap()).as_micros()
        };
        assert_eq!((micros(0), micros(1)), (100, 90));
        assert_eq!((found[2].asked, found[2].answered), (None, None));
        assert!(found.iter().all(|it| it.stream == 7));
    }

    #[test]
    fn what_is_kept_is_bounded_and_ends_where_room_ends() {
        let record = record(1);
        record.recorder.begin(Duration::from_secs(3_600));
        let begun_us = clock::now_us();
        for number in 0..(RECORDED_MAX as u64 + 10) {
            let now_us = begun_us + 100 + number;
            record.on_send(1, &request(Command::Read, number), now_us, now_us);
        }
        assert!(!record.recorder.is_on());
        let found = record.recorder.take();
        assert_eq!(found.requests.len(), RECORDED_MAX);
        assert!(found.requests.iter().all(|it| it.sent < found.length));
        assert!(found.length < Duration::from_secs(2));
    }

    #[test]
    fn it_ends_in_time() {
        let record = record(1);
        record.recorder.begin(Duration::from_secs(1));
        let now_us = clock::now_us();
        record.on_send(1, &request(Command::Read, 1), now_us, now_us + 10);
        record.on_answer(1, 1, false, now_us + 2_000_000);
        record.on_send(1, &request(Command::Read, 2), now_us, now_us + 2_000_000);
        let found = record.recorder.take().requests;
        assert_eq!((found.len(), found[0].answered), (1, None));
    }

    #[test]
    fn servers_have_numbers_of_their_own() {
        let numbers = ["tcp:a:1", "tcp:a:2", "unix:/a"].map(file_number);
        assert!(numbers[0] != numbers[1] && numbers[1] != numbers[2]);
        assert!(numbers.iter().all(|it| *it < 1 << FILE_BITS));
    }
}
