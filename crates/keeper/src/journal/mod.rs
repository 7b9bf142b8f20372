//! What was changed, on disk before it is changed.
//!
//! One file a session, one JSON document a line: a header, then changes, what they really led to, and what has
//! been undone. The living keeper holds a lock on its file, so that a file without a lock belongs to a dead one.
//! The file goes when everything in it is undone.
//!
//! A [`change`](Change) is what is done to the machine; lines (`line`) of a file (`file`) tell the
//! [entries](Entry) that are not undone, and their [standing](Standing). [`stale`] finds the files of dead keepers, while
//! [`Alone`] keeps others away; [`waiting`] tells what nobody has confirmed before its [`Deadline`].

mod alone;
mod change;
mod deadline;
mod entries;
mod file;
mod line;
mod stale;
mod standing;

use std::path::{Path, PathBuf};

pub use self::alone::Alone;
pub use self::change::Change;
pub use self::deadline::Deadline;
pub use self::entries::Entry;
pub use self::line::{Header, SCHEMA};
pub use self::stale::{Stale, stale};
pub use self::standing::{Standing, Unconfirmed, Waiting, look, waiting};

use self::entries::Entries;
use self::file::JournalFile;
use self::line::Line;
use crate::fault::{Fault, Result};

/// Where journals live unless told otherwise.
pub const DIRECTORY: &str = "/var/lib/ascar/journal";
/// A journal longer than this goes on in a new file: a study of weeks writes the same knobs again and again. One whose
/// new file was long already goes on until it is twice as long.
const COMPACT_BYTES: u64 = 4 << 20;

/// The journal of one session.
#[derive(Debug)]
pub struct Journal {
    directory: PathBuf,
    header: Header,
    file: Option<JournalFile>,
    entries: Entries,
    /// How long the file was when it was made out of another one.
    begun_bytes: u64,
    sealed: bool,
    frozen: bool,
}

impl Journal {
    /// A journal without a file: that comes with the first change.
    pub fn new(directory: &Path, header: Header) -> Self {
        Self {
            directory: directory.to_owned(),
            header,
            file: None,
            entries: Entries::default(),
            begun_bytes: 0,
            sealed: false,
            frozen: false,
        }
    }

    /// Where journals are.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Whose changes these are.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// What is not undone, in the order it was done.
    pub fn entries(&self) -> &[Entry] {
        self.entries.list()
    }

    /// The entry of a knob, if it is changed.
    pub fn knob(&self, name: &str) -> Option<&Entry> {
        self.entries.knob(name)
    }

    /// Names the study, before anything is changed.
    pub fn set_owner(&mut self, owner: &str) {
        owner.clone_into(&mut self.header.owner);
    }

    /// From now on nothing new may be changed.
    pub fn seal(&mut self) {
        self.sealed = true;
    }

    /// From now on the file stays as it is: what is undone is undone again by whoever finds it.
    pub fn freeze(&mut self) {
        self.frozen = true;
    }

    /// Whether the file stays as it is.
    pub fn is_frozen(&self) -> bool {
        self.frozen
    }

    /// Puts changes on disk; only after that may they be made. Returns their numbers.
    pub fn record(&mut self, changes: Vec<Change>) -> Result<Vec<u64>> {
        if self.sealed {
            return Err(Fault::failed(
                "the session ends: nothing is changed any more",
            ));
        }
        self.compact()?;
        self.add(changes)
    }

    /// Like [`Journal::record`], for changes that are part of putting others back.
    pub fn add(&mut self, changes: Vec<Change>) -> Result<Vec<u64>> {
        if self.file.is_none() {
            let made = JournalFile::create(&self.directory, &self.header, &[])?;
            self.file = Some(made);
        }
        let entries = self.entries.of(changes);
        let lines: Vec<Line> = entries
            .iter()
            .map(|entry| Line::Change {
                n: entry.n,
                change: entry.change.clone(),
            })
            .collect();
        self.append(&lines, true)?;
        let numbers = entries.iter().map(|entry| entry.n).collect();
        self.entries.take(entries);
        Ok(numbers)
    }

    /// Notes what a knob read after its write. Knobs are not replayed after a reboot, so that what the page
    /// cache has is enough here.
    pub fn found(&mut self, n: u64, value: Option<String>) -> Result<()> {
        let line = Line::Found {
            n,
            value: value.clone(),
        };
        self.append(&[line], false)?;
        self.entries.found(n, value);
        Ok(())
    }

    /// Notes that changes are undone (or were never made). The last one takes the file along.
    pub fn undone(&mut self, numbers: &[u64]) -> Result<()> {
        if numbers.is_empty() {
            return Ok(());
        }
        self.entries.undone(numbers);
        if self.frozen {
            return Ok(());
        }
        if !self.entries().is_empty() {
            let n = numbers.to_vec();
            return self.append(&[Line::Undone { n }], false);
        }
        match self.file.take() {
            Some(file) => file.remove(&self.directory),
            None => Ok(()),
        }
    }

    /// Forgets a command: what it would undo has been undone by the client.
    pub fn forget(&mut self, argv: &[String], given: Option<&str>) -> Result<()> {
        self.undone_where(|it| {
            matches!(it, Change::Command { target, stdin, .. } if target == argv && stdin.as_deref() == given)
        })
    }

    /// Notes that every change that `is` such a one is undone.
    pub fn undone_where(&mut self, is: impl Fn(&Change) -> bool) -> Result<()> {
        let numbers = self.entries.numbers(is);
        self.undone(&numbers)
    }

    /// Ends the session with its changes in force until they are confirmed or undone.
    pub fn leave_unconfirmed(&mut self, unconfirmed: Unconfirmed) -> Result<()> {
        self.append(&[Line::Unconfirmed(unconfirmed)], true)
    }

    /// Ends the session with its changes in force; only `--restore --all` undoes them.
    pub fn hold(&mut self) -> Result<()> {
        if self.entries().is_empty() {
            Ok(())
        } else {
            self.append(&[Line::Held], true)
        }
    }

    fn append(&mut self, lines: &[Line], durable: bool) -> Result<()> {
        match &mut self.file {
            Some(file) => file.append(lines, durable),
            None => Ok(()),
        }
    }

    /// Goes on in a new file without what is history. Between the making of the new one and the removal of the
    /// old one both say the same, and undoing it twice does no harm.
    fn compact(&mut self) -> Result<()> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        if self.frozen || file.bytes()? < COMPACT_BYTES.max(2 * self.begun_bytes) {
            return Ok(());
        }
        let new = JournalFile::create(&self.directory, &self.header, &self.entries.lines())?;
        self.begun_bytes = new.bytes()?;
        match self.file.replace(new) {
            Some(old) => old.replaced(),
            None => Ok(()),
        }
    }
}
