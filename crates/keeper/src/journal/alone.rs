//! One keeper at a time makes, looks for or restores journals.

use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use nix::fcntl::{Flock, FlockArg};

use crate::fault::{Doing, Fault, Kind, Result};
use crate::place::check_roots_alone;

/// How long to wait for another keeper that is restoring.
const PATIENCE: Duration = Duration::from_secs(30);

/// Held while journals are made, looked for or restored, so that no keeper takes a new file for a dead one.
#[derive(Debug)]
pub struct Alone(#[allow(dead_code)] Flock<File>);

impl Alone {
    /// Waits until no other keeper is at it.
    pub fn wait(directory: &Path) -> Result<Self> {
        let doing = format!("lock {}", directory.display());
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .doing(&doing)?;
        check_safe(directory)?;
        let path = directory.join(".lock");
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)
            .doing(&doing)?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(lock) => return Ok(Self(lock)),
                Err((_, error)) if Instant::now() > deadline => {
                    return Err(Fault::failed(format!(
                        "cannot {doing}: another keeper is restoring: {error}"
                    )));
                }
                Err((back, _)) => file = back,
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Nobody but root may write what root will undo.
fn check_safe(directory: &Path) -> Result<()> {
    check_roots_alone(directory, is_own).map_err(|fault| match fault.kind {
        Kind::Refused => Fault::refused(format!(
            "journal {}: {} may be written by others than root: use a directory that may not",
            directory.display(),
            fault.message
        )),
        _ => fault,
    })
}

/// Root's, or (in tests, which need not be root) this user's.
pub(super) fn is_own(metadata: &Metadata) -> bool {
    metadata.uid() == 0 || metadata.uid() == nix::unistd::geteuid().as_raw()
}
