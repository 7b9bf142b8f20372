//! What clients do, written down request by request while a rule manager wants to know: of its load, rules are chosen
//! (Li, 3.1.7). While nobody does, it costs a look at a flag.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ascar_plane::{RECORDED_MAX, RecordedKind, RecordedRequest, Recording};

use crate::clock;
use crate::protocol::{Access, Answer};

/// Numbers of files are told as whole numbers that every reader of JSON has.
const FILE_BITS: u32 = 53;

/// What FNV-1a begins with.
const HASH_BEGIN: u64 = 0xcbf2_9ce4_8422_2325;

/// A request that leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaving<'a> {
    /// A number of the connection.
    pub connection: u64,
    /// What it does.
    pub access: Access<'a>,
    /// What it moves, as far as that is known before its answer.
    pub size_bytes: u32,
    /// When the proxy has read it; what waited to be read before that is not seen.
    pub asked_us: u64,
    /// When it leaves.
    pub now_us: u64,
}

/// The place of a request that was written down, or none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The number of the recording; 0: none.
    recording: u32,
    row: u32,
}

/// Writes down what all streams do.
#[derive(Debug, Default)]
pub struct Recorder {
    is_on: AtomicBool,
    written: Mutex<Written>,
}

#[derive(Debug, Default)]
struct Written {
    /// Of the recordings so far.
    count: u32,
    begun: Duration,
    recording: Recording,
}

impl Recorder {
    /// Forgets what was written down, and begins anew.
    pub fn begin(&self, length: Duration) {
        let mut written = self.written();
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
        *written = Written {
            count: written.count.wrapping_add(1).max(1),
            begun: clock::now(),
            recording: Recording {
                begin_s: since_epoch.unwrap_or_default().as_secs_f64(),
                length,
                requests: Vec::new(),
            },
        };
        self.is_on.store(true, Ordering::Relaxed);
    }

    /// Ends, and gives away what was written down.
    pub fn take(&self) -> Recording {
        let mut written = self.written();
        self.is_on.store(false, Ordering::Relaxed);
        std::mem::take(&mut written.recording)
    }

    fn written(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cold]
    fn write_down(&self, leaving: &Leaving<'_>, stream: u64, server: u64) -> Place {
        let mut written = self.written();
        let begun = written.begun;
        let since = |at_us: u64| Duration::from_micros(at_us).checked_sub(begun);
        // One that was looked at before the beginning has not left after it.
        let Some(sent) = since(leaving.now_us) else {
            return Place::default();
        };
        let place = Place {
            recording: written.count,
            row: written.recording.requests.len() as u32,
        };
        let recording = &mut written.recording;
        let is_full = recording.requests.len() == RECORDED_MAX;
        if is_full {
            // It ends with the last one that there was room for.
            recording.length = recording.length.min(sent);
        }
        if sent >= recording.length {
            self.is_on.store(false, Ordering::Relaxed);
            return Place::default();
        }
        recording.requests.push(RecordedRequest {
            asked: since(leaving.asked_us),
            sent,
            answered: None,
            kind: leaving.access.kind,
            connection: leaving.connection,
            stream,
            file: hashed(server, leaving.access.name) >> (u64::BITS - FILE_BITS),
            offset_bytes: leaving.access.offset_bytes,
            size_bytes: leaving.size_bytes,
        });
        place
    }

    #[cold]
    fn on_answer(&self, place: Place, answer: &Answer, now: Duration) {
        let mut written = self.written();
        let answered = now.saturating_sub(written.begun);
        if place.recording != written.count || answered >= written.recording.length {
            return;
        }
        let requests = &mut written.recording.requests;
        // None where it was given away meanwhile.
        if let Some(request) = requests.get_mut(place.row as usize) {
            let moved_bytes = match request.kind {
                RecordedKind::Read => answer.read_bytes,
                RecordedKind::Write => answer.written_bytes,
                RecordedKind::Sync => 0,
            };
            request.answered = Some(answered);
            request.size_bytes = u32::try_from(moved_bytes).unwrap_or(u32::MAX);
        }
    }
}

/// One stream's part in it.
#[derive(Debug, Default)]
pub struct StreamRecord {
    recorder: Arc<Recorder>,
    stream: u64,
    /// What names on this server are hashed behind.
    server: u64,
}

impl StreamRecord {
    /// Of a stream with a number, to a server.
    #[must_use]
    pub fn new(recorder: Arc<Recorder>, stream: u64, server: &str) -> Self {
        Self {
            recorder,
            stream,
            server: hashed(HASH_BEGIN, server.as_bytes()),
        }
    }

    /// Whether somebody wants to know.
    #[inline]
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.recorder.is_on.load(Ordering::Relaxed)
    }

    /// A request leaves: where it was written down, which its answer names.
    #[inline]
    #[must_use]
    pub fn on_send(&self, leaving: &Leaving<'_>) -> Place {
        if self.is_on() {
            self.recorder.write_down(leaving, self.stream, self.server)
        } else {
            Place::default()
        }
    }

    /// A request was answered.
    #[inline]
    pub fn on_answer(&self, place: Place, answer: &Answer, now_us: u64) {
        if place != Place::default() {
            let now = Duration::from_micros(now_us);
            self.recorder.on_answer(place, answer, now);
        }
    }
}

