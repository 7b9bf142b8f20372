//! Changes that need no root: the content of a user's files, and commands that undo what a client did by itself.
//!
//! A keeper that runs as the user makes these, and nothing else; the keeper that runs as root makes none of them.

use std::fs::{File, Metadata};
use std::io::{Read, Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::unistd::{getegid, geteuid};

use crate::content::Content;
use crate::fault::{Doing, Fault, Result};
use crate::interrupt::{Interrupt, Limit};
use crate::journal::{Change, Entry, Journal};
use crate::place::Place;
use crate::program;
use crate::report::{LeftAlone, Report};

/// Longest content, before and after.
pub const CONTENT_BYTES_MAX: usize = 512 * 1024;
/// Longest time that an undoing command may take, in seconds.
pub const UNDO_S_MAX: f64 = 3600.0;
const WORDS_MAX: usize = 100;
/// Bytes of a command's words together, with which Linux starts a program whatever the limits are (execve(2): 128 KiB
/// with the environment, and for one word). What is longer would be refused when it is too late.
const WORDS_BYTES_MAX: usize = 96 * 1024;

/// Replaces the content of a file, or makes it; the reader of the file sees one content or the other, whole.
///
/// # Errors
/// Input when the path is not one of a regular file, refused when the file is somebody else's.
pub fn replace(journal: &mut Journal, path: &Path, content: &Content) -> Result<PathBuf> {
    let target = resolved(path)?;
    if content.0.len() > CONTENT_BYTES_MAX {
        return Err(Fault::input(format!(
            "content of {}: has {} bytes; allowed are {CONTENT_BYTES_MAX}",
            target.display(),
            content.0.len()
        )));
    }
    let place = Place::open(&target)?;
    let present = present(&place)?;
    if present.as_ref().is_some_and(|it| it.content == *content) {
        return Ok(target);
    }
    let mode = present
        .as_ref()
        .map_or(0o600, |it| it.metadata.mode() & 0o7777);
    journal.record(vec![Change::Content {
        target: target.clone(),
        old: present.as_ref().map(|it| it.content.clone()),
        expected: mark(&content.0),
        before: mark_of(present.as_ref()),
        mode,
    }])?;
    write(
        &place,
        content,
        mode,
        present.as_ref().map(|it| &it.metadata),
    )?;
    Ok(target)
}

/// Notes a command that is run when everything is put back.
///
/// # Errors
/// Input when no such program is installed, it could not be started with so many words, or the limit is out of range.
pub fn undo_by(
    journal: &mut Journal,
    argv: &[String],
    limit_s: f64,
    stdin: Option<String>,
) -> Result<()> {
    let Some(name) = argv.first() else {
        return Err(Fault::input("argv = []: name a program"));
    };
    if argv.len() > WORDS_MAX || argv.iter().any(|word| word.contains('\0')) {
        return Err(Fault::input(format!(
            "argv: has {} words; allowed are {WORDS_MAX}, without zero bytes",
            argv.len()
        )));
    }
    let bytes: usize = argv.iter().map(|word| word.len() + 1).sum();
    if bytes > WORDS_BYTES_MAX {
        return Err(Fault::input(format!(
            "argv: has {bytes} bytes; allowed are {WORDS_BYTES_MAX}: give a program more by its standard input"
        )));
    }
    if !(limit_s > 0.0 && limit_s <= UNDO_S_MAX) {
        return Err(Fault::input(format!(
            "limit_s = {limit_s}: allowed are (0, {UNDO_S_MAX}]"
        )));
    }
    if program::find(name).is_none() {
        return Err(Fault::input(format!(
            "argv = {name:?} ...: no such program; name one by its path, or one of the system's"
        )));
    }
    journal.record(vec![Change::Command {
        target: argv.to_vec(),
        limit_ms: (limit_s * 1000.0) as u64,
        stdin,
    }])?;
    Ok(())
}

/// Puts files back and runs undoing commands, the last change first.
pub fn restore(journal: &mut Journal, report: &mut Report, rebooted: bool) {
    let entries: Vec<Entry> = journal.entries().iter().rev().cloned().collect();
    for entry in entries {
        let undone = match &entry.change {
            Change::Content {
                target,
                old,
                expected,
                before,
                mode,
            } => put_back(target, old.as_ref(), [expected, before], *mode, report),
            Change::Command {
                target,
                limit_ms,
                stdin,
            } => {
                let ran = run(target, stdin.as_deref(), Duration::from_millis(*limit_ms));
                match ran {
                    // What it would undo has ended with the machine.
                    Err(fault) if rebooted => {
                        report.failed.push(fault.message);
                        Ok(())
                    }
                    other => other.map(|said| report.restored.push(target.join(" ") + &said)),
                }
            }
            _ => continue,
        };
        let noted = undone.and_then(|()| journal.undone(&[entry.n]));
        if let Err(fault) = noted {
            report.failed.push(fault.message);
        }
    }
}

struct Present {
    content: Content,
    metadata: Metadata,
}

/// The real path of a file that is there, or is to be made in a directory that is there.
fn resolved(path: &Path) -> Result<PathBuf> {
    let wrong = |why: String| Fault::input(format!("path = {path:?}: {why}"));
    if !path.is_absolute() {
        return Err(wrong("must begin with /".to_owned()));
    }
    if let Ok(real) = path.canonicalize() {
        return Ok(real);
    }
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(wrong("names no file".to_owned()));
    };
    if path.symlink_metadata().is_ok() {
        return Err(wrong("is a symbolic link to nothing".to_owned()));
    }
    let real = directory
        .canonicalize()
        .map_err(|error| wrong(error.to_string()))?;
    Ok(real.join(name))
}

