//! JSON lines on a pipe: requests, replies, and their limits.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::content::Content;
use crate::fault::{Fault, Result};

/// Version of this protocol; both sides must speak the same.
pub const VERSION: u64 = 1;
/// Longest request line in bytes.
pub const LINE_BYTES_MAX: usize = 4 << 20;
/// Seconds an operation may take unless the request says otherwise.
pub const TIMEOUT_S_DEFAULT: f64 = 120.0;
/// Most seconds a request may ask for.
pub const TIMEOUT_S_MAX: f64 = 3600.0;

/// A value as clients write it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected an integer, a string or a boolean")]
pub enum Scalar {
    /// `true`, `false`.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// A word.
    Text(String),
}

impl std::fmt::Display for Scalar {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Boolean(value) => write!(formatter, "{value}"),
            Self::Integer(value) => write!(formatter, "{value}"),
            Self::Text(value) => write!(formatter, "{value:?}"),
        }
    }
}

/// Everything a client can ask for. There is no other way in.
#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
#[allow(missing_docs)]
pub enum Operation {
    Hello {
        version: u64,
        owner: String,
    },
    Lock {
        resources: Vec<String>,
    },
    KnobRead {
        knob: String,
    },
    KnobWrite {
        knob: String,
        value: Scalar,
    },
    ImageCreate {
        path: PathBuf,
        size_bytes: u64,
    },
    ImageAttach {
        path: PathBuf,
        #[serde(default)]
        direct_io: bool,
    },
    ImageDetach {
        device: Option<PathBuf>,
    },
    ImageSave {
        name: String,
        device: Option<PathBuf>,
    },
    ImageLoad {
        name: String,
        device: Option<PathBuf>,
    },
    ImageForget {
        name: String,
        device: Option<PathBuf>,
    },
    DeviceClaim {
        path: PathBuf,
        confirmed: bool,
    },
    Format(FormatRequest),
    Mount(MountRequest),
    Remount {
        options: Vec<String>,
        device: Option<PathBuf>,
    },
    Unmount {
        device: Option<PathBuf>,
    },
    SyncFs {
        device: Option<PathBuf>,
    },
    DropCaches {
        level: u8,
    },
    CgroupCreate {
        memory_bytes: u64,
    },
    CgroupAdd {
        pid: i32,
    },
    CgroupRead {},
    CgroupKill {},
    CgroupRemove {},
    FileReplace {
        path: PathBuf,
        content: Content,
    },
    UndoCommand {
        argv: Vec<String>,
        limit_s: f64,
        #[serde(default)]
        stdin: Option<String>,
    },
    UndoForget {
        argv: Vec<String>,
        #[serde(default)]
        stdin: Option<String>,
    },
    Status {},
    Restore {},
    Shutdown {},
    AwaitConfirmation {
        seconds: f64,
    },
    Confirmation {},
    Confirm {
        owner: String,
    },
}

/// A file system to make.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FormatRequest {
    /// ext2, ext3, ext4, xfs or btrfs.
    pub fs: String,
    /// Structured options; see [`crate::format`].
    #[serde(default)]
    pub options: BTreeMap<String, Scalar>,
    /// Feature names, `^name` switches one off.
    #[serde(default)]
    pub features: Vec<String>,
    /// Which of the session's devices, when it has several.
    pub device: Option<PathBuf>,
}

/// A file system to mount.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MountRequest {
    /// The file system that was made on the device.
    pub fs: String,
    /// Option tokens; see [`crate::mount_options`].
    #[serde(default)]
    pub options: Vec<String>,
    /// Who gets the root directory; the invoking user when absent.
    pub uid: Option<u32>,
    /// Its group.
    pub gid: Option<u32>,
    /// Which of the session's devices, when it has several.
    pub device: Option<PathBuf>,
}

/// One request of a client.
#[derive(Debug)]
pub struct Request {
    /// Repeated in the reply.
    pub id: u64,
    /// How long it may take.
    pub timeout: Duration,
    /// What to do.
    pub operation: Operation,
}

impl Request {
    /// Reads one line. The id is returned even when the rest is wrong, so that the error finds its request.
    pub fn parse(line: &[u8]) -> std::result::Result<Self, (Option<u64>, Fault)> {
        let value: Value = serde_json::from_slice(line).map_err(|error| {
            (
                None,
                Fault::input(format!("request is not a JSON object: {error}")),
            )
        })?;
        let Value::Object(mut fields) = value else {
            return Err((None, Fault::input("request is not a JSON object")));
        };
        let id = fields
            .remove("id")
            .and_then(|id| id.as_u64())
            .ok_or_else(|| (None, Fault::input("id must be a whole number >= 0")))?;
        let inner = || -> Result<Self> {
            let seconds = match fields.remove("timeout_s") {
                None => TIMEOUT_S_DEFAULT,
                Some(value) => value
                    .as_f64()
                    .filter(|seconds| *seconds > 0.0 && *seconds <= TIMEOUT_S_MAX)
                    .ok_or_else(|| {
                        Fault::input(format!(
                            "timeout_s = {value}: allowed are (0, {TIMEOUT_S_MAX}]"
                        ))
                    })?,
            };
            let operation = serde_json::from_value(Value::Object(fields))
                .map_err(|error| Fault::input(format!("bad request: {error}")))?;
            Ok(Self {
                id,
                timeout: Duration::from_secs_f64(seconds),
                operation,
            })
        };
        inner().map_err(|fault| (Some(id), fault))
    }
}

/// The way back to the client.
#[derive(Debug)]
pub struct Replies<W: Write>(Mutex<W>);

impl<W: Write> Replies<W> {
    /// Replies go to `output`.
    pub fn new(output: W) -> Self {
        Self(Mutex::new(output))
    }

    /// Sends one reply. A client that is gone is noticed by its closed request pipe, not here.
    pub fn send(&self, id: Option<u64>, outcome: &Result<Value>) {
        let reply = match outcome {
            Ok(value) => json!({"id": id, "ok": value}),
            Err(fault) => json!({"id": id, "error": fault}),
        };
        let mut line = reply.to_string();
        line.push('\n');
        let mut output = self
            .0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let _ = output
            .write_all(line.as_bytes())
            .and_then(|()| output.flush());
    }
}

/// Cuts a byte stream into lines of bounded length.
#[derive(Debug, Default)]
pub struct Lines {
    pending: Vec<u8>,
    skipping: bool,
}

impl Lines {
    /// Takes in a piece of the stream; calls `each` with every line that is complete, or with the fault of a
    /// line that was too long.
    pub fn feed(&mut self, piece: &[u8], mut each: impl FnMut(Result<&[u8]>)) {
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            let (content, complete) = match part.split_last() {
                Some((b'\n', content)) => (content, true),
                _ => (part, false),
            };
            if !self.skipping && self.pending.len() + content.len() > LINE_BYTES_MAX {
                self.skipping = true;
                self.pending = Vec::new();
                each(Err(Fault::input(format!(
                    "request line is longer than {LINE_BYTES_MAX} bytes"
                ))));
            }
            if !self.skipping {
                self.pending.extend_from_slice(content);
            }
            if complete {
                if !self.skipping && !self.pending.iter().all(u8::is_ascii_whitespace) {
                    each(Ok(&self.pending));
                }
                self.pending.clear();
                self.skipping = false;
            }
        }
    }
}
