//! The replay database's writer: a thread of its own, one transaction for all that waits.
//!
//! Others send jobs and read reports; [`writing`] is what the thread does, [`store`] the database it does it to.

mod store;
mod writing;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};

use store::Store;
use writing::Writing;

use crate::schema;
use crate::ticks::Tick;

/// Jobs on the way to the writer.
const JOBS_MAX: usize = 4096;

/// How much is kept.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Of ticks, this many.
    pub ticks: i64,
    /// And no more than fit into a file of this size.
    pub bytes: u64,
}

/// A tick with its metrics.
#[derive(Debug)]
pub struct Record {
    /// Rows by node.
    pub tick: Tick,
    /// Names and values.
    pub metrics: Vec<(Arc<str>, f64)>,
}

/// Something to write.
#[derive(Clone, Debug)]
pub enum Job {
    /// A closed tick.
    Tick(Arc<Record>),
    /// A verdict.
    Action {
        /// When.
        tick: i64,
        /// The action's.
        id: String,
        /// What was to change, as JSON.
        content: String,
        /// What came of it.
        verdict: &'static str,
        /// Why not.
        reason: Option<String>,
        /// Its own reason.
        why: String,
        /// Whose.
        actor: String,
    },
    /// The setting in force from a tick on, as JSON.
    Setting(i64, String),
    /// A workload that was announced; its end where it has no name.
    Workload {
        /// From when on.
        tick: i64,
        /// Its name.
        name: Option<String>,
        /// The scheduler's.
        job: String,
    },
    /// Who did what.
    Audit {
        /// When.
        tick: i64,
        /// Whose deed.
        actor: String,
        /// What.
        what: String,
        /// Why.
        why: String,
        /// More, as JSON.
        detail: String,
    },
    /// A state was written beside this database; it does not concern another that is open by then.
    HasState(PathBuf),
    /// Another database from here on.
    Open(PathBuf),
    /// Writes what waits and ends.
    Stop,
}

/// What the writer tells.
#[derive(Debug)]
pub enum Report {
    /// These ticks are on disk.
    Stored(Vec<Arc<Record>>),
    /// These are not, and are tried again.
    Failed(Vec<Arc<Record>>, String),
    /// So many ticks were given up.
    Lost(usize),
    /// Another database is in use; its last tick.
    Opened(PathBuf, Option<i64>),
    /// It could not be opened: the last one stays in use.
    Refused(PathBuf, String),
}

/// What a database says when it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// Its last tick.
    pub last: Option<i64>,
    /// Whether a state was written beside it.
    pub has_state: bool,
}

/// The way to the writer.
#[derive(Debug)]
pub struct Writer {
    jobs: SyncSender<Job>,
    /// What it tells.
    pub reports: Receiver<Report>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Writer {
    /// Opens the database and starts.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn start(path: &Path, limits: Limits) -> Result<(Self, Opened), String> {
        let store = Store::open(path)?;
        let look = || -> rusqlite::Result<Opened> {
            Ok(Opened {
                last: schema::last_tick(store.connection())?,
                has_state: schema::has_state(store.connection())?,
            })
        };
        let opened = look().map_err(|error| format!("database {}: {error}", path.display()))?;
        let (jobs, receiver) = sync_channel(JOBS_MAX);
        let (sender, reports) = channel();
        let work = move || Writing::new(store, sender).run(&receiver, limits);
        let thread = std::thread::Builder::new()
            .name("writer".to_owned())
            .spawn(work)
            .map_err(|error| format!("start a thread: {error}"))?;
        Ok((
            Self {
                jobs,
                reports,
                thread: Some(thread),
            },
            opened,
        ))
    }

    /// Hands something over. Waits where thousands of jobs wait already.
    pub fn send(&self, job: Job) {
        let _ = self.jobs.send(job);
    }

    /// Has everything written, and ends.
    pub fn stop(&mut self) {
        self.send(Job::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests;
