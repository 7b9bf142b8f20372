//! The replay database's form, in SQLite.

use std::fs::{OpenOptions, Permissions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

/// Version of the form; greater ones are refused.
pub const VERSION: i64 = 2;

/// Of version 2: from a tick on this workload runs; none where the name is null.
const WORKLOADS: &str = "
CREATE TABLE workloads(n INTEGER PRIMARY KEY, tick INTEGER NOT NULL, name TEXT, job TEXT NOT NULL);
CREATE INDEX workloads_by_tick ON workloads(tick);
";

const TABLES: &str = "
CREATE TABLE nodes(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE layouts(id INTEGER PRIMARY KEY, names TEXT NOT NULL UNIQUE);
CREATE TABLE ticks(tick INTEGER, node INTEGER, layout INTEGER NOT NULL, data BLOB NOT NULL,
    PRIMARY KEY(tick, node)) WITHOUT ROWID;
CREATE TABLE metric_names(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE metrics(tick INTEGER, metric INTEGER, value REAL NOT NULL, PRIMARY KEY(tick, metric)) WITHOUT ROWID;
CREATE TABLE actions(n INTEGER PRIMARY KEY, tick INTEGER NOT NULL, id TEXT NOT NULL, content TEXT NOT NULL,
    verdict TEXT NOT NULL, reason TEXT, why TEXT NOT NULL, actor TEXT NOT NULL);
CREATE INDEX actions_by_tick ON actions(tick);
CREATE TABLE settings(n INTEGER PRIMARY KEY, tick INTEGER NOT NULL, content TEXT NOT NULL);
CREATE INDEX settings_by_tick ON settings(tick);
CREATE TABLE audit(n INTEGER PRIMARY KEY, tick INTEGER NOT NULL, unix_s REAL NOT NULL, actor TEXT NOT NULL,
    what TEXT NOT NULL, why TEXT NOT NULL, detail TEXT NOT NULL);
";

/// Of a database beside which a state was written (`PRAGMA application_id`): "asca".
const HAS_STATE: i64 = 0x6173_6361;

/// Opens a database to write, and makes it where there is none.
///
/// # Errors
/// When it cannot be opened, is none, or is of a newer version.
pub fn open(path: &Path) -> Result<Connection, String> {
    let wrong = |error: &dyn std::fmt::Display| format!("database {}: {error}", path.display());
    let refused = |version: i64, tables: i64| match (version, tables) {
        (0, 0) | (1..=VERSION, _) => Ok(()),
        (0, _) => Err(wrong(&"is another program's: name a file of its own")),
        (newer, _) => Err(wrong(&format!(
            "is of version {newer}: this interface knows {VERSION}: install a newer ascard"
        ))),
    };
    // What is refused stays as it is.
    let (version, tables) = found(path).map_err(|error| wrong(&error))?;
    refused(version, tables)?;
    // SQLite gives its other files the rights of this one; those of earlier versions could be read by everybody.
    for end in ["", "-wal", "-shm", ".lock", ".state"] {
        close_to_others(&with_end(path, end));
    }
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .map_err(|error| wrong(&error))?;
    let connection = Connection::open(path).map_err(|error| wrong(&error))?;
    let prepare = || -> rusqlite::Result<(i64, i64)> {
        connection.busy_timeout(Duration::from_secs(5))?;
        // Before the first table, or never.
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        // A tick that was published survives the loss of power.
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "journal_size_limit", 64 << 20)?;
        form(&connection)
    };
    let (version, tables) = prepare().map_err(|error| wrong(&error))?;
    refused(version, tables)?;
    let tables = match version {
        0 => [TABLES, WORKLOADS].concat(),
        1 => WORKLOADS.to_owned(),
        _ => return Ok(connection),
    };
    connection
        .execute_batch(&format!(
            "BEGIN; {tables} PRAGMA user_version = {VERSION}; COMMIT;"
        ))
        .map_err(|error| wrong(&error))?;
    Ok(connection)
}

/// The version of a database, and how many tables and indexes it has.
fn form(connection: &Connection) -> rusqlite::Result<(i64, i64)> {
    let version = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let tables =
        connection.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0))?;
    Ok((version, tables))
}

