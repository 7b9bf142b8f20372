//! Which file a path means, so that another one under the same name is left alone.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

/// A file's identity. The device's number may change with a reboot; inode and time of birth do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileId {
    /// The device it is on.
    pub device: u64,
    /// Its inode.
    pub inode: u64,
    /// When it was made; None where the file system does not say.
    pub born_ns: Option<u64>,
}

impl FileId {
    /// The identity of an open or named file.
    pub fn of(metadata: &Metadata) -> Self {
        let born = metadata
            .created()
            .ok()
            .and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            born_ns: born.and_then(|born| u64::try_from(born.as_nanos()).ok()),
        }
    }

    /// The same file, in the same boot or (`rebooted`) a later one.
    pub fn is(&self, other: &Self, rebooted: bool) -> bool {
        let device = if rebooted {
            self.born_ns.is_some()
        } else {
            self.device == other.device
        };
        device && self.inode == other.inode && self.born_ns == other.born_ns
    }
}
