//! `ascard load`: runs workloads written in Filebench's language, and tells how each second went.
//!
//! A workload ([`definition::Definition`]) is read from a file ([`wml`]) or built in ([`personality`]), scaled
//! ([`scale`]), laid out and filled ([`prepare`], [`data`]), run ([`engine`]), and told as JSON lines ([`report`]); [`mod@run`]
//! is that sentence as code.

// A line that cannot be written must not end a load that fills or removes files.
#![deny(clippy::print_stderr)]

pub mod arguments;
pub mod control;
pub mod data;
pub mod definition;
pub mod engine;
mod error;
pub mod futex;
pub mod histogram;
pub mod pattern;
pub mod personality;
pub mod prepare;
pub mod quantity;
pub mod reading;
pub mod report;
pub mod run;
pub mod scale;
pub mod signals;
pub mod wml;

use ascar_log::Log;

pub use error::LoadError;

pub(crate) const LOG: Log = Log::of("ascard load");

/// Run with a command line, without the program's name: readings on stdout, progress and errors on stderr.
///
/// Returns the exit status: 0 done, 1 the work failed, 2 bad input, 3 stopped early by SIGTERM with what was measured
/// told, 130 interrupted. Threads may still be in a system call when it returns, so the caller should exit.
#[must_use]
pub fn run(arguments: impl Iterator<Item = std::ffi::OsString>) -> u8 {
    let done = arguments::parse(arguments)
        .and_then(|command| run::command(&command, &mut std::io::stdout()));
    match done {
        Ok(status) => status,
        Err(error) => {
            LOG.line(&error);
            error.status()
        }
    }
}
