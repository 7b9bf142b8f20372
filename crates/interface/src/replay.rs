//! The replay database's writer: a thread of its own, one transaction for all that waits.

use std::collections::{HashMap, VecDeque};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::time::{Duration, Instant};

use rusqlite::{Connection, params};

use crate::config::Retention;
use crate::schema;
use crate::ticks::Tick;

/// What may wait while the disk takes nothing.
const WAITING_BYTES_MAX: usize = 256 << 20;
/// Jobs on the way to the writer.
const JOBS_MAX: usize = 4096;
/// How often we look what is too old or too much.
const CLEAN_EVERY: Duration = Duration::from_secs(10);
/// Ticks deleted at a time, so that writing goes on between.
const CLEAN_TICKS: i64 = 600;

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
    /// A tick that is over.
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

/// The way to the writer.
#[derive(Debug)]
pub struct Writer {
    jobs: SyncSender<Job>,
    /// What it tells.
    pub reports: Receiver<Report>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Writer {
    /// Opens the database and starts. Returns the last tick in it as well.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn start(path: &Path, retention: Retention) -> Result<(Self, Option<i64>), String> {
        let store = Store::open(path)?;
        let last = schema::last_tick(&store.connection)
            .map_err(|error| format!("database {}: {error}", path.display()))?;
        let (jobs, receiver) = sync_channel(JOBS_MAX);
        let (sender, reports) = channel();
        let work = move || write(store, &receiver, &sender, &retention);
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
            last,
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

/// An open database with what is known of it.
struct Store {
    connection: Connection,
    nodes: HashMap<Arc<str>, i64>,
    layouts: HashMap<usize, (Arc<crate::nodes::Layout>, i64)>,
    metrics: HashMap<Arc<str>, i64>,
    /// Whoever holds it writes this database; no one else does.
    _lock: std::fs::File,
}

impl Store {
    fn open(path: &Path) -> Result<Self, String> {
        let lock = lock(path)?;
        Ok(Self {
            connection: schema::open(path)?,
            nodes: HashMap::new(),
            layouts: HashMap::new(),
            metrics: HashMap::new(),
            _lock: lock,
        })
    }

    /// Writes jobs, all or none.
    fn write(&mut self, jobs: &VecDeque<Job>) -> rusqlite::Result<()> {
        let outcome = self.try_write(jobs);
        if outcome.is_err() {
            // Numbers of names that were not written after all.
            self.nodes.clear();
            self.layouts.clear();
            self.metrics.clear();
        }
        outcome
    }

    fn try_write(&mut self, jobs: &VecDeque<Job>) -> rusqlite::Result<()> {
        let transaction = self.connection.transaction()?;
        let mut buffer = Vec::new();
        for job in jobs {
            match job {
                Job::Tick(record) => {
                    let mut insert = transaction.prepare_cached(
                        "INSERT OR IGNORE INTO ticks(tick, node, layout, data) VALUES (?, ?, ?, ?)",
                    )?;
                    for row in record.tick.rows.values() {
                        let node = number(&transaction, "nodes", &mut self.nodes, &row.node)?;
                        let place = Arc::as_ptr(&row.layout) as usize;
                        let layout = match self.layouts.get(&place) {
                            Some((_, layout)) => *layout,
                            None => {
                                let names =
                                    serde_json::to_string(&row.layout.names).unwrap_or_default();
                                transaction.execute(
                                    "INSERT OR IGNORE INTO layouts(names) VALUES (?)",
                                    [&names],
                                )?;
                                let sql = "SELECT id FROM layouts WHERE names = ?";
                                let id = transaction.query_row(sql, [&names], |it| it.get(0))?;
                                // Held, so that its place is no other's.
                                self.layouts.insert(place, (Arc::clone(&row.layout), id));
                                id
                            }
                        };
                        buffer.clear();
                        buffer.extend(row.values.iter().flat_map(|value| value.to_le_bytes()));
                        insert.execute(params![record.tick.tick, node, layout, buffer])?;
                    }
                    let mut insert = transaction.prepare_cached(
                        "INSERT OR IGNORE INTO metrics(tick, metric, value) VALUES (?, ?, ?)",
                    )?;
                    for (name, value) in record.metrics.iter().filter(|it| it.1.is_finite()) {
                        let metric = number(&transaction, "metric_names", &mut self.metrics, name)?;
                        insert.execute(params![record.tick.tick, metric, value])?;
                    }
                }
                Job::Action {
                    tick,
                    id,
                    content,
                    verdict,
                    reason,
                    why,
                    actor,
                } => {
                    transaction.execute(
                        "INSERT INTO actions(tick, id, content, verdict, reason, why, actor) VALUES (?, ?, ?, ?, ?, ?, ?)",
                        params![tick, id, content, verdict, reason, why, actor],
                    )?;
                }
                Job::Setting(tick, content) => {
                    transaction.execute(
                        "INSERT INTO settings(tick, content) VALUES (?, ?)",
                        params![tick, content],
                    )?;
                }
                Job::Audit {
                    tick,
                    actor,
                    what,
                    why,
                    detail,
                } => {
                    transaction.execute(
                        "INSERT INTO audit(tick, unix_s, actor, what, why, detail) VALUES (?, ?, ?, ?, ?, ?)",
                        params![tick, crate::clock::unix_s(), actor, what, why, detail],
                    )?;
                }
                Job::Open(_) | Job::Stop => {}
            }
        }
        transaction.commit()
    }

    /// Deletes what is too old or too much. Returns whether there is more to do.
    fn clean(&self, retention: &Retention) -> rusqlite::Result<bool> {
        let of = |what: &str| -> rusqlite::Result<Option<i64>> {
            self.connection
                .query_row(&format!("SELECT {what}(tick) FROM ticks"), [], |row| {
                    row.get(0)
                })
        };
        let (Some(oldest), Some(newest)) = (of("min")?, of("max")?) else {
            return Ok(false);
        };
        let pragma = |name: &str| {
            self.connection
                .query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, i64>(0))
        };
        let used = (pragma("page_count")? - pragma("freelist_count")?) * pragma("page_size")?;
        // Ticks are of any length: their age is told by the share of the newest one's that has passed.
        let by_age = newest - (retention.days * 86_400.0) as i64;
        let by_size = if used as u64 > retention.bytes_max {
            oldest + ((newest - oldest) / 20).max(1)
        } else {
            oldest
        };
        let least = by_age.max(by_size).min(newest);
        if least <= oldest {
            return Ok(false);
        }
        let until = least.min(oldest + CLEAN_TICKS);
        self.connection.execute_batch("BEGIN")?;
        let delete = || -> rusqlite::Result<()> {
            for table in ["ticks", "metrics", "actions"] {
                self.connection
                    .execute(&format!("DELETE FROM {table} WHERE tick < ?"), [until])?;
            }
            // The setting that was in force then still tells what was in force after.
            self.connection.execute(
                "DELETE FROM settings WHERE n < (SELECT max(n) FROM settings WHERE tick <= ?)",
                [until],
            )?;
            self.connection.execute_batch("COMMIT")
        };
        if let Err(error) = delete() {
            let _ = self.connection.execute_batch("ROLLBACK");
            return Err(error);
        }
        // Each step frees a page.
        let mut vacuum = self.connection.prepare("PRAGMA incremental_vacuum(4096)")?;
        let mut rows = vacuum.query([])?;
        while rows.next()?.is_some() {}
        Ok(until < least || by_size > oldest)
    }
}

fn number(
    connection: &Connection,
    table: &str,
    known: &mut HashMap<Arc<str>, i64>,
    name: &Arc<str>,
) -> rusqlite::Result<i64> {
    if let Some(id) = known.get(name) {
        return Ok(*id);
    }
    connection.execute(
        &format!("INSERT OR IGNORE INTO {table}(name) VALUES (?)"),
        [&**name],
    )?;
    let sql = format!("SELECT id FROM {table} WHERE name = ?");
    let id = connection.query_row(&sql, [&**name], |row| row.get(0))?;
    known.insert(Arc::clone(name), id);
    Ok(id)
}

/// A second interface on one database would lose ticks.
fn lock(path: &Path) -> Result<std::fs::File, String> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let file = std::fs::OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&name)
        .map_err(|error| format!("database {}: {error}", path.display()))?;
    // SAFETY: flock takes a descriptor, which is open as long as the file is.
    let taken = unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) };
    if taken == 0 {
        return Ok(file);
    }
    Err(format!(
        "database {}: another interface writes it: stop that one first",
        path.display()
    ))
}

