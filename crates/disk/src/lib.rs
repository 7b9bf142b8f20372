//! `ascard disk`: a disk that is modelled, and that works in real time. Clients reach it as a network block device (NBD).
//!
//! In flow order: [`cli`] reads the arguments, [`model`] a scenario, whose first server's storage is the disk, and
//! [`exports`] divides it; [`file`] is where its data lies. [`listening`] accepts connections; [`connection`] negotiates,
//! reads requests and hands them to the [`drive`], the one thread that owns the model and answers when the model does.
//! Data of writes comes in as [`memory`] has room, long requests for zeroes go piece by piece ([`zeroes`]). [`medium`] is
//! the one thread that writes to the medium, in the order in which the model's disk does, and answers flushes; what only
//! lies in the disk's write cache is kept in the [`store`] beside the medium ([`held`]). [`replies`] moves what is read
//! from there to the connection.
//!
//! A power cut ([`server`]) takes what is only in the cache, and what is under way; nothing that was flushed.

#![deny(clippy::print_stderr, clippy::print_stdout)]

pub mod cli;
mod connection;
mod drive;
mod exports;
mod file;
mod held;
mod lease;
mod listening;
mod medium;
mod memory;
mod model;
mod presets;
mod quantity;
mod replies;
mod server;
mod signals;
mod socket;
mod store;
mod zeroes;

use ascar_log::Log;

const LOG: Log = Log::of("ascard disk");

/// What a lock protects, also where a thread has panicked: each change of it is whole.
pub(crate) fn locked<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
