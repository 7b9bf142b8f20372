//! The control socket: a line of JSON is asked, and a line of JSON is the answer (docs/messaging.md). Who may open the
//! socket, its user and root, may ask; what is asked may still be anything, so all of it is bounded.

use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use ascar_plane::{Asked, Endpoint, Told};

use crate::LOG;
use crate::clock;
use crate::kept::Keeping;
use crate::plane::ProxyPlane;

/// The longest line that is read, that of a message.
const LINE_BYTES_MAX: usize = 1 << 20;

/// Connections at one time.
const CONNECTIONS_MAX: usize = 8;

/// How long an answer may wait for somebody to read it.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);

/// How long one who is too many waits for a place, and then may take to ask: others wait meanwhile.
const REFUSED_LIMIT: Duration = Duration::from_millis(200);

/// What a piece of a line is read into.
const PIECE_BYTES: usize = 4096;

/// Of threads that parse what may be deep.
const STACK_BYTES: usize = 1 << 20;

/// Answers rule managers.
#[derive(Debug)]
pub struct Control {
    endpoint: Mutex<Endpoint<ProxyPlane>>,
    /// Where what is kept is written down; taken while the endpoint is held.
    keeping: Mutex<Option<Keeping>>,
    /// The number of the last tick, and its word.
    beat: Mutex<(u64, String)>,
    beaten: Condvar,
    open: AtomicUsize,
}

impl Control {
    /// For an endpoint; what it keeps is written down where there is a place for it.
    #[must_use]
    pub fn new(endpoint: Endpoint<ProxyPlane>, keeping: Option<Keeping>) -> Self {
        Self {
            endpoint: Mutex::new(endpoint),
            keeping: Mutex::new(keeping),
            beat: Mutex::default(),
            beaten: Condvar::new(),
            open: AtomicUsize::new(0),
        }
    }

    /// The endpoint.
    pub fn endpoint(&self) -> MutexGuard<'_, Endpoint<ProxyPlane>> {
        self.endpoint.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends rules whose time is over; a line for each.
    pub fn expire(&self) -> Vec<String> {
        let mut endpoint = self.endpoint();
        let now = clock::now();
        let lines = std::iter::from_fn(|| endpoint.expire(now)).collect();
        self.note(&endpoint);
        lines
    }

    /// Answers a request. What is kept by it is on disk before it is said.
    fn answer(&self, asked: &Asked) -> Told {
        let mut endpoint = self.endpoint();
        let told = endpoint.answer(asked, clock::now());
        self.note(&endpoint);
        // Who asks here means whoever is here.
        told.unwrap_or_else(|| Told::refusal("workload: is another's"))
    }

    fn note(&self, endpoint: &Endpoint<ProxyPlane>) {
        let mut keeping = self.keeping.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(keeping) = &mut *keeping {
            keeping.note(endpoint);
        }
    }

    /// A tick is over: all who listen are told.
    pub fn tick(&self, tick_s: f64, mb_per_s: f64) {
        let told = self.endpoint().beat(tick_s, mb_per_s);
        let mut beat = self.beat.lock().unwrap_or_else(PoisonError::into_inner);
        *beat = (beat.0 + 1, told.to_line());
        drop(beat);
        self.beaten.notify_all();
    }

