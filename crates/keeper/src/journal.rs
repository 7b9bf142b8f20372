//! What was changed, on disk before it is changed.
//!
//! One file a session, one JSON document a line: a header, then changes, what they really led to, and what has
//! been undone. The living keeper holds a lock on its file, so that a file without a lock belongs to a dead one.
//! The file goes when everything in it is undone.

use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};

use crate::content::Content;
use crate::fault::{Doing, Fault, Kind, Result};
use crate::file_id::FileId;
use crate::place::check_roots_alone;

/// Version of the journal's format.
pub const SCHEMA: u64 = 2;
/// The oldest version that is read: it knew no content but text.
const SCHEMA_MIN: u64 = 1;
/// Where journals live unless told otherwise.
pub const DIRECTORY: &str = "/var/lib/ascar/journal";
/// Largest journal that is read: far above what a year-long study writes.
const FILE_BYTES_MAX: u64 = 1 << 30;
/// A journal longer than this goes on in a new file: a study of weeks writes the same knobs again and again.
const COMPACT_BYTES: u64 = 4 << 20;
/// How long to wait for another keeper that is restoring.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long to wait for a keeper that has been killed and is not gone yet.
const DEATH_PATIENCE: Duration = Duration::from_secs(30);

/// Whose changes these are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// Format of the file.
    pub schema: u64,
    /// The boot the changes belong to.
    pub boot_id: String,
    /// The study's name.
    pub owner: String,
    /// The keeper.
    pub pid: u32,
    /// The invoking user.
    pub uid: u32,
    /// When the first change was made.
    pub started_unix_s: u64,
}

/// One change of the machine. `target` says where, `old` and `expected` what was there and what should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Change {
    /// A knob's value. `expected` is None for a coupled knob: the kernel chooses.
    Knob {
        /// The knob's name.
        target: String,
        /// What was in force.
        old: String,
        /// What is written.
        expected: Option<String>,
    },
    /// A file that we make: an image or the saved copy of one.
    File {
        /// Its path.
        target: PathBuf,
        /// Which file it is.
        expected: FileId,
    },
    /// A loop device, found by its backing file.
    Attach {
        /// The image's path.
        target: PathBuf,
        /// Which file it is.
        expected: FileId,
    },
    /// A directory that we make.
    Directory {
        /// Its path.
        target: PathBuf,
    },
    /// A mounted file system.
    Mount {
        /// Where.
        target: PathBuf,
        /// The device's path, by which the kernel's list of mounts names it.
        expected: PathBuf,
        /// Whether nobody needs what is on it once the session has ended.
        scratch: bool,
    },
    /// A control group.
    Cgroup {
        /// Its directory.
        target: PathBuf,
    },
    /// The memory controller, switched on for the children of a control group.
    Controller {
        /// The file that lists the controllers.
        target: PathBuf,
    },
    /// The content of a user's file. `old` is None where there was no file; `expected` tells the content that was
    /// written from others.
    Content {
        /// Its real path.
        target: PathBuf,
        /// The bytes that were there.
        old: Option<Content>,
        /// The length and the hash of what is written.
        expected: String,
        /// Those of what was there just before: a keeper that is killed has written the one or still the other.
        before: String,
        /// The permissions that it had.
        mode: u32,
    },
    /// A command that undoes what a client did by itself.
    Command {
        /// The program and its arguments.
        target: Vec<String>,
        /// How long it may take.
        limit_ms: u64,
    },
    /// The write cache flag of a scratch device, switched off so that its end is not waited for.
    WriteCache {
        /// The flag's file.
        target: PathBuf,
        /// What was in force.
        old: String,
    },
}

/// One line after the header.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Line {
    /// Change number `n` is about to be made.
    Change { n: u64, change: Change },
    /// What a knob read after its write; None when it went away.
    Found { n: u64, value: Option<String> },
    /// These are undone.
    Undone { n: Vec<u64> },
    /// The session ended and its changes are to stay until they are asked back.
    Held,
}