fn write(mut store: Store, jobs: &Receiver<Job>, reports: &Sender<Report>, retention: &Retention) {
    let mut waiting: VecDeque<Job> = VecDeque::new();
    let mut reported = 0;
    let mut cleaned: Option<Instant> = None;
    let mut pause = Duration::ZERO;
    loop {
        // After a failure, not at once again.
        let wait = if waiting.is_empty() {
            CLEAN_EVERY
        } else {
            pause
        };
        let mut next = jobs.recv_timeout(wait).ok();
        let mut stopping = false;
        let mut opening = None;
        while let Some(job) = next {
            match job {
                Job::Stop => stopping = true,
                Job::Open(path) => {
                    opening = Some(path);
                    break;
                }
                job => waiting.push_back(job),
            }
            next = jobs.try_recv().ok();
        }
        if !waiting.is_empty() {
            match store.write(&waiting) {
                Ok(()) => {
                    let stored = ticks(&waiting);
                    waiting.clear();
                    reported = 0;
                    pause = Duration::ZERO;
                    let _ = reports.send(Report::Stored(stored));
                }
                Err(error) => {
                    let failed: VecDeque<Job> = waiting.iter().skip(reported).cloned().collect();
                    let _ = reports.send(Report::Failed(ticks(&failed), error.to_string()));
                    let lost = shorten(&mut waiting, WAITING_BYTES_MAX);
                    if lost > 0 {
                        let _ = reports.send(Report::Lost(lost));
                    }
                    reported = waiting.len();
                    pause = Duration::from_secs(1);
                }
            }
        }
        if stopping {
            return;
        }
        if let Some(path) = opening {
            let report = match Store::open(&path) {
                Ok(opened) => {
                    let last = schema::last_tick(&opened.connection).unwrap_or(None);
                    store = opened;
                    Report::Opened(path, last)
                }
                Err(error) => Report::Refused(path, error),
            };
            let _ = reports.send(report);
        }
        if cleaned.is_none_or(|at| at.elapsed() >= CLEAN_EVERY) && waiting.is_empty() {
            // What goes on being too much is cleaned further with the next job.
            let more = store.clean(retention).unwrap_or(false);
            cleaned = (!more).then(Instant::now);
        }
    }
}

