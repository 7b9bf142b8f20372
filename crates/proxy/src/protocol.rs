//! What a protocol has to tell for its streams to be held: where requests begin in a client's bytes, and what a server's
//! bytes answer. All else, from sockets and TLS to windows and rules, is the same for each.
//!
//! A protocol is a [`Dialogue`], which [`crate::connection`] serves; [`Protocol`] is its name in the file.

use std::fmt;
use std::ops::Range;
use std::time::Duration;

use ascar_plane::RecordedKind;
use serde::Deserialize;

use crate::connection::{End, Opened};
use crate::recorder::Place;
use crate::socket::Socket;
use crate::terms::Terms;

/// Requests of a connection in flight at most, also where no window holds them: what is kept of them is bounded.
pub const IN_FLIGHT_MAX: usize = 1024;

/// What the clients of a route speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// Network block devices.
    #[default]
    Nbd,
    /// HTTP/1.1, and so S3.
    Http,
    /// Redis, and what speaks as it does.
    Resp,
}

impl fmt::Display for Protocol {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Nbd => "nbd",
            Self::Http => "http",
            Self::Resp => "resp",
        })
    }
}

/// What a client asks for, as far as it matters for when it may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// How much it moves, as far as that can be told before its answer; 0 for what moves nothing.
    pub bytes: u32,
    /// Where that begins on the server's device; None where the protocol has no such place.
    pub offset_bytes: Option<u64>,
    /// Whether it waits for its turn, the window and its pace. When what does not is answered says nothing of congestion.
    pub is_held: bool,
    /// Whether the server will answer it.
    pub is_answered: bool,
}

/// What is written down of a request besides its times (`rules.record/1`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access<'a> {
    /// What it does.
    pub kind: RecordedKind,
    /// What of the server's it is to, by its name; empty where the server is one thing, as a device is.
    pub name: &'a [u8],
    /// Where in that it begins.
    pub offset_bytes: u64,
}

/// What is kept of a request until its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// When it left.
    pub at_us: u64,
    /// How much it moves, as it was asked for.
    pub bytes: u32,
    /// Whether it goes on where one of the latest ended.
    pub is_sequential: bool,
    /// Whether it has a place in the window.
    pub is_held: bool,
    /// Where it is written down, if it is.
    pub record: Place,
}

/// What the server has said, and the request that is answered by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The request; None where the server says something by itself.
    pub sent: Option<Sent>,
    /// What the client got; 0 where the server has refused it.
    pub read_bytes: u64,
    /// What the server got; 0 where it has refused it.
    pub written_bytes: u64,
    /// Whether [`Dialogue::take_moved`] has told these bytes.
    pub is_counted: bool,
    /// Whether it was asked to write.
    pub writes: bool,
    /// Whether the server has turned it down because there are too many.
    pub is_overload: bool,
}

/// Bytes that pass together: those of a head that has been looked at, and of what follows it and need not be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// At least one, all of them at hand.
    pub head_bytes: usize,
    /// Those that follow, at hand or not.
    pub body_bytes: usize,
}

/// A piece of what a client says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<R> {
    /// Its bytes.
    pub piece: Piece,
    /// The request that begins with it; None where it goes on with one, or nobody acts on it.
    pub ask: Option<Ask>,
    /// Whether more pieces of the same request follow.
    pub has_more: bool,
    /// What [`Dialogue::on_send`] is told once it leaves.
    pub request: R,
}

/// What comes next of a side's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next<T> {
    /// This.
    Found(T),
    /// More must come before it can be told; never so where [`crate::incoming::HEAD_BYTES_MAX`] are at hand.
    Needs,
    /// These of the bytes are not passed on; what is left is asked about again.
    Cut(Range<usize>),
    /// From here on nothing can be told, for this reason: all that follows on both sides passes as it comes.
    Passes(String),
}

/// Whether the proxy may say something of its own to a client that asks for what is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tell {
    /// It may, and says nothing else from now on; nor does the server.
    Now,
    /// Not before what was asked earlier is answered.
    Later,
    /// It may not: an answer has begun, or something was said already.
    Never,
}