/// A change that is not undone yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its number.
    pub n: u64,
    /// The change.
    pub change: Change,
    /// For a knob: what it read after the write; None while that is not known.
    pub found: Option<Option<String>>,
}

/// The journal of one session.
#[derive(Debug)]
pub struct Journal {
    directory: PathBuf,
    header: Header,
    file: Option<(PathBuf, Flock<File>)>,
    entries: Vec<Entry>,
    next: u64,
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
            entries: Vec::new(),
            next: 0,
            sealed: false,
            frozen: false,
        }
    }

    /// Whose changes these are.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// What is not undone, in the order it was done.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
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

    /// The entry of a knob, if it is changed.
    pub fn knob(&self, name: &str) -> Option<&Entry> {
        self.entries
            .iter()
            .find(|entry| is_knob(&entry.change, name))
    }

    /// The entry of a file: its number, the bytes and the permissions that it had.
    fn content(&self, path: &Path) -> Option<(u64, Option<Content>, u32)> {
        self.entries.iter().find_map(|entry| match &entry.change {
            Change::Content {
                target, old, mode, ..
            } if target == path => Some((entry.n, old.clone(), *mode)),
            _ => None,
        })
    }

    /// Like [`Journal::record`], for changes that are part of putting others back.
    pub fn add(&mut self, changes: Vec<Change>) -> Result<Vec<u64>> {
        self.open()?;
        let mut next = self.next;
        let mut entries = Vec::new();
        for change in changes {
            entries.push(self.entry_for(change, next));
            next += 1;
        }
        let lines: Vec<Line> = entries
            .iter()
            .map(|entry| Line::Change {
                n: entry.n,
                change: entry.change.clone(),
            })
            .collect();
        self.append(&lines, true)?;
        self.next = next;
        let numbers = entries.iter().map(|entry| entry.n).collect();
        for entry in entries {
            put(&mut self.entries, entry);
        }
        Ok(numbers)
    }

    /// A knob or a file has one entry, however often it is written: what it was before the first write counts.
    fn entry_for(&self, change: Change, next: u64) -> Entry {
        if let Some(known) = self.entries.iter().find(|it| it.change == change)
            && matches!(change, Change::Command { .. })
        {
            return known.clone();
        }
        if let Change::Content {
            target,
            expected,
            before,
            ..
        } = &change
            && let Some((n, old, mode)) = self.content(target)
        {
            let change = Change::Content {
                target: target.clone(),
                old,
                expected: expected.clone(),
                before: before.clone(),
                mode,
            };
            return Entry {
                n,
                change,
                found: None,
            };
        }
        if let Change::Knob {
            target, expected, ..
        } = &change
            && let Some(Entry {
                n,
                change: Change::Knob { old, .. },
                ..
            }) = self.knob(target)
        {
            let change = Change::Knob {
                target: target.clone(),
                old: old.clone(),
                expected: expected.clone(),
            };
            return Entry {
                n: *n,
                change,
                found: None,
            };
        }
        Entry {
            n: next,
            change,
            found: None,
        }
    }

    /// Notes what a knob read after its write. Knobs are not replayed after a reboot, so that what the page
    /// cache has is enough here.
    pub fn found(&mut self, n: u64, value: Option<String>) -> Result<()> {
        self.append(
            &[Line::Found {
                n,
                value: value.clone(),
            }],
            false,
        )?;
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.n == n) {
            entry.found = Some(value);
        }
        Ok(())
    }

    /// Notes that changes are undone (or were never made). The last one takes the file along.
    pub fn undone(&mut self, numbers: &[u64]) -> Result<()> {
        if numbers.is_empty() {
            return Ok(());
        }
        self.entries.retain(|entry| !numbers.contains(&entry.n));
        if self.frozen {
            return Ok(());
        }
        if self.entries.is_empty() {
            return self.remove();
        }
        self.append(
            &[Line::Undone {
                n: numbers.to_vec(),
            }],
            false,
        )
    }

    /// Forgets a command: what it would undo has been undone by the client.
    pub fn forget(&mut self, argv: &[String]) -> Result<()> {
        self.undone_where(|it| matches!(it, Change::Command { target, .. } if target == argv))
    }

    /// Notes that every change that `is` such a one is undone.
    pub fn undone_where(&mut self, is: impl Fn(&Change) -> bool) -> Result<()> {
        let numbers: Vec<u64> = self
            .entries
            .iter()
            .filter(|entry| is(&entry.change))
            .map(|entry| entry.n)
            .collect();
        self.undone(&numbers)
    }

    /// Names the study, before anything is changed.
    pub fn set_owner(&mut self, owner: &str) {
        owner.clone_into(&mut self.header.owner);
    }

    /// Ends the session with its changes in force; only `--restore --all` undoes them.
    pub fn hold(&mut self) -> Result<()> {
        if self.entries.is_empty() {
            Ok(())
        } else {
            self.append(&[Line::Held], true)
        }
    }

    fn remove(&mut self) -> Result<()> {
        if let Some((path, _lock)) = self.file.take() {
            // One that is back after a crash of the machine would undo what was changed since.
            std::fs::remove_file(&path)
                .and_then(|()| File::open(&self.directory)?.sync_all())
                .doing(format!("remove {}", path.display()))?;
        }
        Ok(())
    }

    fn append(&mut self, lines: &[Line], durable: bool) -> Result<()> {
        let Some((path, file)) = &mut self.file else {
            return Ok(());
        };
        let doing = format!("write the journal {}", path.display());
        let length = file.metadata().doing(&doing)?.len();
        let written = file
            .write_all(text(lines).as_bytes())
            .and_then(|()| if durable { file.sync_data() } else { Ok(()) });
        if written.is_err() {
            // A torn line is only understood at the end of the file.
            let _ = file.set_len(length);
        }
        written.doing(&doing)
    }

    fn open(&mut self) -> Result<()> {
        if self.file.is_none() {
            self.file = Some(self.create(&[])?);
        }
        Ok(())
    }

    /// Goes on in a new file without what is history. Between the making of the new one and the removal of the
    /// old one both say the same, and undoing it twice does no harm.
    fn compact(&mut self) -> Result<()> {
        let Some((path, file)) = &self.file else {
            return Ok(());
        };
        let doing = format!("compact the journal {}", path.display());
        if self.frozen || file.metadata().doing(&doing)?.len() < COMPACT_BYTES {
            return Ok(());
        }
        let mut lines = Vec::new();
        for entry in &self.entries {
            lines.push(Line::Change {
                n: entry.n,
                change: entry.change.clone(),
            });
            lines.extend(
                entry
                    .found
                    .clone()
                    .map(|value| Line::Found { n: entry.n, value }),
            );
        }
        let new = self.create(&lines)?;
        if let Some((old, _lock)) = self.file.replace(new) {
            std::fs::remove_file(old).doing(&doing)?;
        }
        Ok(())
    }

    /// A new file, locked, with the header and these lines on disk.
    fn create(&self, lines: &[Line]) -> Result<(PathBuf, Flock<File>)> {
        let _alone = Alone::wait(&self.directory)?;
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let name = format!("{:020}-{}.jsonl", now.as_nanos(), self.header.pid);
        let path = self.directory.join(name);
        let doing = format!("make the journal {}", path.display());
        let mut options = OpenOptions::new();
        options.append(true).create_new(true).mode(0o600);
        let file = options.open(&path).doing(&doing)?;
        let locked = Flock::lock(file, FlockArg::LockExclusiveNonblock);
        let mut file = locked.map_err(|(_, error)| error).doing(&doing)?;
        let header = serde_json::to_string(&self.header).expect("a header is plain data");
        let written = file
            .write_all(format!("{header}\n{}", text(lines)).as_bytes())
            .and_then(|()| file.sync_data())
            .and_then(|()| File::open(&self.directory)?.sync_all());
        if written.is_err() {
            let _ = std::fs::remove_file(&path);
        }
        written.doing(&doing)?;
        Ok((path, file))
    }
}

