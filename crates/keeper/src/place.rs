//! A name in a directory that is held open: what is checked is what is used, whatever its path leads to by then.
//!
//! A path that a user names is opened once, beneath the root and without following any symbolic link. From then on only
//! the directory's descriptor counts: whoever may rename a directory can put a link to another one in its place.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, OpenHow, ResolveFlag, open, openat2, renameat};
use nix::sys::stat::{Mode, fstatat};
use nix::unistd::{UnlinkatFlags, linkat, unlinkat};

use crate::fault::{Doing, Fault, Result};
use crate::invoker::Invoker;

/// A name in an open directory.
#[derive(Debug)]
pub struct Place {
    directory: File,
    name: OsString,
    path: PathBuf,
}

impl Place {
    /// Opens the directory of a path.
    ///
    /// # Errors
    /// Input when the path is not absolute, or its directory is not there, or a symbolic link is on the way.
    pub fn open(path: &Path) -> Result<Self> {
        let wrong = |why: &str| wrong(path, why);
        let (directory, name) = parts(path)?;
        let opened = open_directory(directory).map_err(|error| match error {
            Errno::ELOOP => wrong("a directory in it is a symbolic link: name the real one"),
            Errno::ENOSYS => wrong("cannot be opened safely: this needs Linux 5.6"),
            error => wrong(&format!(
                "cannot open its directory: {}: make it first",
                std::io::Error::from(error)
            )),
        })?;
        Ok(Self::in_directory(opened, name, path))
    }

    /// The place of a path that was opened before; None where its directory is gone, or is no longer the one that it was
    /// (a link is in its place). Whoever cannot look does not know.
    ///
    /// # Errors
    /// Its directory cannot be opened for another reason.
    pub fn find(path: &Path) -> Result<Option<Self>> {
        let (directory, name) = parts(path)?;
        match open_directory(directory) {
            Err(error) if is_gone(error) => Ok(None),
            opened => opened
                .map(|opened| Some(Self::in_directory(opened, name, path)))
                .map_err(std::io::Error::from)
                .doing(format!("open {}", directory.display())),
        }
    }

    fn in_directory(directory: File, name: &OsStr, path: &Path) -> Self {
        Self {
            directory,
            name: name.to_owned(),
            path: path.to_owned(),
        }
    }

    /// Another name in the same directory: this one with something before and after it.
    pub fn beside(&self, before: &str, after: &str) -> Result<Self> {
        let mut name = OsString::from(before);
        name.push(&self.name);
        name.push(after);
        Ok(Self {
            directory: self.directory.try_clone().doing("hold a directory")?,
            path: self.path.with_file_name(&name),
            name,
        })
    }

    /// The path by which it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Refuses a directory of somebody else; root may use any.
    pub fn check_owner(&self, invoker: &Invoker) -> Result<()> {
        let metadata = self.directory.metadata().doing("look at a directory")?;
        let owner = metadata.uid();
        if invoker.uid == 0 || owner == invoker.uid {
            return Ok(());
        }
        Err(Fault::refused(format!(
            "path = {:?}: its directory belongs to user {owner}, not to you (user {}): use a directory of your own",
            self.path, invoker.uid
        )))
    }

    /// Refuses a name that is taken.
    pub fn check_absent(&self) -> Result<()> {
        match fstatat(
            &self.directory,
            self.name.as_os_str(),
            AtFlags::AT_SYMLINK_NOFOLLOW,
        ) {
            Err(Errno::ENOENT) => Ok(()),
            Ok(_) => Err(self.exists()),
            Err(error) => Err(Fault::input(format!(
                "path = {:?}: {error}: name another file",
                self.path
            ))),
        }
    }

    fn exists(&self) -> Fault {
        Fault::refused(format!(
            "path = {:?}: exists already: name another file or remove it",
            self.path
        ))
    }

    /// Refuses what the file system has no room for.
    pub fn check_space(&self, needed: u64) -> Result<()> {
        let space = nix::sys::statvfs::fstatvfs(&self.directory).doing("ask for free space")?;
        let available = space.blocks_available() as u64 * space.fragment_size() as u64;
        if available >= needed {
            return Ok(());
        }
        Err(Fault::refused(format!(
            "path = {:?}: needs {needed} bytes, available are {available} in {}: free space, or ask for less",
            self.path,
            self.path.parent().unwrap_or(Path::new("/")).display()
        )))
    }

    /// A file in the directory that has no name yet, and is gone with its last descriptor.
    pub fn nameless(&self) -> Result<File> {
        let flags = OFlag::O_RDWR | OFlag::O_TMPFILE;
        self.open_beneath(OsStr::new("."), flags, Mode::from_bits_truncate(0o600))
            .map_err(|error| {
                Fault::failed(format!(
                    "cannot make {}: {}: its directory must be writable and on a file system such as ext4, xfs, \
                     btrfs or tmpfs",
                    self.path.display(),
                    std::io::Error::from(error)
                ))
            })
    }

    /// Gives a nameless file this name.
    ///
    /// # Errors
    /// Refused when the name is taken.
    pub fn name(&self, file: &File) -> Result<()> {
        let empty: &OsStr = OsStr::new("");
        let flags = AtFlags::AT_EMPTY_PATH;
        linkat(file, empty, &self.directory, self.name.as_os_str(), flags).map_err(|error| {
            match error {
                Errno::EEXIST => self.exists(),
                error => Fault::failed(format!("cannot name {}: {error}", self.path.display())),
            }
        })
    }