fn present(place: &Place) -> Result<Option<Present>> {
    let target = place.path();
    let doing = format!("read {}", target.display());
    let opened = place.read();
    let opened = opened.map_err(|error| Fault::input(format!("cannot {doing}: {error}")))?;
    let Some(file) = opened else {
        return Ok(None);
    };
    let metadata = file.metadata().doing(&doing)?;
    if !metadata.is_file() {
        return Err(Fault::input(format!(
            "{}: is not a regular file",
            target.display()
        )));
    }
    if metadata.uid() != geteuid().as_raw() && !geteuid().is_root() {
        return Err(Fault::refused(format!(
            "{}: belongs to another user: run ascar as that user",
            target.display()
        )));
    }
    let mut bytes = Vec::new();
    file.take(CONTENT_BYTES_MAX as u64 + 1)
        .read_to_end(&mut bytes)
        .doing(&doing)?;
    if bytes.len() > CONTENT_BYTES_MAX {
        return Err(Fault::input(format!(
            "{}: has more than {CONTENT_BYTES_MAX} bytes",
            target.display()
        )));
    }
    Ok(Some(Present {
        content: Content(bytes),
        metadata,
    }))
}

/// Writes a file beside it and renames that, with the owner and the mode that it had.
fn write(place: &Place, content: &Content, mode: u32, before: Option<&Metadata>) -> Result<()> {
    let draft = draft_of(place)?;
    let _ = draft.remove();
    let made = (|| {
        let mut file = draft.make()?;
        file.write_all(&content.0)?;
        if let Some(before) = before
            && (before.uid(), before.gid()) != (geteuid().as_raw(), getegid().as_raw())
        {
            std::os::unix::fs::fchown(&file, Some(before.uid()), Some(before.gid()))?;
        }
        file.set_permissions(std::fs::Permissions::from_mode(mode))?;
        file.sync_all()?;
        draft.rename_to(place)
    })();
    if made.is_err() {
        let _ = draft.remove();
    }
    made.doing(format!("write {}", place.path().display()))
}

/// What is to get the file's name once it is whole. Its own name is the same for every process, so that whoever puts
/// the file back also finds what a killed writer left; the lock of the file keeps other writers away.
fn draft_of(place: &Place) -> Result<Place> {
    let path = hash(place.path().as_os_str().as_bytes());
    place.beside(".", &format!(".ascar-{path:016x}"))
}

fn put_back(
    target: &Path,
    old: Option<&Content>,
    ours: [&String; 2],
    mode: u32,
    report: &mut Report,
) -> Result<()> {
    let place = match Place::open(target) {
        Ok(place) => place,
        // A file that is gone with its directory is as it was.
        Err(_) if old.is_none() && !target.exists() => return Ok(()),
        Err(fault) => return Err(fault),
    };
    let draft = draft_of(&place)?;
    if draft.present()?.is_some() {
        draft.remove()?;
    }
    let present = present(&place)?;
    if present.as_ref().map(|it| &it.content) == old {
        return Ok(());
    }
    let found = mark_of(present.as_ref());
    if !ours.contains(&&found) {
        report.left_alone.push(LeftAlone {
            target: target.display().to_string(),
            expected: ours[0].clone(),
            found,
        });
        return Ok(());
    }
    match old {
        Some(old) => write(&place, old, mode, present.as_ref().map(|it| &it.metadata))?,
        None => place.remove()?,
    }
    report.restored.push(format!("file {}", target.display()));
    Ok(())
}

/// Runs a command that undoes something; what it says of that, such as what somebody else has changed.
fn run(argv: &[String], given: Option<&str>, limit: Duration) -> Result<String> {
    let (name, arguments) = argv.split_first().expect("a command has a program");
    let interrupt = Interrupt::new()?;
    let limit = Limit::new(&interrupt, limit);
    let ended = match given {
        None => program::run(name, arguments, &limit)?,
        Some(text) => program::run_on(&in_memory(text)?, name, arguments, &limit)?,
    };
    let stderr = ended.success(name)?.stderr;
    let lines: Vec<&str> = stderr.lines().map(str::trim).collect();
    let said = lines.join("; ");
    Ok(if said.is_empty() {
        said
    } else {
        format!(" ({said})")
    })
}

/// A file without a name that holds a text, to be read from its beginning.
fn in_memory(text: &str) -> Result<File> {
    let doing = "hold what a command reads";
    let memory = memfd_create(c"ascar-undo", MFdFlags::MFD_CLOEXEC).doing(doing)?;
    let mut file = File::from(memory);
    file.write_all(text.as_bytes()).doing(doing)?;
    file.rewind().doing(doing)?;
    Ok(file)
}

fn mark_of(present: Option<&Present>) -> String {
    present.map_or_else(|| "absent".to_owned(), |it| mark(&it.content.0))
}

/// What tells one content from another: its length and a hash (FNV-1a, 64 bits). It guards against accidents; who
/// may write the file needs no collision.
fn mark(content: &[u8]) -> String {
    format!("{} bytes, {:016x}", content.len(), hash(content))
}

/// FNV-1a, 64 bits: the same in every build, as names of locks must be.
pub fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
