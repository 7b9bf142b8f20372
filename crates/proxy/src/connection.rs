//! One client's connection, from its first word to its end: two threads, one for each direction.

use std::io;
use std::net::Shutdown;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use ascar_nbd::Malformed;

use crate::LOG;
use crate::http::Exchanges;
use crate::nbd::Blocks;
use crate::protocol::{Dialogue, LastWord, Protocol, Tell};
use crate::replies::Replies;
use crate::requests::Requests;
use crate::resp::Values;
use crate::side::Side;
use crate::socket::Socket;
use crate::stream::{LOOK, Member, Stream};
use crate::streams::Streams;
use crate::terms::Terms;
use crate::tls::told_by;

/// What a thread's stack may take; a few pages of it are ever touched.
pub const STACK_BYTES: usize = 128 << 10;

/// How long a server may take to answer a client that has ended its sending, or is gone.
pub const LINGER: Duration = Duration::from_secs(30);

/// How long a client may take to take in answers that can be kept for it.
const PATIENCE: Duration = Duration::from_millis(1);
/// How long a client may go on sending that has been told that it is over.
const PARTING: Duration = Duration::from_secs(2);

/// What such a client sends is read in pieces of this size.
const PIECE_BYTES: usize = 4 << 10;

/// Before it is looked again whether what comes before a last word has been written.
const WRITING_PAUSE: Duration = Duration::from_millis(1);

/// How often a silent server is looked at within its limit.
const LOOKS: u32 = 10;

/// Why a connection ends.
#[derive(Debug)]
pub enum End {
    /// One side has ended it, which needs no word.
    Closed,
    /// One side says what the protocol does not have, or the other cannot be reached.
    Broken(String),
    /// The server says nothing any more.
    Silent(String),
    /// What the client says is refused, and the client hears why.
    Refused {
        /// Why.
        why: String,
        /// What it hears, behind the answers to what it said before.
        answer: Vec<u8>,
    },
}

impl End {
    /// With whom it came to this end.
    #[must_use]
    pub fn with(self, whom: &str) -> Self {
        match self {
            Self::Broken(why) => Self::Broken(format!("{whom}: {why}")),
            other => other,
        }
    }

    /// What is to be said of it; None where no word is needed.
    #[must_use]
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::Closed => None,
            Self::Broken(why) | Self::Silent(why) | Self::Refused { why, .. } => Some(why),
        }
    }
}

impl From<io::Error> for End {
    /// A side that is gone while it is read or written, or says what is no TLS.
    fn from(error: io::Error) -> Self {
        told_by(&error).map_or(Self::Closed, Self::Broken)
    }
}

impl From<Malformed> for End {
    fn from(malformed: Malformed) -> Self {
        Self::Broken(malformed.0)
    }
}

/// Both sides, once requests may follow.
#[derive(Debug)]
pub struct Opened<D> {
    /// The client's side.
    pub client: Side,
    /// The server's side.
    pub server: Side,
    /// What they have agreed on.
    pub dialogue: D,
}

/// A connection once requests may follow, as its two threads share it.
#[derive(Debug)]
pub struct Connection<D> {
    /// The client's side.
    pub client: Side,
    /// The server's side.
    pub server: Side,
    /// All connections of this client to this server.
    pub stream: Arc<Stream>,
    /// This connection among them.
    pub member: Arc<Member>,
    /// How long the server may say nothing while it owes answers; None: for ever.
    pub answer_limit: Option<Duration>,
    dialogue: Mutex<D>,
    /// Counts the pieces of replies that have passed.
    pieces: AtomicU64,
    /// Counts the pieces of requests' data that the server has taken.
    taken: AtomicU64,
    /// Whether more of a request's data is waited for: the server cannot answer that one.
    is_partial: AtomicBool,
    /// Whether the client takes in no answers, although no more can be kept for it.
    is_choked: AtomicBool,
    /// Whether what the client is to hear of replies is being written.
    is_writing: AtomicBool,
    is_closed: AtomicBool,
    /// Whether the client is to see that what it has of a reply is not all.
    is_cut: AtomicBool,
    /// Whether nobody reads what the client says any more.
    is_read_out: AtomicBool,
}

