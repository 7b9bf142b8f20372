//! What a daemon says of its work: a line on its standard error, or an entry of the journal where that goes there.
//!
//! `eprintln!` panics where the line cannot be written: on a full disk, or behind a pipe that nobody reads any more. A
//! daemon that changes machines must not end for that, so a line that cannot be written is lost. The crates of daemons
//! deny `eprintln!`.

#![deny(clippy::print_stderr)]

mod fault;
mod journal;

use std::fmt::{Display, Write as _};
use std::io::Write;
use std::sync::OnceLock;

pub use fault::Fault;
use journal::Journal;

/// Looked for once; None where standard error goes elsewhere.
static JOURNAL: OnceLock<Option<Journal>> = OnceLock::new();

/// The log of one daemon.
#[derive(Clone, Copy, Debug)]
pub struct Log {
    name: &'static str,
}

impl Log {
    /// The log whose lines begin with this name.
    pub const fn of(name: &'static str) -> Self {
        Self { name }
    }

    /// Writes a line; one that cannot be written is lost.
    pub fn line(&self, text: impl Display) {
        let text = plain(&text.to_string());
        let journal = JOURNAL.get_or_init(Journal::of_standard_error).as_ref();
        if journal.is_none_or(|journal| journal.send(self.name, &text).is_err()) {
            self.line_to(&mut std::io::stderr().lock(), &text);
        }
    }

    fn line_to(&self, sink: &mut impl Write, text: &str) {
        // As one piece, so that lines of several threads do not mix.
        let line = format!("{}: {text}\n", self.name);
        let _ = sink.write_all(line.as_bytes()).and_then(|()| sink.flush());
    }
}

/// A text as one line: a name of somebody else's may hold what a terminal would obey.
fn plain(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for sign in text.chars() {
        if sign.is_control() {
            let _ = write!(line, "{}", sign.escape_default());
        } else {
            line.push(sign);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_line_that_no_terminal_obeys() {
        let mut written = Vec::new();
        Log::of("ascard agent").line_to(&mut written, &plain("node a\u{1b}[2Jb\nc: é"));
        assert_eq!(
            String::from_utf8(written).unwrap(),
            "ascard agent: node a\\u{1b}[2Jb\\nc: é\n"
        );
    }

    #[test]
    fn a_line_that_cannot_be_written_is_lost() {
        let mut full = std::fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap();
        Log::of("ascard agent").line_to(&mut full, "is lost");
        let (reader, mut writer) = std::io::pipe().unwrap();
        drop(reader);
        Log::of("ascard agent").line_to(&mut writer, "is lost");
    }
}
