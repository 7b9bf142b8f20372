//! The directory a load works in: what an earlier fill left there, the lock on it, and cleaning up.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ascar_random::mix;
use serde::{Deserialize, Serialize};

use super::removal::{Removed, remove_set};
use crate::LOG;
use crate::LoadError;
use crate::definition::FileSet;
use crate::signals::{self, Signal};

/// Name of the note that a fill leaves in the directory.
pub const NOTE: &str = ".ascar-load.json";
const FORMAT: u32 = 1;
/// Signals are looked for once in so many removals.
const LOOK: u64 = 32;
/// How often it is told how far a removal is.
const TELL: Duration = Duration::from_secs(1);

/// What lies in the directory, so that a later run can use it and cleaning removes nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// Version of this note.
    pub format: u32,
    /// Hash of the file sets, scaled; another workload's files do not fit.
    pub fingerprint: String,
    /// Seed of the layout.
    pub seed: u64,
    /// Names of the file sets.
    pub filesets: Vec<String>,
    /// The fill was finished.
    pub complete: bool,
    /// A run may have made or removed files, or changed sizes, since.
    pub changed: bool,
}

/// Hash of everything that decides where files lie and how large they are, but the seed.
#[must_use]
pub fn fingerprint(filesets: &[FileSet]) -> String {
    let text = format!("{filesets:?}");
    let hash = text.bytes().fold(0xCBF2_9CE4_8422_2325u64, |hash, byte| {
        mix(hash ^ u64::from(byte))
    });
    format!("{hash:016x}")
}

/// A directory, locked against other loads.
pub struct Directory {
    path: PathBuf,
    note: File,
}

impl Directory {
    /// Open and lock.
    ///
    /// # Errors
    /// It is not a directory, cannot be written, another load works in it, or something else has the note's name.
    pub fn open(path: &Path) -> Result<Directory, LoadError> {
        let shown = path.display();
        if !path.is_dir() {
            return Err(LoadError::Input(format!(
                "--dir: {shown} is not a directory; make it, or mount it, first"
            )));
        }
        let file = path.join(NOTE);
        let note = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            // A link is not followed, and a pipe does not make it wait.
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(&file)
            .map_err(|e| {
                LoadError::Input(format!(
                    "--dir: {} cannot be written ({e}); choose another directory",
                    file.display()
                ))
            })?;
        if !note.metadata().is_ok_and(|data| data.is_file()) {
            return Err(LoadError::Input(format!(
                "--dir: {} is not a file, so no load made it; remove it",
                file.display()
            )));
        }
        // SAFETY: the descriptor is open; flock touches no memory.
        let locked = unsafe { libc::flock(note.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0;
        // Who had the lock may have removed the note before it let go.
        if !locked || !in_place(&note, &file) {
            return Err(LoadError::Input(format!(
                "--dir: another load works in {shown}; wait for it, or stop it"
            )));
        }
        Ok(Directory {
            path: path.to_owned(),
            note,
        })
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What an earlier fill left, if anything.
    ///
    /// # Errors
    /// The note cannot be read, or a newer version wrote it.
    pub fn note(&mut self) -> Result<Option<Note>, LoadError> {
        let file = self.path.join(NOTE);
        let refused =
            |why: String| LoadError::Input(format!("--dir: {} {why}; remove it", file.display()));
        let mut text = String::new();
        self.note
            .rewind()
            .map_err(|e| refused(format!("cannot be read ({e})")))?;
        (&self.note)
            .take(1 << 20)
            .read_to_string(&mut text)
            .map_err(|e| refused(format!("cannot be read ({e})")))?;
        if text.is_empty() {
            return Ok(None);
        }
        let note: Note = serde_json::from_str(&text)
            .map_err(|e| refused(format!("is not a note of a fill ({e})")))?;
        if note.format != FORMAT {
            return Err(refused(format!(
                "has format {}, this program reads {FORMAT}",
                note.format
            )));
        }
        let unsafe_name =
            |name: &String| name.is_empty() || name.starts_with('.') || name.contains('/');
        if note.filesets.iter().any(unsafe_name) {
            return Err(refused("names a file set outside the directory".into()));
        }
        Ok(Some(note))
    }

    /// Replace the note.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&mut self, note: &Note) -> Result<(), LoadError> {
        let text = serde_json::to_string(note).expect("a note is plain JSON");
        let write = |mut file: &File| -> std::io::Result<()> {
            file.set_len(0)?;
            file.rewind()?;
            file.write_all(text.as_bytes())
        };
        write(&self.note).map_err(|e| failed("write the note in", &self.path, &e))
    }

    /// A note of a fill that has begun.
    #[must_use]
    pub fn begun(filesets: &[FileSet], seed: u64) -> Note {
        Note {
            format: FORMAT,
            fingerprint: fingerprint(filesets),
            seed,
            filesets: filesets.iter().map(|set| set.name.clone()).collect(),
            complete: false,
            changed: false,
        }
    }

    /// Refuse to fill over files that no load made.
    ///
    /// # Errors
    /// Something of a file set's name lies there.
    pub fn refuse_foreign(&self, filesets: &[FileSet]) -> Result<(), LoadError> {
        for set in filesets {
            let path = self.path.join(&set.name);
            if path.symlink_metadata().is_ok() {
                let shown = path.display();
                let text = format!(
                    "--dir: {shown} exists and no load made it; remove it, or choose another directory"
                );
                return Err(LoadError::Input(text));
            }
        }
        Ok(())
    }

    /// Remove the files of a note's sets, and nothing else; the note becomes empty. A signal ends it early.
    ///
    /// # Errors
    /// Something cannot be removed, or lies there that no load made: that stays.
    pub fn remove_files(&mut self, note: &Note) -> Result<Option<Signal>, LoadError> {
        let (mut signal, mut passed, mut told) = (None, 0u64, Instant::now());
        let mut asked = || {
            passed += 1;
            if passed % LOOK == 1 {
                signal = signals::wait(Duration::ZERO);
                if told.elapsed() > TELL {
                    told = Instant::now();
                    LOG.line(format_args!(
                        "removing: {passed} files and directories so far"
                    ));
                }
            }
            signal.is_some()
        };
        for name in &note.filesets {
            match remove_set(&self.path.join(name), &mut asked) {
                Ok(Removed::All) => {}
                Ok(Removed::Stopped) => {
                    // What is left is no fill any more, but a later one, or --clean, has to find it.
                    if let Some(left) = self.note()? {
                        self.write(&Note {
                            complete: false,
                            ..left
                        })?;
                    }
                    return Ok(signal);
                }
                Ok(Removed::But(foreign)) => {
                    let text = format!(
                        "{} stays: no load made it; move it away, and clean again",
                        foreign.display()
                    );
                    return Err(LoadError::Work(text));
                }
                Err((path, error)) => return Err(failed("remove files in", &path, &error)),
            }
        }
        self.note
            .set_len(0)
            .map_err(|e| failed("empty the note in", &self.path, &e))?;
        Ok(None)
    }

    /// Remove the file sets and the note.
    ///
    /// # Errors
    /// Something cannot be removed, or a signal came before all was.
    pub fn clean(mut self) -> Result<(), LoadError> {
        if let Some(note) = self.note()?
            && self.remove_files(&note)?.is_some()
        {
            let shown = self.path.display();
            return Err(LoadError::Work(format!(
                "a signal ended the cleaning of {shown} before all files were removed; remove the rest with \
                 ascard load --dir {shown} --clean"
            )));
        }
        match fs::remove_file(self.path.join(NOTE)) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                Err(failed("remove the note in", &self.path, &e))
            }
            _ => Ok(()),
        }
    }