/// FNV-1a of more bytes: servers and what they hold have numbers that all nodes share, which name them alike. Names
/// themselves are not told.
fn hashed(before: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(before, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaving(
        connection: u64,
        kind: RecordedKind,
        asked_us: u64,
        now_us: u64,
    ) -> Leaving<'static> {
        Leaving {
            connection,
            access: Access {
                kind,
                name: b"",
                offset_bytes: 8192,
            },
            size_bytes: 4096,
            asked_us,
            now_us,
        }
    }

    fn read(now_us: u64) -> Leaving<'static> {
        leaving(1, RecordedKind::Read, now_us, now_us)
    }

    /// An answer to a request that has moved so much.
    fn moved(read_bytes: u64, written_bytes: u64) -> Answer {
        Answer {
            sent: None,
            read_bytes,
            written_bytes,
            is_counted: false,
            writes: written_bytes > 0,
            is_overload: false,
        }
    }

    fn record(stream: u64) -> StreamRecord {
        StreamRecord::new(Arc::default(), stream, "unix:/s")
    }

    const HOUR: Duration = Duration::from_secs(3_600);

    #[test]
    fn nothing_is_written_down_while_nobody_wants_to_know() {
        let record = record(1);
        let place = record.on_send(&read(10));
        assert_eq!(place, Place::default());
        record.on_answer(place, &moved(4096, 0), 20);
        assert_eq!(record.recorder.take(), Recording::default());
    }

    #[test]
    fn answers_find_their_requests() {
        let record = record(7);
        record.recorder.begin(HOUR);
        let now_us = clock::now_us() + 1_000;
        let first = record.on_send(&leaving(1, RecordedKind::Read, now_us, now_us + 20));
        let second = record.on_send(&leaving(2, RecordedKind::Write, now_us, now_us + 30));
        let third = record.on_send(&leaving(2, RecordedKind::Sync, 0, now_us + 40));
        record.on_answer(second, &moved(9, 0), now_us + 90);
        record.on_answer(first, &moved(u64::MAX, 9), now_us + 100);
        let found = record.recorder.take().requests;
        let kinds: Vec<_> = found.iter().map(|it| (it.kind, it.size_bytes)).collect();
        let (read, write, sync) = (RecordedKind::Read, RecordedKind::Write, RecordedKind::Sync);
        assert_eq!(kinds, [(read, u32::MAX), (write, 0), (sync, 4096)]);
        let micros = |from: usize| {
            let one = &found[from];
            (one.answered.unwrap() - one.asked.unwrap()).as_micros()
        };
        assert_eq!((micros(0), micros(1)), (100, 90));
        assert_eq!((found[2].asked, found[2].answered), (None, None));
        assert!(found.iter().all(|it| it.stream == 7));
        record.on_answer(third, &moved(0, 0), now_us + 110);
        assert_eq!(record.recorder.take().requests, []);
    }

    #[test]
    fn an_answer_of_an_earlier_recording_is_nobodys() {
        let record = record(1);
        record.recorder.begin(HOUR);
        let place = record.on_send(&read(clock::now_us() + 10));
        record.recorder.begin(HOUR);
        let now_us = clock::now_us() + 10;
        let _ = record.on_send(&read(now_us));
        record.on_answer(place, &moved(0, 0), now_us + 10);
        let found = record.recorder.take().requests;
        assert_eq!((found.len(), found[0].answered), (1, None));
        assert_eq!(found[0].size_bytes, 4096);
    }

    #[test]
    fn what_is_kept_is_bounded_and_ends_where_room_ends() {
        let record = record(1);
        record.recorder.begin(HOUR);
        let begun_us = clock::now_us();
        for number in 0..(RECORDED_MAX as u64 + 10) {
            let _ = record.on_send(&read(begun_us + 100 + number));
        }
        assert!(!record.recorder.is_on.load(Ordering::Relaxed));
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
        let place = record.on_send(&read(now_us + 10));
        record.on_answer(place, &moved(4096, 0), now_us + 2_000_000);
        let late = record.on_send(&read(now_us + 2_000_000));
        assert_eq!(late, Place::default());
        let found = record.recorder.take().requests;
        assert_eq!((found.len(), found[0].answered), (1, None));
    }

    #[test]
    fn servers_and_what_they_hold_have_numbers_of_their_own() {
        let recorder = Arc::<Recorder>::default();
        recorder.begin(HOUR);
        let now_us = clock::now_us() + 10;
        let mut files = Vec::new();
        for server in ["tcp:a:1", "tcp:a:2", "unix:/a"] {
            let record = StreamRecord::new(Arc::clone(&recorder), 1, server);
            for name in [&b""[..], b"a", b"b"] {
                let mut leaving = read(now_us);
                leaving.access.name = name;
                assert_ne!(record.on_send(&leaving), Place::default());
                assert_ne!(record.on_send(&leaving), Place::default());
            }
        }
        for two in recorder.take().requests.chunks(2) {
            assert_eq!(two[0].file, two[1].file);
            assert!(two[0].file < 1 << FILE_BITS);
            files.push(two[0].file);
        }
        files.sort_unstable();
        files.dedup();
        assert_eq!(files.len(), 9);
    }
}