    /// Answers whoever connects, from now on.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn listen(self: &Arc<Self>, listener: UnixListener) -> io::Result<()> {
        let control = Arc::clone(self);
        thread::Builder::new()
            .name("control".to_owned())
            .spawn(move || {
                for client in listener.incoming() {
                    match client {
                        Ok(client) => control.take_in(client),
                        Err(error) => {
                            LOG.line(format_args!("control: {error}"));
                            thread::sleep(Duration::from_millis(100));
                        }
                    }
                }
            })?;
        Ok(())
    }

    fn take_in(self: &Arc<Self>, client: UnixStream) {
        let _ = client.set_write_timeout(Some(ANSWER_LIMIT));
        // One that has been answered and is closed may still be counted.
        let until = Instant::now() + REFUSED_LIMIT;
        while self.open.load(Ordering::Acquire) >= CONNECTIONS_MAX && Instant::now() < until {
            thread::sleep(REFUSED_LIMIT / 20);
        }
        if self.open.fetch_add(1, Ordering::AcqRel) >= CONNECTIONS_MAX {
            self.open.fetch_sub(1, Ordering::AcqRel);
            refuse(client);
            return;
        }
        let control = Arc::clone(self);
        let started = thread::Builder::new()
            .name("manager".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || {
                // Who is gone needs no answer.
                let _ = control.serve(client);
                control.open.fetch_sub(1, Ordering::AcqRel);
            });
        if let Err(error) = started {
            LOG.line(format_args!("control: a thread: {error}"));
            self.open.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Answers one manager, line by line. What cannot be read as a message is refused, and ends the connection.
    fn serve(&self, mut client: UnixStream) -> io::Result<()> {
        let mut lines = Lines::default();
        while let Some(line) = lines.next(&mut client)? {
            let asked = line.and_then(|line| Asked::parse(&line));
            match asked {
                Err(reason) => return say(&mut client, &Told::refusal(&reason).to_line()),
                Ok(Asked::Listen {}) => return self.tell_ticks(client),
                Ok(asked) => say(&mut client, &self.answer(&asked).to_line())?,
            }
        }
        Ok(())
    }

    /// Tells every tick, until nobody listens any more.
    fn tell_ticks(&self, mut client: UnixStream) -> io::Result<()> {
        let mut beat = self.beat.lock().unwrap_or_else(PoisonError::into_inner);
        let mut told = beat.0;
        loop {
            beat = self
                .beaten
                .wait_while(beat, |beat| beat.0 == told)
                .unwrap_or_else(PoisonError::into_inner);
            told = beat.0;
            let line = beat.1.clone();
            drop(beat);
            say(&mut client, &line)?;
            beat = self.beat.lock().unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Refuses one who is too many. What is asked is read first: else the end of the connection would overtake the reason.
fn refuse(mut client: UnixStream) {
    let _ = client.set_read_timeout(Some(REFUSED_LIMIT));
    let (begun, mut piece) = (Instant::now(), [0; PIECE_BYTES]);
    while begun.elapsed() < REFUSED_LIMIT {
        match client.read(&mut piece) {
            Ok(count) if count > 0 && !piece[..count].contains(&b'\n') => {}
            _ => break,
        }
    }
    let why = format!("connections: {CONNECTIONS_MAX} are open; close one");
    let _ = say(&mut client, &Told::refusal(&why).to_line());
}

fn say(client: &mut UnixStream, line: &str) -> io::Result<()> {
    client.write_all(format!("{line}\n").as_bytes())
}

/// The lines of a connection.
#[derive(Debug, Default)]
struct Lines {
    read: Vec<u8>,
}

impl Lines {
    /// The next line without its end, or why it is none; None at the end.
    fn next(&mut self, from: &mut impl Read) -> io::Result<Option<Result<Vec<u8>, String>>> {
        let mut looked = 0;
        loop {
            if let Some(end) = self.read[looked..].iter().position(|byte| *byte == b'\n') {
                let rest = self.read.split_off(looked + end + 1);
                let mut line = std::mem::replace(&mut self.read, rest);
                line.pop();
                return Ok(Some(Ok(line)));
            }
            looked = self.read.len();
            if looked > LINE_BYTES_MAX {
                let why = format!("message: more than {LINE_BYTES_MAX} bytes in a line");
                return Ok(Some(Err(why)));
            }
            let mut piece = [0; PIECE_BYTES];
            match from.read(&mut piece) {
                Ok(0) => return Ok(None),
                Ok(count) => self.read.extend_from_slice(&piece[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_wherever_pieces_end() {
        let mut lines = Lines::default();
        let mut from = io::Cursor::new(b"{}\n\n[1]\nrest".to_vec());
        let mut next = || lines.next(&mut from).unwrap();
        assert_eq!(next(), Some(Ok(b"{}".to_vec())));
        assert_eq!(next(), Some(Ok(Vec::new())));
        assert_eq!(next(), Some(Ok(b"[1]".to_vec())));
        assert_eq!(next(), None);
    }

    #[test]
    fn a_line_without_end_is_refused() {
        let mut lines = Lines::default();
        let said = lines.next(&mut io::repeat(b'x')).unwrap().unwrap();
        assert!(said.unwrap_err().contains("bytes in a line"));
        assert!(lines.read.len() <= LINE_BYTES_MAX + PIECE_BYTES);
    }
}
