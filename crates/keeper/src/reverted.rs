//! What was put back last of what nobody had confirmed: whoever confirms too late is told so.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::journal::Header;
use crate::report::Report;

const NAME: &str = ".reverted.json";
const DRAFT: &str = ".reverted.json.new";

/// A session that was put back instead of confirmed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reverted {
    /// Whose it was.
    pub owner: String,
    /// When it began.
    pub started_unix_s: u64,
    /// When it was put back.
    pub at_unix_s: u64,
    /// What came of that.
    pub report: Report,
}

/// The last one; None where there is none, or its note cannot be read.
pub fn last(directory: &Path) -> Option<Reverted> {
    let text = std::fs::read(directory.join(NAME)).ok()?;
    serde_json::from_slice(&text).ok()
}

/// Forgets it: something else is in force now.
pub fn forget(directory: &Path) {
    let _ = std::fs::remove_file(directory.join(NAME));
}

/// Notes one. What a second attempt puts back belongs to the first one's. A note that cannot be written is missed by
/// nobody but the person who confirms too late.
pub fn note(directory: &Path, header: &Header, report: &Report) {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let mut all = last(directory)
        .filter(|it| (&it.owner, it.started_unix_s) == (&header.owner, header.started_unix_s))
        .map(|it| it.report)
        .unwrap_or_default();
    all.failed.clear();
    all.extend(report.clone());
    let reverted = Reverted {
        owner: header.owner.clone(),
        started_unix_s: header.started_unix_s,
        at_unix_s: now.as_secs(),
        report: all,
    };
    let text = serde_json::to_vec(&reverted).expect("a note is plain data");
    let draft = directory.join(DRAFT);
    let _ = std::fs::remove_file(&draft);
    let mut options = std::fs::OpenOptions::new();
    let opened = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&draft);
    let _ = opened
        .and_then(|mut file| file.write_all(&text).and_then(|()| file.sync_all()))
        .and_then(|()| std::fs::rename(&draft, directory.join(NAME)));
}
