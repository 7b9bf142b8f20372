//! Making the files that exist before the run: in parallel, with progress, stopped at once when asked.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use crate::LoadError;
use crate::control::Control;
use crate::data::directory::failed;
use crate::data::layout::{Layout, PathBuffer, entry_of};
use crate::pattern::Pattern;

/// Files taken at a time by one of the threads that fill.
const BATCH: usize = 32;
/// More threads than this do not fill faster, but spread a set's files over the disk.
const MOST_THREADS: usize = 16;

/// How far a fill is; read while it goes on.
#[derive(Debug, Default)]
pub struct Progress {
    /// Files made.
    pub files: AtomicU64,
    /// Bytes written.
    pub bytes: AtomicU64,
}

/// Open a file set's own directory.
///
/// # Errors
/// It does not exist or cannot be opened.
pub fn open_root(path: &Path) -> Result<OwnedFd, LoadError> {
    let open = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_DIRECTORY)
        .open(path);
    open.map(OwnedFd::from)
        .map_err(|e| failed("open", path, &e))
}

/// Make a set's directories, and those of its files that are in `wanted`.
///
/// # Errors
/// The first that a file or directory cannot be made, or the request to stop.
pub fn fill(
    path: &Path,
    layout: &Layout,
    wanted: &[bool],
    progress: &Progress,
    control: &Control,
) -> Result<(), LoadError> {
    for directory in &layout.directories {
        let directory = path.join(directory);
        match fs::create_dir(&directory) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => {
                return Err(failed("make", &directory, &e));
            }
            _ => {}
        }
        if control.stopped() {
            return Ok(());
        }
    }
    let root = open_root(path)?;
    let pattern = Pattern::new(1 << 20);
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism()
        .map_or(4, |n| 2 * n.get())
        .min(MOST_THREADS);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let worker = Worker {
                    path,
                    root: root.as_raw_fd(),
                    layout,
                    pattern: &pattern,
                    progress,
                    control,
                };
                if let Err(error) = worker.files(wanted, &next) {
                    control.fail(error);
                }
            });
        }
    });
    control.result()
}

struct Worker<'a> {
    path: &'a Path,
    root: RawFd,
    layout: &'a Layout,
    pattern: &'a Pattern,
    progress: &'a Progress,
    control: &'a Control,
}

impl Worker<'_> {
    fn files(&self, wanted: &[bool], next: &AtomicUsize) -> Result<(), LoadError> {
        let mut buffer = PathBuffer::new();
        loop {
            let start = next.fetch_add(BATCH, Relaxed);
            if start >= wanted.len() {
                return Ok(());
            }
            for entry in (start..wanted.len().min(start + BATCH)).filter(|entry| wanted[*entry]) {
                if self.control.stopped() {
                    return Ok(());
                }
                self.file(entry as u32, &mut buffer)?;
            }
        }
    }

    fn file(&self, entry: u32, buffer: &mut PathBuffer) -> Result<(), LoadError> {
        let name = self.layout.path(entry, buffer);
        let error = |what: &str, e: &io::Error| {
            failed(
                what,
                &self.path.join(std::ffi::OsStr::from_bytes(name.to_bytes())),
                e,
            )
        };
        let flags = libc::O_CREAT | libc::O_TRUNC | libc::O_WRONLY | libc::O_CLOEXEC;
        // SAFETY: the name ends with NUL, the directory is open.
        let fd = unsafe { libc::openat(self.root, name.as_ptr(), flags, 0o644) };
        if fd < 0 {
            return Err(error("make", &io::Error::last_os_error()));
        }
        // SAFETY: the descriptor was just opened and belongs to nobody else.
        let file = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
        let size = self.layout.size_bytes[entry as usize];
        let mut offset = 0;
        while offset < size && !self.control.stopped() {
            let data = self.pattern.slice(
                u64::from(entry).wrapping_add(offset >> 12),
                (size - offset) as usize,
            );
            let written = std::os::unix::fs::FileExt::write_at(&file, data, offset)
                .map_err(|e| error("fill", &e))?;
            if written == 0 {
                return Err(error("fill", &io::Error::from_raw_os_error(libc::ENOSPC)));
            }
            offset += written as u64;
            self.progress.bytes.fetch_add(written as u64, Relaxed);
        }
        self.progress.files.fetch_add(1, Relaxed);
        Ok(())
    }
}

/// Which files of a set exist now, after runs that made and removed some.
///
/// # Errors
/// A directory cannot be read.
pub fn scan(path: &Path, layout: &Layout) -> Result<Vec<bool>, LoadError> {
    let mut exists = vec![false; layout.directory.len()];
    for (place, directory) in layout.directories.iter().enumerate() {
        let directory = path.join(directory);
        for item in fs::read_dir(&directory).map_err(|e| failed("read", &directory, &e))? {
            let item = item.map_err(|e| failed("read", &directory, &e))?;
            let is_file = item.file_type().is_ok_and(|kind| kind.is_file());
            let entry = item
                .file_name()
                .to_str()
                .and_then(entry_of)
                .map(|entry| entry as usize);
            match entry {
                Some(entry) if is_file && layout.directory.get(entry) == Some(&(place as u32)) => {
                    exists[entry] = true
                }
                _ => {}
            }
        }
    }
    Ok(exists)
}

/// Refuse a fill that cannot fit, before a byte is written.
///
/// # Errors
/// The bytes or files needed exceed what the file system has left.
pub fn check_room(path: &Path, bytes: u64, files: u64) -> Result<(), LoadError> {
    let name =
        CString::new(path.as_os_str().as_bytes()).expect("an open directory's path has no NUL");
    // SAFETY: all-zero bytes are a valid statvfs.
    let mut room: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: the name ends with NUL and `room` is writable.
    if unsafe { libc::statvfs(name.as_ptr(), &raw mut room) } != 0 {
        return Ok(());
    }
    let free = room.f_bavail.saturating_mul(room.f_frsize);
    // File systems that make inodes as needed tell 0.
    let inodes = if room.f_files == 0 {
        u64::MAX
    } else {
        room.f_favail
    };
    if bytes > free || files > inodes {
        return Err(LoadError::Work(format!(
            "the fill needs {} MB in {files} files, but {} has {} MB and {} files left; lower --scale, or give a \
             larger file system",
            bytes.div_ceil(1_000_000),
            path.display(),
            free / 1_000_000,
            if inodes == u64::MAX {
                "any number of".to_owned()
            } else {
                inodes.to_string()
            },
        )));
    }
    Ok(())
}
