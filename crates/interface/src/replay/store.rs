//! The replay database while it is written: rows of jobs, and what is deleted again.

use std::collections::{HashMap, VecDeque};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::{Connection, params};

use super::{Job, Limits, Record};
use crate::LOG;
use crate::history::STORED_BYTES_MAX;
use crate::layouts::Layout;
use crate::schema;

/// Ticks deleted at a time, so that writing goes on between.
const CLEAN_TICKS: i64 = 600;

/// Layouts whose numbers are known; then they are looked for anew.
const LAYOUTS_MAX: usize = 20_000;

/// An open database.
pub(super) struct Store {
    path: PathBuf,
    connection: Connection,
    known: Known,
    /// Whoever holds it writes this database; no one else does.
    _lock: std::fs::File,
}

impl Store {
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        let lock = lock(path)?;
        let connection = schema::open(path)?;
        let sql = format!("SELECT count(*) FROM layouts WHERE length(names) > {STORED_BYTES_MAX}");
        let over: i64 = connection
            .query_row(&sql, [], |row| row.get(0))
            .unwrap_or(0);
        if over > 0 {
            LOG.line(format_args!(
                "{}: {over} lists of indicators have more than {STORED_BYTES_MAX} bytes: \
                 their ticks are passed over",
                path.display()
            ));
        }
        Ok(Self {
            path: path.to_owned(),
            connection,
            known: Known::default(),
            _lock: lock,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Writes jobs, all or none.
    pub(super) fn write(&mut self, jobs: &VecDeque<Job>) -> rusqlite::Result<()> {
        let outcome = self.try_write(jobs);
        if outcome.is_err() {
            // Numbers of names that were not written after all.
            self.known = Known::default();
        }
        outcome
    }

    fn try_write(&mut self, jobs: &VecDeque<Job>) -> rusqlite::Result<()> {
        let transaction = self.connection.transaction()?;
        for job in jobs {
            match job {
                Job::Tick(record) => write_tick(&transaction, &mut self.known, record)?,
                other => write_other(&transaction, other)?,
            }
        }
        transaction.commit()
    }

    /// Deletes what is too old or too much. Returns whether there is more to do.
    pub(super) fn clean(&self, limits: Limits) -> rusqlite::Result<bool> {
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
        let by_age = newest.saturating_sub(limits.ticks);
        let by_size = if used as u64 > limits.bytes {
            oldest + ((newest - oldest) / 20).max(1)
        } else {
            oldest
        };
        let least = by_age.max(by_size).min(newest);
        if least <= oldest {
            return Ok(false);
        }
        let until = least.min(oldest + CLEAN_TICKS);
        self.delete(until)?;
        // Each step frees a page.
        let mut vacuum = self.connection.prepare("PRAGMA incremental_vacuum(4096)")?;
        let mut rows = vacuum.query([])?;
        while rows.next()?.is_some() {}
        Ok(until < least || by_size > oldest)
    }

    /// Deletes all before a tick, or nothing.
    fn delete(&self, until: i64) -> rusqlite::Result<()> {
        self.connection.execute_batch("BEGIN")?;
        let delete = || -> rusqlite::Result<()> {
            for table in ["ticks", "metrics", "actions"] {
                self.connection
                    .execute(&format!("DELETE FROM {table} WHERE tick < ?"), [until])?;
            }
            // What was in force then still tells what was in force after.
            for table in ["settings", "workloads"] {
                self.connection.execute(
                    &format!(
                        "DELETE FROM {table} WHERE n < (SELECT max(n) FROM {table} WHERE tick <= ?)"
                    ),
                    [until],
                )?;
            }
            self.connection.execute_batch("COMMIT")
        };
        delete().inspect_err(|_| {
            let _ = self.connection.execute_batch("ROLLBACK");
        })
    }
}

/// Numbers of names that the database has already.
#[derive(Default)]
struct Known {
    nodes: HashMap<Arc<str>, i64>,
    layouts: HashMap<u64, i64>,
    metrics: HashMap<Arc<str>, i64>,
}

impl Known {
    fn layout(&mut self, connection: &Connection, layout: &Arc<Layout>) -> rusqlite::Result<i64> {
        if let Some(id) = self.layouts.get(&layout.serial) {
            return Ok(*id);
        }
        let names = serde_json::to_string(&layout.names).unwrap_or_default();
        connection.execute("INSERT OR IGNORE INTO layouts(names) VALUES (?)", [&names])?;
        let sql = "SELECT id FROM layouts WHERE names = ?";
        let id = connection.query_row(sql, [&names], |row| row.get(0))?;
        if self.layouts.len() >= LAYOUTS_MAX {
            self.layouts.clear();
        }
        self.layouts.insert(layout.serial, id);
        Ok(id)
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

fn write_tick(connection: &Connection, known: &mut Known, record: &Record) -> rusqlite::Result<()> {
    let tick = record.tick.tick;
    let mut insert = connection.prepare_cached(
        "INSERT OR IGNORE INTO ticks(tick, node, layout, data) VALUES (?, ?, ?, ?)",
    )?;
    let mut data = Vec::new();
    for row in record.tick.rows.values() {
        let node = number(connection, "nodes", &mut known.nodes, &row.node)?;
        let layout = known.layout(connection, &row.layout)?;
        data.clear();
        data.extend(row.values.iter().flat_map(|value| value.to_le_bytes()));
        insert.execute(params![tick, node, layout, data])?;
    }
    let mut insert = connection
        .prepare_cached("INSERT OR IGNORE INTO metrics(tick, metric, value) VALUES (?, ?, ?)")?;
    for (name, value) in record.metrics.iter().filter(|it| it.1.is_finite()) {
        let metric = number(connection, "metric_names", &mut known.metrics, name)?;
        insert.execute(params![tick, metric, value])?;
    }
    Ok(())
}

fn write_other(connection: &Connection, job: &Job) -> rusqlite::Result<()> {
    match job {
        Job::Action {
            tick,
            id,
            content,
            verdict,
            reason,
            why,
            actor,
        } => connection.execute(
            "INSERT INTO actions(tick, id, content, verdict, reason, why, actor) VALUES (?, ?, ?, ?, ?, ?, ?)",
            params![tick, id, content, verdict, reason, why, actor],
        )?,
        Job::Setting(tick, content) => connection.execute(
            "INSERT INTO settings(tick, content) VALUES (?, ?)",
            params![tick, content],
        )?,
        Job::Workload { tick, name, job } => connection.execute(
            "INSERT INTO workloads(tick, name, job) VALUES (?, ?, ?)",
            params![tick, name, job],
        )?,
        Job::Audit {
            tick,
            actor,
            what,
            why,
            detail,
        } => connection.execute(
            "INSERT INTO audit(tick, unix_s, actor, what, why, detail) VALUES (?, ?, ?, ?, ?, ?)",
            params![tick, crate::clock::unix_s(), actor, what, why, detail],
        )?,
        Job::HasState(_) => {
            schema::note_state(connection)?;
            0
        }
        Job::Tick(_) | Job::Open(_) | Job::Stop => 0,
    };
    Ok(())
}

/// A second interface on one database would lose ticks.
fn lock(path: &Path) -> Result<std::fs::File, String> {
    let file = std::fs::OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(schema::with_end(path, ".lock"))
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