/// The same of a file that nobody writes, which is not changed: (0, 0) where there is none, or it is empty.
fn found(path: &Path) -> Result<(i64, i64), String> {
    let has_bytes = |path: &Path| std::fs::metadata(path).is_ok_and(|about| about.len() > 0);
    if !has_bytes(path) {
        return Ok((0, 0));
    }
    // Beside the file itself SQLite looks for its log, not beside a link to it.
    let path = std::fs::canonicalize(path).map_err(|error| error.to_string())?;
    let look = |how: &str| {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
        Connection::open_with_flags(format!("file:{}?{how}", escaped(&path)), flags)
            .and_then(|connection| form(&connection))
            .map_err(|error| error.to_string())
    };
    // Without its log: no file is made beside it, and none of it is moved.
    let alone = look("immutable=1");
    let is_newer = alone.as_ref().is_ok_and(|(version, _)| *version > VERSION);
    if has_bytes(&with_end(&path, "-wal")) && !is_newer {
        return look("mode=ro");
    }
    alone
}

/// A path as SQLite takes it in a URI.
fn escaped(path: &Path) -> String {
    path.as_os_str()
        .as_encoded_bytes()
        .iter()
        .map(|byte| match byte {
            b'/' | b'-' | b'_' | b'.' | b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => {
                char::from(*byte).to_string()
            }
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

/// A name with something more at its end.
pub(crate) fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// Takes the rights of everybody from a file; the group keeps what the administrator gave it. A file that is missing, or
/// another's, is left alone.
fn close_to_others(path: &Path) {
    // A link is not followed. To close a file that was really opened would take SQLite's locks from this process.
    let open = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_PATH | libc::O_NOFOLLOW)
        .open(path);
    let Ok((file, about)) = open.and_then(|file| file.metadata().map(|about| (file, about))) else {
        return;
    };
    let mode = about.permissions().mode();
    if about.is_file() && mode & 0o007 != 0 {
        let same = format!("/proc/self/fd/{}", file.as_raw_fd());
        let _ = std::fs::set_permissions(same, Permissions::from_mode(mode & !0o007));
    }
}

/// Opens a database to read.
///
/// # Errors
/// When it cannot be opened.
pub fn open_to_read(path: &Path) -> Result<Connection, String> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let open = || -> rusqlite::Result<Connection> {
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(Duration::from_secs(5))?;
        Ok(connection)
    };
    open().map_err(|error| format!("database {}: {error}", path.display()))
}

/// Whether a state was written beside it. Copies that are made row by row do not say so.
///
/// # Errors
/// When it cannot be read.
pub fn has_state(connection: &Connection) -> rusqlite::Result<bool> {
    let id = connection.query_row("PRAGMA application_id", [], |row| row.get::<_, i64>(0))?;
    Ok(id == HAS_STATE)
}

/// Notes that a state was written beside it.
///
/// # Errors
/// When it cannot be written.
pub fn note_state(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "application_id", HAS_STATE)
}

/// The last tick that is in it.
///
/// # Errors
/// When it cannot be read.
pub fn last_tick(connection: &Connection) -> rusqlite::Result<Option<i64>> {
    // One at a time: SQLite then takes each index's end.
    let of = |table: &str| {
        connection.query_row(&format!("SELECT max(tick) FROM {table}"), [], |row| {
            row.get(0)
        })
    };
    let (ticks, metrics, actions): (Option<i64>, Option<i64>, Option<i64>) =
        (of("ticks")?, of("metrics")?, of("actions")?);
    Ok(ticks.max(metrics).max(actions))
}
