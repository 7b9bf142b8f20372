//! What the writer's thread does: gather jobs, write them, report, clean.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};

use super::{Job, Limits, Record, Report, Store};
use crate::schema;

/// What may wait while the disk takes nothing.
const WAITING_BYTES_MAX: usize = 256 << 20;
/// How often we look what is too old or too much.
const CLEAN_EVERY: Duration = Duration::from_secs(10);

/// The writer's state.
pub(super) struct Writing {
    store: Store,
    reports: Sender<Report>,
    /// Jobs that are not on disk.
    waiting: VecDeque<Job>,
    /// So many of them were reported as failed already.
    reported: usize,
    /// After a failure, until we try again.
    pause: Duration,
}

/// What jobs ask for besides being written.
#[derive(Default)]
struct Asked {
    is_end: bool,
    database: Option<PathBuf>,
}

impl Writing {
    pub(super) fn new(store: Store, reports: Sender<Report>) -> Self {
        Self {
            store,
            reports,
            waiting: VecDeque::new(),
            reported: 0,
            pause: Duration::ZERO,
        }
    }

    /// Writes until somebody says stop.
    pub(super) fn run(&mut self, jobs: &Receiver<Job>, limits: Limits) {
        let mut cleaned: Option<Instant> = None;
        loop {
            let asked = self.gather(jobs);
            if !self.waiting.is_empty() {
                self.write();
            }
            if asked.is_end {
                return;
            }
            if let Some(path) = asked.database {
                self.open(path);
            }
            if cleaned.is_none_or(|at| at.elapsed() >= CLEAN_EVERY) && self.waiting.is_empty() {
                // What goes on being too much is cleaned further with the next job.
                let more = self.store.clean(limits).unwrap_or(false);
                cleaned = (!more).then(Instant::now);
            }
        }
    }

    /// Takes all jobs that are there, up to another database; waits for the first.
    fn gather(&mut self, jobs: &Receiver<Job>) -> Asked {
        let wait = if self.waiting.is_empty() {
            CLEAN_EVERY
        } else {
            self.pause
        };
        let mut asked = Asked::default();
        let mut next = jobs.recv_timeout(wait).ok();
        while let Some(job) = next {
            match job {
                Job::Stop => asked.is_end = true,
                Job::Open(path) => {
                    asked.database = Some(path);
                    break;
                }
                Job::HasState(path) if path != self.store.path() => {}
                job => self.waiting.push_back(job),
            }
            next = jobs.try_recv().ok();
        }
        asked
    }

    /// Writes what waits, or keeps as much of it as may be kept.
    fn write(&mut self) {
        match self.store.write(&self.waiting) {
            Ok(()) => {
                let stored = ticks(self.waiting.drain(..));
                self.reported = 0;
                self.pause = Duration::ZERO;
                self.report(Report::Stored(stored));
            }
            Err(error) => {
                let failed = ticks(self.waiting.iter().skip(self.reported).cloned());
                self.report(Report::Failed(failed, error.to_string()));
                let lost = shorten(&mut self.waiting, WAITING_BYTES_MAX);
                if lost > 0 {
                    self.report(Report::Lost(lost));
                }
                self.reported = self.waiting.len();
                self.pause = Duration::from_secs(1);
            }
        }
    }

    /// Another database from here on; one that is in use already stays open.
    fn open(&mut self, path: PathBuf) {
        if path == self.store.path() {
            return;
        }
        let report = match Store::open(&path) {
            Ok(opened) => {
                let last = schema::last_tick(opened.connection()).unwrap_or(None);
                self.store = opened;
                Report::Opened(path, last)
            }
            Err(error) => Report::Refused(path, error),
        };
        self.report(report);
    }

    fn report(&self, report: Report) {
        // Nobody listens any more when the session has ended.
        let _ = self.reports.send(report);
    }
}

fn ticks(jobs: impl Iterator<Item = Job>) -> Vec<Arc<Record>> {
    let record = |job| match job {
        Job::Tick(record) => Some(record),
        _ => None,
    };
    jobs.filter_map(record).collect()
}

/// Gives the oldest ticks up where too much waits; actions and the audit stay.
pub(super) fn shorten(waiting: &mut VecDeque<Job>, bytes_max: usize) -> usize {
    let size = |job: &Job| match job {
        Job::Tick(record) => {
            let rows = record.tick.rows.values();
            rows.map(|row| row.values.len() * 4 + 64).sum::<usize>() + 256
        }
        _ => 512,
    };
    let mut total: usize = waiting.iter().map(size).sum();
    let mut lost = 0;
    waiting.retain(|job| {
        let goes = total > bytes_max && matches!(job, Job::Tick(_));
        if goes {
            total -= size(job);
            lost += 1;
        }
        !goes
    });
    lost
}
