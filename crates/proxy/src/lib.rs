//! The proxy on a client's node: it stands between unchanged clients and unchanged servers, and holds each
//! client-server stream to a window (requests in flight) and a pace (the least time between two) of the controllers of
//! `ascar-congestion`. It never reorders, loses or invents bytes.
//!
//! In flow order: [`config`] is the file, and [`terms`] are what it says of a route; [`listening`] takes clients in, each
//! a [`connection`] of two threads with a [`side`] at each end: a [`socket`], and [`tls`] where the terms say so, which
//! is agreed on by words of the protocol's own or in the [`opening`]; [`requests`] go to the server as the
//! [`stream`] admits them, [`replies`] come back and are told to it, each by what has come ([`incoming`]), long payloads
//! past both by [`splicing`]. Where a request begins and what a reply answers is for the [`protocol`] to tell, which is
//! [`nbd`], [`http`] or [`resp`]; [`turns`] are those of a server's streams
//! where few are active at a time; [`streams`] are all of them, the [`recorder`] writes down what they do while somebody
//! wants to know, and the [`plane`] is where rules act;
//! [`control`] is the socket on which a rule manager, or the agent for it, is answered; [`kept`] is what a restart goes on with;
//! [`running`] is the loop;
//! [`watching`] prints what streams show; [`cli`] starts it.

// A line that cannot be written must not end a daemon.
#![deny(clippy::print_stderr, clippy::print_stdout)]

pub mod address;
pub mod cli;
pub mod clock;
pub mod config;
pub mod connection;
pub mod control;
pub mod ending;
pub mod http;
pub mod incoming;
pub mod kept;
pub mod listening;
pub mod nbd;
pub mod opening;
pub mod plane;
pub mod protocol;
pub mod recorder;
pub mod replies;
pub mod requests;
pub mod resp;
pub mod running;
pub mod side;
pub mod socket;
pub mod splicing;
pub mod stream;
pub mod streams;
pub mod terms;
pub mod tls;
pub mod turns;
pub mod untaken;
pub mod watching;

use ascar_log::Log;

pub(crate) const LOG: Log = Log::of("ascard proxy");
