use std::collections::{BTreeMap, VecDeque};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use rusqlite::Connection;

use super::writing::shorten;
use super::*;
use crate::layouts::Layout;
use crate::ticks::Row;

const KEPT: Limits = Limits {
    ticks: 1 << 20,
    bytes: 1 << 30,
};

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ascar-replay-{name}-{}", std::process::id()));
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
    let layout = Arc::new(Layout::new(0, vec!["a".to_owned(); count]));
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
        .recv_timeout(Duration::from_secs(100))
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
    let (mut writer, opened) = Writer::start(&path, KEPT).unwrap();
    assert_eq!((opened.last, opened.has_state), (None, false));
    writer.send(record(5, 3));
    assert_eq!(stored(&writer), 1);
    // While it is open nobody else may write.
    assert!(
        Writer::start(&path, KEPT)
            .unwrap_err()
            .contains("another interface")
    );
    writer.send(Job::HasState(folder.0.join("another")));
    writer.send(Job::HasState(path.clone()));
    writer.stop();
    let (mut writer, opened) = Writer::start(&path, KEPT).unwrap();
    assert_eq!((opened.last, opened.has_state), (Some(5), true));
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

/// The files in a folder, with their contents and rights.
fn contents(folder: &Path) -> BTreeMap<PathBuf, (Vec<u8>, u32)> {
    std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            let mode = path.metadata().unwrap().permissions().mode();
            (path.clone(), (std::fs::read(&path).unwrap(), mode))
        })
        .collect()
}

#[test]
fn what_is_refused_stays_as_it_is() {
    let folder = Folder::new("unchanged #1 %?");
    let path = folder.0.join("r.sqlite");
    let refused = |word: &str| {
        std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        let before = contents(&folder.0);
        let said = schema::open(&path).unwrap_err();
        assert!(said.contains(word), "{said}");
        assert!(contents(&folder.0) == before, "{word}");
    };
    let made = Connection::open(&path).unwrap();
    made.execute_batch("CREATE TABLE x(y)").unwrap();
    drop(made);
    refused("another program");
    std::fs::remove_file(&path).unwrap();
    // Of a later version, in another mode than this one has, and in the same.
    for mode in ["DELETE", "WAL"] {
        let newer = schema::open(&path).unwrap();
        newer.execute_batch("PRAGMA user_version = 7").unwrap();
        newer
            .query_row(&format!("PRAGMA journal_mode = {mode}"), [], |_| Ok(()))
            .unwrap();
        drop(newer);
        refused("version 7");
        std::fs::remove_file(&path).unwrap();
    }
    // A later interface was killed: what it wrote last is in its log.
    let live = folder.0.join("live");
    std::fs::create_dir(&live).unwrap();
    let newer = schema::open(&live.join("r.sqlite")).unwrap();
    newer.execute_batch("PRAGMA user_version = 7").unwrap();
    for end in ["", "-wal"] {
        let name = format!("r.sqlite{end}");
        std::fs::copy(live.join(&name), folder.0.join(&name)).unwrap();
    }
    drop(newer);
    std::fs::remove_dir_all(live).unwrap();
    let log = schema::with_end(&path, "-wal");
    let (file, written) = (std::fs::read(&path).unwrap(), std::fs::read(&log).unwrap());
    assert!(!written.is_empty());
    assert!(schema::open(&path).unwrap_err().contains("version 7"));
    assert!(std::fs::read(&path).unwrap() == file);
    assert!(std::fs::read(&log).unwrap() == written);
}

#[test]
fn what_is_only_in_the_log_is_known() {
    let folder = Folder::new("log");
    let path = folder.0.join("r.sqlite");
    // The tables of a first start that was killed: the file has none of them yet.
    let (first, killed) = (folder.0.join("first"), schema::with_end(&path, "-wal"));
    let begun = schema::open(&first).unwrap();
    std::fs::copy(&first, &path).unwrap();
    std::fs::copy(schema::with_end(&first, "-wal"), &killed).unwrap();
    drop(begun);
    let again = schema::open(&path).unwrap();
    let version: i64 = again
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .unwrap();
    assert_eq!(version, schema::VERSION);
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
    assert!(Writer::start(Path::new("/no/such/folder/r"), KEPT).is_err());
}

#[test]
fn old_ticks_go_by_age_and_by_size() {
    let folder = Folder::new("old");
    let mut store = Store::open(&folder.0.join("r.sqlite")).unwrap();
    let jobs: VecDeque<Job> = (0..3000).map(|tick| record(tick, 200)).collect();
    store.write(&jobs).unwrap();
    let oldest = |store: &Store| -> i64 {
        store
            .connection()
            .query_row("SELECT min(tick) FROM ticks", [], |row| row.get(0))
            .unwrap()
    };
    let days = Limits {
        ticks: 1000,
        bytes: 1 << 40,
    };
    while store.clean(days).unwrap() {}
    assert_eq!(oldest(&store), 1999);
    let size = Limits {
        ticks: i64::MAX,
        bytes: 500_000,
    };
    while store.clean(size).unwrap() {}
    assert!(oldest(&store) > 2300, "{}", oldest(&store));
    let pages: i64 = store
        .connection()
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

#[test]
fn a_database_of_version_1_is_brought_forward_and_workloads_are_kept_as_long_as_their_ticks() {
    let folder = Folder::new("workloads");
    let path = folder.0.join("r.sqlite");
    let (mut writer, _) = Writer::start(&path, KEPT).unwrap();
    writer.send(record(1, 1));
    writer.stop();
    let connection = Connection::open(&path).unwrap();
    connection
        .execute_batch("DROP TABLE workloads; PRAGMA user_version = 1")
        .unwrap();
    drop(connection);
    let (mut writer, opened) = Writer::start(&path, KEPT).unwrap();
    assert_eq!(opened.last, Some(1));
    for (tick, name) in [(2, Some("a")), (5, None), (7, Some("b"))] {
        writer.send(Job::Workload {
            tick,
            name: name.map(str::to_owned),
            job: "17".to_owned(),
        });
    }
    for tick in 2..10 {
        writer.send(record(tick, 1));
    }
    // One that is open already stays open.
    writer.send(Job::Open(path.clone()));
    writer.send(record(10, 1));
    writer.stop();
    let store = Store::open(&path).unwrap();
    let kept = Limits { ticks: 4, ..KEPT };
    store.clean(kept).unwrap();
    let count = |sql: &str| -> i64 {
        store
            .connection()
            .query_row(sql, [], |row| row.get(0))
            .unwrap()
    };
    assert_eq!(count("SELECT min(tick) FROM ticks"), 6);
    assert_eq!(count("SELECT max(tick) FROM ticks"), 10);
    // The one that had begun before still tells what ran then.
    assert_eq!(count("SELECT min(tick) FROM workloads"), 5);
    assert_eq!(count("SELECT count(*) FROM workloads"), 2);
    assert_eq!(count("PRAGMA user_version"), schema::VERSION);
}
