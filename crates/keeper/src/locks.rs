//! One holder a resource, machine-wide. A lock goes with the process that holds it.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use nix::fcntl::{Flock, FlockArg};
use nix::libc;
use serde::{Deserialize, Serialize};

use crate::catalogue;
use crate::fault::{Doing, Fault, Result};
use crate::journal;

/// Where lock files of the machine live. They are never removed: a removed file could be locked by two.
pub const DIRECTORY: &str = "/run/ascar/locks";
/// Most locks a session may hold.
const LOCKS_MAX: usize = 1024;

/// Who holds a lock: the content of its file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Holder {
    /// The keeper.
    pub pid: u32,
    /// Its study.
    pub owner: String,
    /// Since when.
    pub since_unix_s: u64,
}

/// Locks that are held, by name. Whoever puts things back shares them with the session, so that nobody else
/// has them before the knobs are back.
pub type Held = Arc<Mutex<BTreeMap<String, Flock<File>>>>;

/// The locks of one session.
#[derive(Debug)]
pub struct Locks {
    owner: String,
    directory: PathBuf,
    journals: PathBuf,
    held: Held,
}

impl Locks {
    /// Those held so far, none at first, and what will be taken. What waits for its confirmation in `journals` keeps its
    /// locks.
    pub fn new(owner: &str, directory: &Path, journals: &Path, held: Held) -> Self {
        Self {
            owner: owner.to_owned(),
            directory: directory.to_owned(),
            journals: journals.to_owned(),
            held,
        }
    }

    /// Takes a lock, or has it already. A knob's name means the knob and those coupled to it.
    ///
    /// # Errors
    /// Input for a name that cannot be, refused when another session holds it.
    pub fn take(&mut self, resource: &str) -> Result<()> {
        let name = catalogue::resolve(resource)
            .map_or_else(|_| resource.to_owned(), |knob| knob.cluster());
        check_name(&name)?;
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.contains_key(&name) {
            return Ok(());
        }
        if held.len() >= LOCKS_MAX {
            return Err(Fault::input(format!(
                "resources: more than {LOCKS_MAX} locks in one session"
            )));
        }
        let lock = self.lock(&name)?;
        // Afterwards: the session whose changes wait has let go of its locks when that is on disk.
        self.check_decided(&name)?;
        held.insert(name, lock);
        Ok(())
    }

    /// Refuses what is in force without being confirmed: it would be taken for what was there before.
    fn check_decided(&self, name: &str) -> Result<()> {
        let waiting = journal::waiting(&self.journals);
        let has_it = |it: &&journal::Waiting| it.unconfirmed.locks.iter().any(|lock| lock == name);
        match waiting.iter().find(has_it) {
            None => Ok(()),
            Some(holder) => Err(Fault::refused(format!(
                "{name} is held: {}: confirm it, or put it back with `ascar restore`",
                holder.described()
            ))),
        }
    }

    fn lock(&self, name: &str) -> Result<Flock<File>> {
        let path = self
            .directory
            .join(format!("{}.lock", name.replace('/', "!")));
        let doing = format!("lock {}", path.display());
        DirBuilder::new()
            .recursive(true)
            .mode(0o755)
            .create(&self.directory)
            .doing(&doing)?;
        let mut options = OpenOptions::new();
        options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o644)
            .custom_flags(libc::O_NOFOLLOW);
        let file = options.open(&path).doing(&doing)?;
        let mut lock = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => lock,
            Err((file, _)) => {
                return Err(Fault::refused(format!(
                    "{name} is locked {}",
                    describe(file)
                )));
            }
        };
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_secs();
        let holder = Holder {
            pid: std::process::id(),
            owner: self.owner.clone(),
            since_unix_s: since,
        };
        let text = serde_json::to_string(&holder).expect("a holder is plain data");
        let written = lock
            .set_len(0)
            .and_then(|()| lock.rewind())
            .and_then(|()| lock.write_all(text.as_bytes()));
        written.doing(&doing)?;
        Ok(lock)
    }
}

fn check_name(name: &str) -> Result<()> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._:/!-".contains(&byte);
    if name.is_empty() || name.len() > 128 || name.starts_with('.') || !name.bytes().all(allowed) {
        return Err(Fault::input(format!(
            "resource = {name:?}: allowed are up to 128 of A-Z a-z 0-9 . _ : / ! -, not starting with a dot"
        )));
    }
    Ok(())
}

fn describe(file: File) -> String {
    let mut text = String::new();
    let read = file.take(4096).read_to_string(&mut text);
    match read
        .ok()
        .and_then(|_| serde_json::from_str::<Holder>(&text).ok())
    {
        Some(holder) => {
            let now = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default()
                .as_secs();
            let seconds = now.saturating_sub(holder.since_unix_s);
            format!(
                "by {:?} (keeper {}, for {seconds} s): wait for it or stop it",
                holder.owner, holder.pid
            )
        }
        None => "by another session".to_owned(),
    }
}
