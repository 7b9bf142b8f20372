//! Removing what loads made, and nothing else, wherever it lies and whatever else lies beside it.

use std::ffi::{CString, OsStr};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::layout::entry_of;

/// What removing a file set came to.
#[derive(Debug, PartialEq, Eq)]
pub enum Removed {
    /// Nothing of it is left.
    All,
    /// This lies in it, and no load made it; what loads made is gone.
    But(PathBuf),
    /// The end was asked for before.
    Stopped,
}

/// Looked at before each file: whether the end was asked for.
pub type Asked<'a> = &'a mut dyn FnMut() -> bool;

/// Remove a file set: files and directories with the names that loads give, links never followed.
///
/// # Errors
/// Something cannot be removed; the path is that of the directory in which it lies.
pub fn remove_set(path: &Path, asked: Asked) -> Result<Removed, (PathBuf, io::Error)> {
    let failed = |error| (path.to_owned(), error);
    let directory = match open(libc::AT_FDCWD, path.as_os_str()) {
        Ok(directory) => directory,
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => return Ok(Removed::All),
        // A link or a file in the set's place is not what a load made.
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOTDIR | libc::ELOOP)) => {
            return Ok(Removed::But(path.to_owned()));
        }
        Err(error) => return Err(failed(error)),
    };
    match empty(&directory, path, asked)? {
        Removed::All => {}
        other => return Ok(other),
    }
    match fs::remove_dir(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(error)),
        _ => Ok(Removed::All),
    }
}

/// Remove what loads made in a directory.
fn empty(directory: &OwnedFd, path: &Path, asked: Asked) -> Result<Removed, (PathBuf, io::Error)> {
    let failed = |error| (path.to_owned(), error);
    let mut done = Removed::All;
    let here = format!("/proc/self/fd/{}", directory.as_raw_fd());
    for item in fs::read_dir(here).map_err(failed)? {
        if asked() {
            return Ok(Removed::Stopped);
        }
        let item = item.map_err(failed)?;
        let name = item.file_name();
        let inside = path.join(&name);
        let is_directory = item.file_type().map_err(failed)?.is_dir();
        if is_directory && is_directory_name(&name) {
            let below = open(directory.as_raw_fd(), &name).map_err(failed)?;
            match empty(&below, &inside, &mut *asked)? {
                Removed::All => unlink(directory, &name, libc::AT_REMOVEDIR).map_err(failed)?,
                Removed::Stopped => return Ok(Removed::Stopped),
                found => done = found,
            }
        } else if !is_directory && name.to_str().and_then(entry_of).is_some() {
            unlink(directory, &name, 0).map_err(failed)?;
        } else {
            done = Removed::But(inside);
        }
    }
    Ok(done)
}

/// Whether a load names a directory so: six digits or more.
fn is_directory_name(name: &OsStr) -> bool {
    let name = name.as_bytes();
    name.len() >= 6 && name.iter().all(u8::is_ascii_digit)
}

fn open(at: i32, name: &OsStr) -> io::Result<OwnedFd> {
    let name = CString::new(name.as_bytes())?;
    let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    // SAFETY: the name ends with NUL; a descriptor that is returned is nobody else's.
    unsafe {
        match libc::openat(at, name.as_ptr(), flags) {
            fd if fd < 0 => Err(io::Error::last_os_error()),
            fd => Ok(OwnedFd::from_raw_fd(fd)),
        }
    }
}

fn unlink(directory: &OwnedFd, name: &OsStr, flags: i32) -> io::Result<()> {
    let name = CString::new(name.as_bytes())?;
    // SAFETY: the name ends with NUL, the directory is open.
    match unsafe { libc::unlinkat(directory.as_raw_fd(), name.as_ptr(), flags) } {
        0 => Ok(()),
        _ => match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::NotFound => Ok(()),
            error => Err(error),
        },
    }
}
