//! One client's connection, from its negotiation to its end: two threads, one for each direction.

use std::io;
use std::net::Shutdown;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use ascar_nbd::Malformed;

use crate::LOG;
use crate::address::Address;
use crate::negotiation::{Negotiated, negotiate};
use crate::pending::Pending;
use crate::replies::Replies;
use crate::requests::Requests;
use crate::socket::Socket;
use crate::stream::{LOOK, Member, Stream};
use crate::streams::Streams;

/// The memory for what passes in one direction.
pub const BUFFER_BYTES: usize = 64 << 10;

/// What a thread's stack may take; a few pages of it are ever touched.
pub const STACK_BYTES: usize = 128 << 10;

/// How long a server may take to answer a client that has ended its sending, or is gone.
pub const LINGER: Duration = Duration::from_secs(30);

/// Why a connection ends.
#[derive(Debug)]
pub enum End {
    /// One side has ended it, which needs no word.
    Closed,
    /// One side says what the protocol does not have, or the other cannot be reached.
    Broken(String),
}

impl From<io::Error> for End {
    /// A side that is gone while it is read or written.
    fn from(_: io::Error) -> Self {
        Self::Closed
    }
}

impl From<Malformed> for End {
    fn from(malformed: Malformed) -> Self {
        Self::Broken(malformed.0)
    }
}

/// A connection after its negotiation, as its two threads share it.
#[derive(Debug)]
pub struct Connection {
    /// The client's side.
    pub client: Socket,
    /// The server's side.
    pub server: Socket,
    /// All connections of this client to this server.
    pub stream: Arc<Stream>,
    /// This connection among them.
    pub member: Arc<Member>,
    /// Whether replies to reads are structured.
    pub structured_replies: bool,
    pending: Mutex<Pending>,
    /// Counts the pieces of replies that have passed.
    pieces: AtomicU64,
    is_closed: AtomicBool,
}

impl Connection {
    /// What was sent and not answered.
    #[inline]
    pub fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A piece of a reply passes.
    #[inline]
    pub fn on_piece(&self) {
        self.pieces.fetch_add(1, Ordering::Relaxed);
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

    /// Passes requests and replies on until one side ends.
    fn run(&self) -> Result<(), End> {
        thread::scope(|scope| {
            let replies = thread::Builder::new()
                .name("replies".to_owned())
                .stack_size(STACK_BYTES)
                .spawn_scoped(scope, || {
                    let ended = Replies::new(self).run();
                    self.close();
                    ended
                });
            let replies = match replies {
                Ok(thread) => thread,
                Err(error) => return Err(End::Broken(format!("a thread: {error}"))),
            };
            let ended = Requests::new(self).run();
            self.stream.state().end_turn(&self.member, false);
            if !matches!(ended, Err(End::Broken(_))) {
                // What was asked before may still be answered, or has been and is not the client's yet.
                self.server.shutdown(Shutdown::Write);
                self.linger();
            }
            self.close();
            let replied = replies.join().unwrap_or(Err(End::Closed));
            match (ended, replied) {
                (Err(End::Broken(why)), _) | (_, Err(End::Broken(why))) => Err(End::Broken(why)),
                _ => Ok(()),
            }
        })
    }

    /// Waits for the server to end, as long as it goes on answering.
    fn linger(&self) {
        let pieces = || self.pieces.load(Ordering::Relaxed);
        let (mut since, mut before) = (Instant::now(), pieces());
        while !self.is_closed() {
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
pub fn serve(client: Socket, address: &Address, streams: &Streams) {
    let who = match client.peer() {
        Ok(who) => who,
        Err(_) => return,
    };
    if let Err(End::Broken(why)) = served(client, &who, address, streams) {
        LOG.line(format_args!("{who} to {address}: {why}; it is closed"));
    }
}

fn served(client: Socket, who: &str, address: &Address, streams: &Streams) -> Result<(), End> {
    let server = address
        .connect()
        .map_err(|error| End::Broken(format!("the server cannot be reached: {error}")))?;
    let say = |text: &str| LOG.line(format_args!("{who} to {address}: {text}"));
    let Negotiated { structured_replies } = negotiate(&client, &server, &say)?;
    server.limit_writes(LOOK)?;
    let (stream, member) = streams.join(who, &address.to_string());
    let connection = Connection {
        client,
        server,
        stream,
        member,
        structured_replies,
        pending: Mutex::default(),
        pieces: AtomicU64::new(0),
        is_closed: AtomicBool::new(false),
    };
    let ended = connection.run();
    let (requests, bytes) = connection.pending().total();
    streams.leave(&connection.stream, &connection.member, requests, bytes);
    ended
}
