//! Journals whose keepers are dead.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::fcntl::{Flock, FlockArg};

use super::Journal;
use super::alone::{Alone, is_own};
use super::entries::Entries;
use super::file::JournalFile;
use super::line::{Header, complete_length, parse_header};
use super::standing::Standing;
use crate::fault::{Doing, Fault, Result};

/// Largest journal that is read: far above what a year-long study writes.
const FILE_BYTES_MAX: u64 = 1 << 30;
/// How long to wait for a keeper that has been killed and is not gone yet.
const DEATH_PATIENCE: Duration = Duration::from_secs(30);

/// A journal whose keeper is dead.
#[derive(Debug)]
pub struct Stale {
    /// The journal, locked by us.
    pub journal: Journal,
    /// What is to become of its changes.
    pub standing: Standing,
}

/// Finds the journals of dead keepers, newest first: changes are undone in the reverse order of their making.
/// Files that cannot be understood come back as faults; they are left where they are. So are those of other machines,
/// whose keepers may live, unless `elsewhere` is set.
pub fn stale(directory: &Path, _alone: &Alone, elsewhere: bool) -> Result<Vec<Result<Stale>>> {
    Ok(paths(directory)?
        .into_iter()
        .filter_map(|path| load(directory, path, elsewhere).transpose())
        .collect())
}

/// The files of journals, newest first.
pub(super) fn paths(directory: &Path) -> Result<Vec<PathBuf>> {
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
    paths.reverse();
    Ok(paths)
}

/// What a journal says now, whether its keeper lives or not; None where there is none, or nothing in it.
pub(super) fn read(path: &Path) -> Result<Option<(Header, Entries, Standing)>> {
    let Some(mut file) = open(path)? else {
        return Ok(None);
    };
    content(&mut file, path).map(|(said, _)| said)
}

/// None when its keeper lives, or may live on another machine.
fn load(directory: &Path, path: PathBuf, elsewhere: bool) -> Result<Option<Stale>> {
    let doing = format!("read the journal {}", path.display());
    // Its keeper may have put everything back, and removed it, since the directory was listed.
    let Some(file) = open(&path)? else {
        return Ok(None);
    };
    // A file system may keep locks to each machine.
    if !elsewhere && header_of(&file).is_some_and(|it| it.is_elsewhere()) {
        return Ok(None);
    }
    let Some(mut file) = lock_unless_alive(file) else {
        return Ok(None);
    };
    // Its keeper may have put everything back, removed it and ended just before.
    if file.metadata().doing(&doing)?.nlink() == 0 {
        return Ok(None);
    }
    let (said, complete) = content(&mut file, &path)?;
    if complete < file.metadata().doing(&doing)?.len() {
        file.set_len(complete).doing(&doing)?;
    }
    let Some((header, entries, standing)) = said else {
        // Its keeper died before the header was on disk, and so before any change.
        let removed = std::fs::remove_file(&path);
        if !is_gone(&removed) {
            removed.doing(&doing)?;
        }
        return Ok(None);
    };
    let journal = Journal {
        directory: directory.to_owned(),
        header,
        file: Some(JournalFile::found(path, file)),
        entries,
        begun_bytes: 0,
        sealed: true,
        frozen: false,
    };
    Ok(Some(Stale { journal, standing }))
}

/// Opens a journal, if it is there.
fn open(path: &Path) -> Result<Option<File>> {
    let doing = format!("read the journal {}", path.display());
    let mut options = OpenOptions::new();
    let opened = options
        .read(true)
        .append(true)
        .custom_flags(nix::libc::O_NOFOLLOW)
        .open(path);
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
    Ok(Some(file))
}

type Said = Option<(Header, Entries, Standing)>;

/// What a journal says, if it has a header, and how much of it was written to the end of a line.
fn content(file: &mut File, path: &Path) -> Result<(Said, u64)> {
    let doing = format!("read the journal {}", path.display());
    let mut text = Vec::new();
    file.take(FILE_BYTES_MAX)
        .read_to_end(&mut text)
        .doing(&doing)?;
    let complete = complete_length(&text);
    let mut lines = text[..complete]
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    let Some(first) = lines.next() else {
        return Ok((None, complete as u64));
    };
    let unreadable = |why| Fault::failed(format!("cannot {doing}: {why}"));
    let header = parse_header(first).map_err(unreadable)?;
    let (entries, standing) = Entries::replay(lines).map_err(unreadable)?;
    Ok((Some((header, entries, standing)), complete as u64))
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

/// The header of a journal that may be written right now.
fn header_of(journal: &File) -> Option<Header> {
    let mut start = [0; 4096];
    let count = journal.read_at(&mut start, 0).unwrap_or(0);
    let line = start[..count].split(|byte| *byte == b'\n').next()?;
    parse_header(line).ok()
}

/// Whether the process that wrote the journal's header has been killed, though it is not gone yet.
fn is_dying(journal: &File) -> bool {
    const SIGKILL_BIT: u64 = 1 << (nix::libc::SIGKILL - 1);
    let Some(header) = header_of(journal) else {
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