fn ticks(jobs: &VecDeque<Job>) -> Vec<Arc<Record>> {
    let record = |job: &Job| match job {
        Job::Tick(record) => Some(Arc::clone(record)),
        _ => None,
    };
    jobs.iter().filter_map(record).collect()
}

/// Gives the oldest ticks up where too much waits; actions and the audit stay.
fn shorten(waiting: &mut VecDeque<Job>, bytes_max: usize) -> usize {
    let size = |job: &Job| match job {
        Job::Tick(record) => {
            record
                .tick
                .rows
                .values()
                .map(|row| row.values.len() * 4 + 64)
                .sum::<usize>()
                + 256
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::Layout;
    use crate::ticks::Row;
    use std::collections::BTreeMap;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path =
                std::env::temp_dir().join(format!("ascar-replay-{name}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&path);
            std::fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn record(tick: i64, count: usize) -> Job {
        let layout = Arc::new(Layout {
            id: "0".to_owned(),
            number: 0,
            names: vec!["a".to_owned(); count],
        });
        let row = Row {
            node: "n".into(),
            layout,
            values: vec![1.5; count],
        };
        let metrics = vec![(Arc::from("m"), 2.5), (Arc::from("none"), f64::NAN)];
        Job::Tick(Arc::new(Record {
            tick: Tick {
                tick,
                rows: BTreeMap::from([(0, row)]),
            },
            metrics,
        }))
    }

    fn stored(writer: &Writer) -> usize {
        match writer
            .reports
            .recv_timeout(Duration::from_secs(20))
            .unwrap()
        {
            Report::Stored(records) => records.len(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_written_is_there_after_a_new_start() {
        let folder = Folder::new("written");
        let path = folder.0.join("r.sqlite");
        let (mut writer, last) = Writer::start(&path, Retention::default()).unwrap();
        assert_eq!(last, None);
        writer.send(record(5, 3));
        assert_eq!(stored(&writer), 1);
        // While it is open nobody else may write.
        assert!(
            Writer::start(&path, Retention::default())
                .unwrap_err()
                .contains("another interface")
        );
        writer.stop();
        let (mut writer, last) = Writer::start(&path, Retention::default()).unwrap();
        assert_eq!(last, Some(5));
        writer.stop();
        let connection = schema::open_to_read(&path).unwrap();
        let count = |table: &str| -> i64 {
            connection
                .query_row(&format!("SELECT count(*) FROM {table}"), [], |row| {
                    row.get(0)
                })
                .unwrap()
        };
        assert_eq!(
            (count("ticks"), count("metrics"), count("nodes")),
            (1, 1, 1)
        );
    }

    #[test]
    fn databases_of_others_and_of_newer_versions_are_refused() {
        let folder = Folder::new("refused");
        let path = folder.0.join("r.sqlite");
        Connection::open(&path)
            .unwrap()
            .execute_batch("CREATE TABLE x(y)")
            .unwrap();
        assert!(schema::open(&path).unwrap_err().contains("another program"));
        std::fs::remove_file(&path).unwrap();
        schema::open(&path)
            .unwrap()
            .execute_batch("PRAGMA user_version = 7")
            .unwrap();
        assert!(schema::open(&path).unwrap_err().contains("version 7"));
        std::fs::write(&path, vec![b'x'; 5000]).unwrap();
        assert!(schema::open(&path).is_err());
        assert!(Writer::start(Path::new("/no/such/folder/r"), Retention::default()).is_err());
    }

    #[test]
    fn old_ticks_go_by_age_and_by_size() {
        let folder = Folder::new("old");
        let mut store = Store::open(&folder.0.join("r.sqlite")).unwrap();
        let jobs: VecDeque<Job> = (0..3000).map(|tick| record(tick, 200)).collect();
        store.write(&jobs).unwrap();
        let oldest = |store: &Store| -> i64 {
            store
                .connection
                .query_row("SELECT min(tick) FROM ticks", [], |row| row.get(0))
                .unwrap()
        };
        let days = Retention {
            days: 1000.0 / 86_400.0,
            bytes_max: 1 << 40,
        };
        while store.clean(&days).unwrap() {}
        assert_eq!(oldest(&store), 1999);
        let size = Retention {
            days: 1000.0,
            bytes_max: 500_000,
        };
        while store.clean(&size).unwrap() {}
        assert!(oldest(&store) > 2300, "{}", oldest(&store));
        let pages: i64 = store
            .connection
            .query_row("PRAGMA page_count", [], |row| row.get(0))
            .unwrap();
        assert!(pages * 4096 < 1_500_000, "{pages}");
    }

    #[test]
    fn what_waits_is_bounded_and_actions_stay() {
        let mut waiting: VecDeque<Job> = (0..200).map(|tick| record(tick, 1000)).collect();
        waiting.push_front(Job::Setting(0, "{}".to_owned()));
        let lost = shorten(&mut waiting, 400_000);
        assert!((100..200).contains(&lost), "{lost}");
        assert!(matches!(waiting[0], Job::Setting(..)));
    }
}
