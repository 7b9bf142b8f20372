//! The slots as files beside the database: `DATABASE.state.0` and `.1`.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::{Content, Disk, Failure};

/// Longest state that is read.
const BYTES_MAX: u64 = 256 << 20;

/// Two files.
#[derive(Debug)]
pub struct Files {
    /// What the names of the files begin with.
    stem: PathBuf,
}

impl Files {
    /// Beside a database.
    pub fn beside(database: &Path) -> Self {
        let mut stem = database.as_os_str().to_owned();
        stem.push(".state");
        Self { stem: stem.into() }
    }

    /// The one file of earlier versions, without generation and checksum.
    pub fn former(&self) -> &Path {
        &self.stem
    }

    fn path(&self, word: &str) -> PathBuf {
        let mut name = self.stem.clone().into_os_string();
        name.push(".");
        name.push(word);
        name.into()
    }

    fn slot(&self, slot: usize) -> PathBuf {
        self.path(&slot.to_string())
    }

    /// Has the names in the folder on the device as well.
    fn sync_folder(&self) -> std::io::Result<()> {
        let folder = self
            .stem
            .parent()
            .filter(|it| !it.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        File::open(folder)?.sync_all()
    }

    /// Forgets the file of earlier versions: what it said is in a slot.
    pub fn forget_former(&self) {
        if std::fs::remove_file(&self.stem).is_ok() {
            let _ = self.sync_folder();
        }
    }
}

impl Disk for Files {
    fn read(&self, slot: usize) -> Content {
        read(&self.slot(slot))
    }

    fn write(&mut self, slot: usize, bytes: &[u8]) -> Result<(), Failure> {
        let draft = self.path("draft");
        let prepare = || -> std::io::Result<()> {
            let mut file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(&draft)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            std::fs::rename(&draft, self.slot(slot))
        };
        let failure = |error: std::io::Error, is_done_perhaps| Failure {
            why: error.to_string(),
            is_done_perhaps,
        };
        prepare().map_err(|error| {
            let _ = std::fs::remove_file(&draft);
            failure(error, false)
        })?;
        self.sync_folder().map_err(|error| failure(error, true))
    }

    fn spoil(&mut self, slot: usize) -> Result<(), String> {
        let spoil = || -> std::io::Result<()> {
            let file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(self.slot(slot))?;
            file.sync_all()?;
            self.sync_folder()
        };
        spoil().map_err(|error| format!("{}: {error}", self.slot(slot).display()))
    }

    fn name(&self, slot: usize) -> String {
        self.slot(slot).display().to_string()
    }
}

/// What is in a file.
pub fn read(path: &Path) -> Content {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        // Not a FIFO that somebody put there: that would wait for a writer.
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(path)?;
        file.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    match read() {
        Err(error) if error.kind() == ErrorKind::NotFound => Content::Missing,
        Err(error) => Content::Unreadable(error.to_string()),
        Ok(bytes) if bytes.len() as u64 > BYTES_MAX => {
            Content::Unreadable(format!("is longer than {BYTES_MAX} bytes"))
        }
        Ok(bytes) => Content::Bytes(bytes),
    }
}