/// What a client hears at the end of its connection when the server has ended it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LastWord {
    /// That it is over, at once.
    Close,
    /// Nothing more: it is being told by the other direction.
    Told,
    /// This, which may be nothing; then it has a moment to stop sending.
    Part(Vec<u8>),
    /// That what it has is not whole.
    Cut,
}

/// A protocol as it is spoken on one connection. Both directions share it; what is in flight is kept in it.
pub trait Dialogue: fmt::Debug + Send + Sized {
    /// What is known of a piece of a client's when it leaves.
    type Request: Copy;

    /// How much of what the server says is kept for a client that does not read it, so that those requests are answered
    /// for which it waits with reading: clients send many before they read what came of the first. 0: it reads meanwhile.
    const KEPT_BYTES_MAX: usize = 0;

    /// How long a client may take for what it has begun to say; None: for ever.
    const CLIENT_LIMIT: Option<Duration> = None;

    /// Whether a client that has ended its sending waits for no answer any more.
    const ENDS_WITH_CLIENT: bool = false;

    /// Connects a client to its server, up to where requests may follow. A client that has to show who it is does so
    /// before the server hears of it. `say` is told what is worth a line in the log.
    ///
    /// # Errors
    /// When there is no connection.
    fn open(client: Socket, terms: &Terms, say: &dyn Fn(&str)) -> Result<Opened<Self>, End>;

    /// What begins at these bytes of the client's. Nothing is changed by it: the same is asked again after a wait.
    ///
    /// # Errors
    /// When it is what the protocol does not have.
    fn next_request(&self, bytes: &[u8]) -> Result<Next<Part<Self::Request>>, End>;

    /// What the request is that begins at these bytes, as [`Dialogue::next_request`] has found it; None for what moves
    /// nothing and says little of the load. Asked while what clients do is written down.
    fn access<'a>(&self, request: &Self::Request, bytes: &'a [u8]) -> Option<Access<'a>>;

    /// The part leaves, with its request where one begins.
    ///
    /// # Errors
    /// When its answer could not be told from another's; then nothing is kept of it.
    fn on_send(&mut self, request: Self::Request, sent: Option<Sent>) -> Result<(), End>;

    /// What begins at these bytes of the server's.
    ///
    /// # Errors
    /// When it is what the protocol does not have, or answers nothing.
    fn next_reply(&mut self, bytes: &[u8]) -> Result<Next<Piece>, End>;

    /// What was said once all of the last piece has passed, if that was its end; asked once then.
    fn take_answer(&mut self) -> Option<Answer>;

    /// Bytes that were read and written since this was last asked, of protocols that tell them before the answer.
    fn take_moved(&mut self) -> (u64, u64) {
        (0, 0)
    }

    /// Requests that wait for their answers.
    fn count(&self) -> usize;

    /// When the oldest of them left of those that the server can answer by now: without the latest where `is_partial`, its
    /// client has not sent all of it yet. None where no answer is owed.
    fn owed_since_us(&self, is_partial: bool) -> Option<u64>;

    /// How many of them have a place in the window, and their bytes.
    fn held(&self) -> (u32, u64);

    /// Keeps nothing in mind any more.
    fn forget(&mut self);

    /// The server has ended its sending: the request that is answered by that, where a reply may end so.
    fn on_server_end(&mut self) -> Option<Answer> {
        None
    }

    /// Why a client that does not go on with what it has begun is left.
    fn late(&self) -> End {
        End::Closed
    }

    /// Whether a client may be told now that what it says is refused; `is_amid` is whether that is of a request that the
    /// server has got the beginning of.
    fn tell(&mut self, is_amid: bool) -> Tell {
        let _ = is_amid;
        Tell::Never
    }

    /// What the client hears when the server has come to this end.
    fn last_word(&mut self, ended: &Result<(), End>) -> LastWord {
        let _ = ended;
        LastWord::Close
    }
}