    /// Wait until the file system has written everything.
    pub fn sync(&self) {
        if let Ok(directory) = File::open(&self.path) {
            // SAFETY: the descriptor is open; syncfs touches no memory.
            unsafe { libc::syncfs(directory.as_raw_fd()) };
        }
    }
}

/// Whether an open file is the one that has this name.
fn in_place(file: &File, path: &Path) -> bool {
    match (file.metadata(), path.symlink_metadata()) {
        (Ok(here), Ok(there)) => (here.dev(), here.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

impl Drop for Directory {
    /// A note that says nothing goes: a load that was refused leaves the directory as it was.
    fn drop(&mut self) {
        let file = self.path.join(NOTE);
        if self.note.metadata().is_ok_and(|data| data.len() == 0) && in_place(&self.note, &file) {
            let _ = fs::remove_file(file);
        }
    }
}

/// An error of the work, in one line: what, where, why, what to do.
#[must_use]
pub fn failed(what: &str, path: &Path, error: &std::io::Error) -> LoadError {
    let remedy = match error.raw_os_error() {
        Some(libc::ENOSPC | libc::EDQUOT) => {
            "the file system is full; lower --scale, or give a larger one"
        }
        Some(libc::EMFILE | libc::ENFILE) => {
            "too many open files; raise the limit (ulimit -n), or lower --threads"
        }
        Some(libc::ENOENT) => "the files were removed while the load ran; fill again",
        Some(libc::EROFS) => "the file system is mounted read-only; remount it",
        Some(libc::EINVAL) => {
            "the file system may not know directio; take it out, or choose another file system"
        }
        Some(libc::EIO) => "the device failed; look at the kernel's log",
        _ => "look at the directory and its rights",
    };
    LoadError::Work(format!(
        "cannot {what} {}: {error}; {remedy}",
        path.display()
    ))
}