/// Reads what a client says that has been told that it is over, until it ends that or has had its time: where something
/// is unread, closing a connection takes back what was written.
pub fn drain(client: &Side) {
    let until = Instant::now() + PARTING;
    let mut piece = [0; PIECE_BYTES];
    if client.socket().limit_reads(PARTING).is_err() {
        return;
    }
    while Instant::now() < until && client.read(&mut piece).is_ok_and(|count| count > 0) {}
}

impl<D: Dialogue> Connection<D> {
    /// What was said, and not answered.
    #[inline]
    pub fn dialogue(&self) -> MutexGuard<'_, D> {
        self.dialogue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether what both sides say passes as it comes.
    #[must_use]
    #[inline]
    pub fn passes(&self) -> bool {
        self.member.passes()
    }

    /// From now on what both sides say passes as it comes, for this reason.
    pub fn pass_unheld(&self, why: &str) {
        let mut dialogue = self.dialogue();
        let mut state = self.stream.state();
        if self.passes() {
            return;
        }
        let (requests, bytes) = dialogue.held();
        dialogue.forget();
        state.pass_unheld(&self.member, requests, bytes);
        drop(state);
        drop(dialogue);
        self.stream.wake(&self.member);
        let (client, server) = (self.stream.client(), self.stream.server());
        LOG.line(format_args!(
            "{client} to {server}: {why}; this connection passes unheld from now on"
        ));
    }

    /// Whether what waits has nothing to wait for any more.
    #[must_use]
    pub fn is_let_go(&self) -> bool {
        self.is_closed() || self.passes()
    }

    /// A piece of a reply passes.
    #[inline]
    pub fn on_piece(&self) {
        self.pieces.fetch_add(1, Ordering::Relaxed);
    }

    /// The server has taken a piece of a request's data.
    #[inline]
    pub fn on_taken(&self) {
        self.taken.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether more of a request's data is waited for, which the client has to send.
    #[inline]
    pub fn set_partial(&self, is_partial: bool) {
        self.is_partial.store(is_partial, Ordering::Relaxed);
    }

    /// How many pieces of requests' data the server has taken, and whether more of one's is waited for.
    #[must_use]
    pub fn data(&self) -> (u64, bool) {
        let is_partial = self.is_partial.load(Ordering::Relaxed);
        (self.taken.load(Ordering::Relaxed), is_partial)
    }

    /// Waits for the client to take in more, [`LOOK`] at most.
    ///
    /// # Errors
    /// When the connection is over, or the client cannot be waited for.
    pub fn wait_for_client(&self) -> Result<(), End> {
        let is_ready = self.client.socket().takes_more_within(LOOK)?;
        self.is_choked.store(!is_ready, Ordering::Relaxed);
        if self.is_closed() {
            return Err(End::Closed);
        }
        Ok(())
    }

    /// Whether the client takes in no answers, although no more can be kept for it.
    #[must_use]
    pub fn is_choked(&self) -> bool {
        self.is_choked.load(Ordering::Relaxed)
    }

    /// Whether what the client is to hear of replies is being written.
    #[inline]
    pub fn set_writing(&self, is_writing: bool) {
        self.is_writing.store(is_writing, Ordering::Release);
    }

    /// Whether it is over.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// Ends it on both sides, whatever waits.
    fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.client.shutdown(Shutdown::Both);
        self.server.shutdown(Shutdown::Both);
        self.stream.wake(&self.member);
    }

    /// Ends what both directions are done with; a client whose replies were cut is to see that.
    fn close_read_out(&self) {
        if !self.is_cut.load(Ordering::Acquire) {
            self.close();
        }
        self.stream.wake(&self.member);
    }