fn text(lines: &[Line]) -> String {
    let line = |line| serde_json::to_string(line).expect("a journal line is plain data") + "\n";
    lines.iter().map(line).collect()
}

/// Held while journals are made, looked for or restored, so that no keeper takes a new file for a dead one.
#[derive(Debug)]
pub struct Alone(#[allow(dead_code)] Flock<File>);

impl Alone {
    /// Waits until no other keeper is at it.
    pub fn wait(directory: &Path) -> Result<Self> {
        let doing = format!("lock {}", directory.display());
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .doing(&doing)?;
        check_safe(directory)?;
        let path = directory.join(".lock");
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)
            .doing(&doing)?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(lock) => return Ok(Self(lock)),
                Err((_, error)) if Instant::now() > deadline => {
                    return Err(Fault::failed(format!(
                        "cannot {doing}: another keeper is restoring: {error}"
                    )));
                }
                Err((back, _)) => file = back,
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Nobody but root may write what root will undo.
fn check_safe(directory: &Path) -> Result<()> {
    check_roots_alone(directory, is_own).map_err(|fault| match fault.kind {
        Kind::Refused => Fault::refused(format!(
            "journal {}: {} may be written by others than root: use a directory that may not",
            directory.display(),
            fault.message
        )),
        _ => fault,
    })
}

/// Root's, or (in tests, which need not be root) this user's.
fn is_own(metadata: &Metadata) -> bool {
    metadata.uid() == 0 || metadata.uid() == nix::unistd::geteuid().as_raw()
}

/// A journal whose keeper is dead.
#[derive(Debug)]
pub struct Stale {
    /// The journal, locked by us.
    pub journal: Journal,
    /// Whether its changes are meant to stay.
    pub held: bool,
}

/// Finds the journals of dead keepers, newest first: changes are undone in the reverse order of their making.
/// Files that cannot be understood come back as faults; they are left where they are.
pub fn stale(directory: &Path, _alone: &Alone) -> Result<Vec<Result<Stale>>> {
    let doing = format!("read {}", directory.display());
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(directory).doing(&doing)? {
        let path = entry.doing(&doing)?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "jsonl")
        {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths
        .into_iter()
        .rev()
        .filter_map(|path| load(directory, path).transpose())
        .collect())
}

/// None when its keeper lives.
fn load(directory: &Path, path: PathBuf) -> Result<Option<Stale>> {
    let doing = format!("read the journal {}", path.display());
    let mut options = OpenOptions::new();
    let opened = options
        .read(true)
        .append(true)
        .custom_flags(nix::libc::O_NOFOLLOW)
        .open(&path);
    // Its keeper may have put everything back, and removed it, since the directory was listed.
    if is_gone(&opened) {
        return Ok(None);
    }
    let file = opened.doing(&doing)?;
    let metadata = file.metadata().doing(&doing)?;
    if !metadata.is_file() || !is_own(&metadata) {
        return Err(Fault::failed(format!(
            "cannot {doing}: it is not root's: remove it"
        )));
    }
    let Some(mut file) = lock_unless_alive(file) else {
        return Ok(None);
    };
    // Its keeper may have put everything back, removed it and ended just before.
    if file.metadata().doing(&doing)?.nlink() == 0 {
        return Ok(None);
    }
    let mut text = Vec::new();
    let file_ref: &mut File = &mut file;
    file_ref
        .take(FILE_BYTES_MAX)
        .read_to_end(&mut text)
        .doing(&doing)?;
    let complete = complete_length(&text);
    if complete < text.len() {
        file.set_len(complete as u64).doing(&doing)?;
    }
    let mut lines = text[..complete]
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    let Some(first) = lines.next() else {
        // Its keeper died before the header was on disk, and so before any change.
        let removed = std::fs::remove_file(&path);
        if !is_gone(&removed) {
            removed.doing(&doing)?;
        }
        return Ok(None);
    };
    let header =
        parse_header(first).map_err(|why| Fault::failed(format!("cannot {doing}: {why}")))?;
    let (entries, held) =
        replay(lines).map_err(|why| Fault::failed(format!("cannot {doing}: {why}")))?;
    let next = entries.iter().map(|entry| entry.n + 1).max().unwrap_or(0);
    let journal = Journal {
        directory: directory.to_owned(),
        header,
        file: Some((path, file)),
        entries,
        next,
        sealed: true,
        frozen: false,
    };
    Ok(Some(Stale { journal, held }))
}

fn is_gone<T>(result: &std::io::Result<T>) -> bool {
    matches!(result, Err(error) if error.kind() == std::io::ErrorKind::NotFound)
}

/// Locks a journal, unless its keeper lives. One that is being killed may take a moment to let go.
fn lock_unless_alive(mut file: File) -> Option<Flock<File>> {
    let started = Instant::now();
    loop {
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => return Some(lock),
            Err((back, _)) if started.elapsed() < DEATH_PATIENCE && is_dying(&back) => file = back,
            Err(_) => return None,
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Whether the process that wrote the journal's header has been killed, though it is not gone yet.
fn is_dying(journal: &File) -> bool {
    const SIGKILL_BIT: u64 = 1 << (nix::libc::SIGKILL - 1);
    let mut start = [0; 4096];
    let count = journal.read_at(&mut start, 0).unwrap_or(0);
    let line = start[..count]
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    let Ok(header) = parse_header(line) else {
        return false;
    };
    let Ok(status) = std::fs::read_to_string(format!("/proc/{}/status", header.pid)) else {
        return true;
    };
    status.lines().any(|line| match line.split_once(":\t") {
        Some(("State", state)) => state.starts_with(['Z', 'X']),
        Some(("SigPnd" | "ShdPnd", mask)) => {
            u64::from_str_radix(mask, 16).is_ok_and(|mask| mask & SIGKILL_BIT != 0)
        }
        _ => false,
    })
}

/// How much of the file was written to the end of a line. A torn last line announces a change never made.
fn complete_length(text: &[u8]) -> usize {
    text.iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |position| position + 1)
}

fn parse_header(line: &[u8]) -> std::result::Result<Header, String> {
    #[derive(Deserialize)]
    struct Version {
        schema: u64,
    }
    let version: Version =
        serde_json::from_slice(line).map_err(|error| format!("header: {error}"))?;
    if !(SCHEMA_MIN..=SCHEMA).contains(&version.schema) {
        return Err(format!(
            "its schema is {}, this ascard knows {SCHEMA_MIN} to {SCHEMA}: restore with the ascard that wrote it, or a newer one",
            version.schema
        ));
    }
    serde_json::from_slice(line).map_err(|error| format!("header: {error}"))
}

fn is_knob(change: &Change, name: &str) -> bool {
    matches!(change, Change::Knob { target, .. } if target == name)
}

/// Adds an entry, or replaces the one of the same number.
fn put(entries: &mut Vec<Entry>, entry: Entry) {
    match entries.iter_mut().find(|it| it.n == entry.n) {
        Some(place) => *place = entry,
        None => entries.push(entry),
    }
}

fn replay<'a>(
    lines: impl Iterator<Item = &'a [u8]>,
) -> std::result::Result<(Vec<Entry>, bool), String> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut held = false;
    for (number, line) in lines.enumerate() {
        let line = serde_json::from_slice(line)
            .map_err(|error| format!("line {}: {error}", number + 2))?;
        match line {
            Line::Change { n, change } => put(
                &mut entries,
                Entry {
                    n,
                    change,
                    found: None,
                },
            ),
            Line::Found { n, value } => {
                if let Some(entry) = entries.iter_mut().find(|entry| entry.n == n) {
                    entry.found = Some(value);
                }
            }
            Line::Undone { n } => entries.retain(|entry| !n.contains(&entry.n)),
            Line::Held => held = true,
        }
    }
    Ok((entries, held))
}