    /// Opens the file of this name for reading and writing, waiting for nothing.
    pub fn open_file(&self) -> Result<File> {
        self.open_beneath(&self.name, OFlag::O_RDWR | OFlag::O_NONBLOCK, Mode::empty())
            .doing(format!("open {}", self.path.display()))
    }

    /// Opens the file of this name for reading; None where there is none.
    pub fn read(&self) -> nix::Result<Option<File>> {
        match self.open_beneath(
            &self.name,
            OFlag::O_RDONLY | OFlag::O_NONBLOCK,
            Mode::empty(),
        ) {
            Err(Errno::ENOENT) => Ok(None),
            opened => opened.map(Some),
        }
    }

    /// The file of this name, if there is one, without following a link or waiting for anything.
    ///
    /// # Errors
    /// It cannot be looked at.
    pub fn present(&self) -> Result<Option<File>> {
        let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW;
        match self.open_beneath(&self.name, flags, Mode::empty()) {
            Err(error) if is_gone(error) => Ok(None),
            opened => opened
                .map(Some)
                .doing(format!("look at {}", self.path.display())),
        }
    }

    /// A new, empty file of this name that only its owner may read or write.
    pub fn make(&self) -> nix::Result<File> {
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL;
        self.open_beneath(&self.name, flags, Mode::from_bits_truncate(0o600))
    }

    /// Gives what has this name the name of `other` in the same directory, durably.
    pub fn rename_to(&self, other: &Self) -> std::io::Result<()> {
        let (from, to) = (self.name.as_os_str(), other.name.as_os_str());
        renameat(&self.directory, from, &self.directory, to)?;
        self.directory.sync_all()
    }

    /// Removes the file of this name, durably.
    pub fn remove(&self) -> Result<()> {
        let how = UnlinkatFlags::NoRemoveDir;
        unlinkat(&self.directory, self.name.as_os_str(), how)
            .map_err(std::io::Error::from)
            .and_then(|()| self.directory.sync_all())
            .doing(format!("remove {}", self.path.display()))
    }

    fn open_beneath(&self, name: &OsStr, flags: OFlag, mode: Mode) -> nix::Result<File> {
        let how = beneath(flags).mode(mode);
        openat2(&self.directory, name, how).map(File::from)
    }
}

fn wrong(path: &Path, why: &str) -> Fault {
    Fault::input(format!("path = {path:?}: {why}"))
}

/// The directory of a path, and its name there.
fn parts(path: &Path) -> Result<(&Path, &OsStr)> {
    path.parent()
        .zip(path.file_name())
        .filter(|_| path.is_absolute())
        .ok_or_else(|| wrong(path, "must be absolute and end in a file name"))
}

/// Whether what a path named is there no longer, or something else is.
fn is_gone(error: Errno) -> bool {
    matches!(error, Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP)
}

fn beneath(flags: OFlag) -> OpenHow {
    let resolve = ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_SYMLINKS;
    OpenHow::new()
        .flags(flags | OFlag::O_CLOEXEC)
        .resolve(resolve)
}

fn open_directory(path: &Path) -> nix::Result<File> {
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let root = open("/", flags, Mode::empty())?;
    let below = path.strip_prefix("/").unwrap_or(path);
    let below = if below.as_os_str().is_empty() {
        Path::new(".")
    } else {
        below
    };
    openat2(root, below, beneath(OFlag::O_RDONLY | OFlag::O_DIRECTORY)).map(File::from)
}

/// Nobody but root may write a file that root will trust: neither it nor a directory above it may be anybody else's or
/// open to others. A sticky directory such as /tmp lets nobody replace what is root's.
///
/// # Errors
/// The first place that others may write.
pub fn check_roots_alone(path: &Path, is_own: impl Fn(&Metadata) -> bool) -> Result<()> {
    let real = path
        .canonicalize()
        .doing(format!("look at {}", path.display()))?;
    for (depth, place) in real.ancestors().enumerate() {
        let metadata = place
            .metadata()
            .doing(format!("look at {}", place.display()))?;
        let open = metadata.mode() & 0o022 != 0 && (depth == 0 || metadata.mode() & 0o1000 == 0);
        if !is_own(&metadata) || open {
            return Err(Fault::refused(place.display().to_string()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_is_gone_is_no_failure_but_one_that_cannot_be_opened_is() {
        let folder = std::env::temp_dir().join(format!("ascar-place-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("file"), "").unwrap();
        std::os::unix::fs::symlink(&folder, folder.join("link")).unwrap();
        for gone in ["none/image", "file/image", "link/image"] {
            assert!(Place::find(&folder.join(gone)).unwrap().is_none(), "{gone}");
        }
        let long = folder.join("x".repeat(300)).join("image");
        let fault = Place::find(&long).err().unwrap();
        assert!(fault.message.contains("cannot open"), "{}", fault.message);
        let place = Place::find(&folder.join("file")).unwrap().unwrap();
        assert!(place.present().unwrap().is_some());
        std::fs::remove_dir_all(folder).unwrap();
        assert!(place.present().unwrap().is_none());
    }
}