    /// Passes requests and replies on until one side ends.
    fn run(&self) -> Result<(), End> {
        thread::scope(|scope| {
            let replies = thread::Builder::new()
                .name("replies".to_owned())
                .stack_size(STACK_BYTES)
                .spawn_scoped(scope, || {
                    let ended = Replies::new(self).run();
                    let is_told = self.on_server_end(&ended);
                    match ended {
                        Ok(()) | Err(End::Closed) if is_told => Err(End::Broken(
                            "the server has ended the connection without an answer".to_owned(),
                        )),
                        other => other,
                    }
                });
            let replies = match replies {
                Ok(thread) => thread,
                Err(error) => return Err(End::Broken(format!("a thread: {error}"))),
            };
            let ended = Requests::new(self).run();
            self.stream.state().end_turn(&self.member, false);
            self.on_client_end(&ended);
            self.is_read_out.store(true, Ordering::Release);
            self.close_read_out();
            let replied = replies.join().unwrap_or(Err(End::Closed));
            let worth_a_word = |end: &End| end.why().is_some();
            match (ended.err(), replied.err()) {
                (Some(end), _) | (_, Some(end)) if worth_a_word(&end) => Err(end),
                _ => Ok(()),
            }
        })
    }

    /// The server has ended, or is left: what the client is still to hear of that, and whether that was an answer.
    fn on_server_end(&self, ended: &Result<(), End>) -> bool {
        self.set_writing(false);
        let word = if self.is_read_out.load(Ordering::Acquire) {
            LastWord::Close // it was left because its client has left
        } else {
            self.dialogue().last_word(ended)
        };
        if word == LastWord::Close {
            self.close();
            return false;
        }
        self.give_up();
        let mut is_told = false;
        match word {
            LastWord::Close | LastWord::Told => {}
            LastWord::Cut => {
                self.is_cut.store(true, Ordering::Release);
                self.is_closed.store(true, Ordering::Release);
                self.client.cut();
                self.server.shutdown(Shutdown::Both);
                self.stream.wake(&self.member);
                return false;
            }
            LastWord::Part(word) => {
                is_told = !word.is_empty();
                // A client that is gone needs no word.
                let _ = self.client.write_all(&word);
                self.part();
            }
        }
        let until = Instant::now() + PARTING;
        let is_read_out = || self.is_read_out.load(Ordering::Acquire);
        while !is_read_out() && Instant::now() < until {
            let moves = self.stream.state().moves();
            self.stream.wait_for_move(&self.member, moves, is_read_out);
        }
        self.close();
        is_told
    }

    /// The client has ended its sending, or is left, or the server takes no more of it.
    fn on_client_end(&self, ended: &Result<(), End>) {
        match ended {
            Err(End::Refused { answer, .. }) => {
                self.tell(answer);
                self.give_up();
                self.part();
                drain(&self.client);
            }
            Err(End::Broken(_) | End::Silent(_)) => {}
            Ok(()) if D::ENDS_WITH_CLIENT => {}
            _ if !D::ENDS_WITH_CLIENT => {
                // What was asked before may still be answered, or has been and is not the client's yet.
                self.server.shutdown(Shutdown::Write);
                self.linger();
            }
            _ => {
                // The server may have said why before it took no more.
                self.linger();
                drain(&self.client);
            }
        }
    }

    /// Says something of its own to the client, behind the answers to what it said before.
    fn tell(&self, answer: &[u8]) {
        let until = Instant::now() + LINGER;
        loop {
            let (_, is_partial) = self.data();
            let may = self.dialogue().tell(is_partial);
            match may {
                Tell::Now => break,
                Tell::Never => return,
                Tell::Later if self.is_closed() || Instant::now() >= until => return,
                Tell::Later if self.client.socket().has_hung_up() => return,
                Tell::Later => thread::sleep(WRITING_PAUSE),
            }
        }
        while self.is_writing.load(Ordering::Acquire) && !self.is_closed() {
            thread::sleep(WRITING_PAUSE);
        }
        // A client that is gone needs no word.
        let _ = self.client.write_all(answer);
    }

    /// Leaves the server, and tells the client that nothing follows.
    fn part(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.server.shutdown(Shutdown::Both);
        self.client.shutdown(Shutdown::Write);
        self.stream.wake(&self.member);
    }

