//! The file in which data is kept: looked at first, and made only when all else is well.

use ascar_log::Fault;

use std::fmt::Display;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// What is there.
#[derive(Debug)]
pub(crate) struct Found {
    path: PathBuf,
    /// None where it is still to be made.
    file: Option<File>,
    /// How large it is, or will be.
    pub(crate) size_bytes: u64,
}

/// Looks at a file. Without a size, it must be there and have one; with one, it may be missing or empty.
///
/// # Errors
/// A file that cannot be used, has another size, or is used by another disk.
pub(crate) fn find(path: &Path, wanted_bytes: Option<u64>) -> Result<Found, Fault> {
    let wrong = |what: &dyn Display| wrong(path, what);
    let found = |file, size_bytes| Found {
        path: path.to_owned(),
        file,
        size_bytes,
    };
    let file = match File::options().read(true).write(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let wanted =
                wanted_bytes.ok_or_else(|| wrong(&"there is none; give --size to make it"))?;
            folder(path).read_dir().map_err(|error| wrong(&error))?;
            return Ok(found(None, wanted));
        }
        Err(error) => return Err(wrong(&error)),
    };
    let metadata = file.metadata().map_err(|error| wrong(&error))?;
    if !metadata.is_file() {
        return Err(wrong(&"is not a file"));
    }
    lock(&file, path)?;
    match (wanted_bytes, metadata.len()) {
        (Some(wanted), 0) => Ok(found(Some(file), wanted)),
        (Some(wanted), size) if wanted != size => Err(wrong(&format_args!(
            "has {size} bytes, and all exports together have {wanted}; leave out --size to use it as it is"
        ))),
        (None, 0) => Err(wrong(&"is empty; give --size")),
        (_, size) => Ok(found(Some(file), size)),
    }
}

impl Found {
    /// What is wrong with it.
    pub(crate) fn fault(&self, what: &dyn Display) -> Fault {
        wrong(&self.path, what)
    }

    /// The file, of its size.
    ///
    /// # Errors
    /// That it cannot be made.
    pub(crate) fn make(self) -> Result<File, Fault> {
        let wrong = |error: io::Error| wrong(&self.path, &error);
        let file = match self.file {
            Some(file) => file,
            None => {
                let mut options = File::options();
                options.read(true).write(true).create_new(true);
                let file = options.open(&self.path).map_err(wrong)?;
                lock(&file, &self.path)?;
                file
            }
        };
        if file.metadata().map_err(wrong)?.len() == 0 {
            let made = file
                .set_len(self.size_bytes)
                .and_then(|()| lasts(&file, &self.path));
            made.map_err(wrong)?;
        }
        Ok(file)
    }
}

fn wrong(path: &Path, what: &dyn Display) -> Fault {
    Fault(format!("--file {}: {what}", path.display()))
}

fn lock(file: &File, path: &Path) -> Result<(), Fault> {
    // SAFETY: the descriptor is open, and the call takes integers.
    if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } < 0 {
        return Err(wrong(path, &"is used by another disk"));
    }
    Ok(())
}

fn folder(path: &Path) -> &Path {
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// A new file, with its size and its name, outlasts this machine.
fn lasts(file: &File, path: &Path) -> io::Result<()> {
    file.sync_all()?;
    File::open(folder(path))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_the_size_that_was_asked_for() {
        let folder = std::env::temp_dir().join(format!("ascar-disk-file-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let path = folder.join("disk");
        let refused = |size| find(&path, size).unwrap_err().0;
        assert!(refused(None).contains("--size"));
        let found = find(&path, Some(8192)).unwrap();
        assert!(!path.exists());
        let file = found.make().unwrap();
        assert_eq!(file.metadata().unwrap().len(), 8192);
        assert!(refused(None).contains("another disk"));
        drop(file);
        assert_eq!(find(&path, None).unwrap().size_bytes, 8192);
        assert!(refused(Some(4096)).contains("8192"));
        assert!(find(&folder, None).is_err());
        assert!(find(&folder.join("none/disk"), Some(1)).is_err());
        std::fs::remove_dir_all(folder).unwrap();
    }
}
