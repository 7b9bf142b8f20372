//! The file of a journal that its keeper writes, locked while the keeper lives.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use nix::fcntl::{Flock, FlockArg};

use super::alone::Alone;
use super::line::{Header, Line, text};
use crate::fault::{Doing, Result};

/// A locked file.
#[derive(Debug)]
pub(super) struct JournalFile {
    path: PathBuf,
    file: Flock<File>,
}

impl JournalFile {
    /// One that was found, and is locked by us.
    pub fn found(path: PathBuf, file: Flock<File>) -> Self {
        Self { path, file }
    }

    /// A new file, locked, with the header and these lines on disk.
    pub fn create(directory: &Path, header: &Header, lines: &[Line]) -> Result<Self> {
        let _alone = Alone::wait(directory)?;
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let name = format!("{:020}-{}.jsonl", now.as_nanos(), header.pid);
        let path = directory.join(name);
        let doing = format!("make the journal {}", path.display());
        let mut options = OpenOptions::new();
        options.append(true).create_new(true).mode(0o600);
        let file = options.open(&path).doing(&doing)?;
        let locked = Flock::lock(file, FlockArg::LockExclusiveNonblock);
        let mut file = locked.map_err(|(_, error)| error).doing(&doing)?;
        let header = serde_json::to_string(header).expect("a header is plain data");
        let written = file
            .write_all(format!("{header}\n{}", text(lines)).as_bytes())
            .and_then(|()| file.sync_data())
            .and_then(|()| File::open(directory)?.sync_all());
        if written.is_err() {
            let _ = std::fs::remove_file(&path);
        }
        written.doing(&doing)?;
        Ok(Self { path, file })
    }

    /// Adds lines; those that are `durable` are on disk when this returns.
    pub fn append(&mut self, lines: &[Line], durable: bool) -> Result<()> {
        let doing = format!("write the journal {}", self.path.display());
        let length = self.file.metadata().doing(&doing)?.len();
        let file = &mut self.file;
        let written = file
            .write_all(text(lines).as_bytes())
            .and_then(|()| if durable { file.sync_data() } else { Ok(()) });
        if written.is_err() {
            // A torn line is only understood at the end of the file.
            let _ = file.set_len(length);
        }
        written.doing(&doing)
    }

    /// How long it is.
    pub fn bytes(&self) -> Result<u64> {
        let doing = format!("compact the journal {}", self.path.display());
        Ok(self.file.metadata().doing(doing)?.len())
    }

    /// Another one stands for it from now on.
    pub fn replaced(self) -> Result<()> {
        let doing = format!("compact the journal {}", self.path.display());
        std::fs::remove_file(&self.path).doing(doing)
    }

    /// Everything in it is undone. One that is back after a crash of the machine would undo what was changed since.
    pub fn remove(self, directory: &Path) -> Result<()> {
        std::fs::remove_file(&self.path)
            .and_then(|()| File::open(directory)?.sync_all())
            .doing(format!("remove {}", self.path.display()))
    }
}