    /// Gives back the places of what nobody will answer.
    fn give_up(&self) {
        let mut dialogue = self.dialogue();
        let (requests, bytes) = dialogue.held();
        dialogue.forget();
        self.stream.state().give_up(requests, bytes);
    }

    /// Waits for the server to end, as long as it goes on answering somebody.
    fn linger(&self) {
        let pieces = || self.pieces.load(Ordering::Relaxed);
        let (mut since, mut before) = (Instant::now(), pieces());
        while !self.is_closed() {
            if D::ENDS_WITH_CLIENT && self.client.socket().has_hung_up() {
                return;
            }
            let moves = self.stream.state().moves();
            self.stream
                .wait_for_move(&self.member, moves, || self.is_closed());
            let now = pieces();
            if now != before {
                (since, before) = (Instant::now(), now);
            } else if since.elapsed() >= LINGER {
                self.close();
            }
        }
    }
}

/// Serves a client until its end.
pub fn serve(client: Socket, terms: &Terms, streams: &Streams) {
    let who = match client.peer() {
        Ok(who) => who,
        Err(_) => return,
    };
    let (end, ended) = match terms.protocol {
        Protocol::Nbd => carry::<Blocks>(client, &who, terms, streams),
        Protocol::Resp => carry::<Values>(client, &who, terms, streams),
        Protocol::Http => carry::<Exchanges>(client, &who, terms, streams),
    };
    let Err(end) = end else { return };
    let server = terms.server.to_string();
    match (&end, ended) {
        (End::Closed, _) => {}
        (End::Silent(_), _) => streams.count(&server, |gone| gone.silent += 1),
        (End::Broken(_), Ended::Early) => streams.count(&server, |gone| gone.refused += 1),
        (End::Broken(_) | End::Refused { .. }, _) => {}
    }
    if let Some(why) = end.why() {
        LOG.line(format_args!("{who} to {server}: {why}; it is closed"));
    }
}

/// When a connection has ended.
enum Ended {
    /// Before there were requests.
    Early,
    Later,
}

/// Opens a connection, and passes on what is said on it until its end.
fn carry<D: Dialogue>(
    client: Socket,
    who: &str,
    terms: &Terms,
    streams: &Streams,
) -> (Result<(), End>, Ended) {
    let say = |text: &str| LOG.line(format_args!("{who} to {}: {text}", terms.server));
    match D::open(client, terms, &say) {
        Ok(opened) => (carried(opened, who, terms, streams), Ended::Later),
        Err(end) => (Err(end), Ended::Early),
    }
}

/// Requests and replies.
fn carried<D: Dialogue>(
    opened: Opened<D>,
    who: &str,
    terms: &Terms,
    streams: &Streams,
) -> Result<(), End> {
    let Opened {
        client,
        server,
        dialogue,
    } = opened;
    // Where its answers are kept for it, a client is not waited for.
    client.limit_writes((D::KEPT_BYTES_MAX > 0).then_some(PATIENCE))?;
    server.limit_writes(Some(LOOK))?;
    if let Some(limit) = D::CLIENT_LIMIT {
        client.socket().limit_reads(limit)?;
    }
    if let Some(limit) = terms.answer_limit {
        server.socket().limit_reads((limit / LOOKS).min(LOOK))?;
    }
    let (stream, member) = streams.join(who, &terms.server.to_string());
    let connection = Connection {
        client,
        server,
        stream,
        member,
        answer_limit: terms.answer_limit,
        dialogue: Mutex::new(dialogue),
        pieces: AtomicU64::new(0),
        taken: AtomicU64::new(0),
        is_partial: AtomicBool::new(false),
        is_choked: AtomicBool::new(false),
        is_writing: AtomicBool::new(false),
        is_closed: AtomicBool::new(false),
        is_cut: AtomicBool::new(false),
        is_read_out: AtomicBool::new(false),
    };
    let ended = connection.run();
    let (requests, bytes) = connection.dialogue().held();
    streams.leave(&connection.stream, &connection.member, requests, bytes);
    ended
}
