//! One change of the machine, as a journal tells it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::content::Content;
use crate::file_id::FileId;

/// One change of the machine. `target` says where, `old` and `expected` what was there and what should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Change {
    /// A knob's value. `expected` is None for a coupled knob: the kernel chooses.
    Knob {
        /// The knob's name.
        target: String,
        /// What was in force.
        old: String,
        /// What is written.
        expected: Option<String>,
    },
    /// A file that we make: an image or the saved copy of one.
    File {
        /// Its path.
        target: PathBuf,
        /// Which file it is.
        expected: FileId,
    },
    /// A loop device, found by its backing file.
    Attach {
        /// The image's path.
        target: PathBuf,
        /// Which file it is.
        expected: FileId,
    },
    /// A directory that we make.
    Directory {
        /// Its path.
        target: PathBuf,
    },
    /// A mounted file system.
    Mount {
        /// Where.
        target: PathBuf,
        /// The device's path, by which the kernel's list of mounts names it.
        expected: PathBuf,
        /// Whether nobody needs what is on it once the session has ended.
        scratch: bool,
    },
    /// A control group.
    Cgroup {
        /// Its directory.
        target: PathBuf,
    },
    /// The memory controller, switched on for the children of a control group.
    Controller {
        /// The file that lists the controllers.
        target: PathBuf,
    },
    /// The content of a user's file. `old` is None where there was no file; `expected` tells the content that was
    /// written from others.
    Content {
        /// Its real path.
        target: PathBuf,
        /// The bytes that were there.
        old: Option<Content>,
        /// The length and the hash of what is written.
        expected: String,
        /// Those of what was there just before: a keeper that is killed has written the one or still the other.
        before: String,
        /// The permissions that it had.
        mode: u32,
    },
    /// A command that undoes what a client did by itself.
    Command {
        /// The program and its arguments.
        target: Vec<String>,
        /// How long it may take.
        limit_ms: u64,
        /// What it reads from its standard input. None: nothing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stdin: Option<String>,
    },
    /// The write cache flag of a scratch device, switched off so that its end is not waited for.
    WriteCache {
        /// The flag's file.
        target: PathBuf,
        /// What was in force.
        old: String,
    },
}
