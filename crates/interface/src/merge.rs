//! `ascard interface merge`: several replay databases as one, for a learner to begin with.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, params};

use crate::schema;

/// Between the ticks of two databases: longer than any observation.
const GAP_TICKS: i64 = 1000;
/// How many names a refusal shows.
const SHOWN: usize = 5;

/// What of a database came into the merged one.
#[derive(Debug, PartialEq, Eq)]
pub struct Merged {
    /// Which.
    pub source: PathBuf,
    /// Its ticks.
    pub ticks: i64,
    /// Added to their numbers, so that they are behind those before.
    pub later_by: i64,
}

/// What must be the same in all of them.
#[derive(Debug, Default)]
struct Kind {
    indicators: BTreeSet<String>,
    metrics: BTreeSet<String>,
    knobs: BTreeSet<String>,
}

/// Merges databases, in their order, into a new one.
///
/// # Errors
/// When one is not a replay database, they are of different systems, or the new one is there already or cannot be written.
pub fn merge(sources: &[PathBuf], into: &Path) -> Result<Vec<Merged>, String> {
    if sources.len() < 2 {
        return Err("merge: name two databases or more".to_owned());
    }
    if into.exists() {
        return Err(format!(
            "--into {}: already exists: name a new file",
            into.display()
        ));
    }
    let kinds: Vec<Kind> = sources
        .iter()
        .map(|it| kind(it))
        .collect::<Result<_, _>>()?;
    for (source, other) in sources.iter().zip(&kinds).skip(1) {
        agree(&sources[0], &kinds[0], source, other)?;
    }
    let mut draft = into.as_os_str().to_owned();
    draft.push(".draft");
    let draft = PathBuf::from(draft);
    let outcome = write(sources, &draft).and_then(|merged| {
        std::fs::rename(&draft, into)
            .map_err(|error| format!("--into {}: {error}", into.display()))?;
        Ok(merged)
    });
    if outcome.is_err() {
        for end in ["", "-wal", "-shm"] {
            let mut name = draft.as_os_str().to_owned();
            name.push(end);
            let _ = std::fs::remove_file(name);
        }
    }
    outcome
}

fn kind(path: &Path) -> Result<Kind, String> {
    let wrong = |error: &dyn std::fmt::Display| format!("database {}: {error}", path.display());
    let connection = schema::open_to_read(path)?;
    let version: i64 = connection
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .map_err(|error| wrong(&error))?;
    if !(1..=schema::VERSION).contains(&version) {
        return Err(wrong(&format!(
            "is of version {version}: this interface knows {}: name a replay database",
            schema::VERSION
        )));
    }
    let texts = |sql: &str| -> rusqlite::Result<Vec<String>> {
        connection
            .prepare(sql)?
            .query_map([], |row| row.get(0))?
            .collect()
    };
    let read = || -> rusqlite::Result<Kind> {
        let mut found = Kind::default();
        for names in texts("SELECT names FROM layouts")? {
            found
                .indicators
                .extend(serde_json::from_str::<Vec<String>>(&names).unwrap_or_default());
        }
        found
            .metrics
            .extend(texts("SELECT name FROM metric_names")?);
        for content in texts("SELECT content FROM settings")? {
            let setting: serde_json::Map<String, serde_json::Value> =
                serde_json::from_str(&content).unwrap_or_default();
            let knob = |key: String| key.split('@').next().unwrap_or_default().to_owned();
            found.knobs.extend(setting.into_iter().map(|it| knob(it.0)));
        }
        Ok(found)
    };
    read().map_err(|error| wrong(&error))
}

fn agree(first: &Path, one: &Kind, second: &Path, other: &Kind) -> Result<(), String> {
    for (what, left, right) in [
        ("indicators", &one.indicators, &other.indicators),
        ("metrics", &one.metrics, &other.metrics),
        ("knobs", &one.knobs, &other.knobs),
    ] {
        let differing: Vec<&str> = left
            .symmetric_difference(right)
            .take(SHOWN)
            .map(String::as_str)
            .collect();
        if !differing.is_empty() {
            return Err(format!(
                "merge: {} and {} have different {what}: only one has {}: merge databases of one system",
                first.display(),
                second.display(),
                differing.join(", ")
            ));
        }
    }
    Ok(())
}

fn write(sources: &[PathBuf], draft: &Path) -> Result<Vec<Merged>, String> {
    let _ = std::fs::remove_file(draft);
    let mut connection = schema::open(draft)?;
    let mut merged = Vec::new();
    let mut end: Option<i64> = None;
    for source in sources {
        let wrong = |error: rusqlite::Error| format!("database {}: {error}", source.display());
        connection
            .execute("ATTACH DATABASE ? AS source", [read_only(source)])
            .map_err(wrong)?;
        let (ticks, later_by, last) = copy(&mut connection, end).map_err(wrong)?;
        connection
            .execute_batch("DETACH DATABASE source")
            .map_err(wrong)?;
        end = last.or(end);
        merged.push(Merged {
            source: source.clone(),
            ticks,
            later_by,
        });
    }
    // So that the file is whole by itself.
    connection
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .map_err(|error| format!("--into: {error}"))?;
    connection
        .close()
        .map_err(|(_, error)| format!("--into: {error}"))?;
    Ok(merged)
}

/// Copies what is attached behind the tick `end`. Returns its ticks, by how much they were moved, and the last one.
fn copy(
    connection: &mut Connection,
    end: Option<i64>,
) -> rusqlite::Result<(i64, i64, Option<i64>)> {
    let transaction = connection.transaction()?;
    let of = |sql: &str| transaction.query_row(sql, [], |row| row.get::<_, Option<i64>>(0));
    let ends = |what: &str| -> rusqlite::Result<Vec<i64>> {
        let tables = ["ticks", "metrics", "actions"];
        let each = tables
            .iter()
            .map(|table| of(&format!("SELECT {what}(tick) FROM source.{table}")));
        Ok(each
            .collect::<Result<Vec<_>, _>>()?
            .into_iter()
            .flatten()
            .collect())
    };
    let (Some(first), Some(last)) = (
        ends("min")?.into_iter().min(),
        ends("max")?.into_iter().max(),
    ) else {
        return Ok((0, 0, None));
    };
    let later_by = end.map_or(0, |end| {
        let behind = end.saturating_add(GAP_TICKS);
        behind.saturating_sub(first).max(0)
    });
    for sql in [
        "INSERT OR IGNORE INTO main.nodes(name) SELECT name FROM source.nodes ORDER BY id",
        "INSERT OR IGNORE INTO main.layouts(names) SELECT names FROM source.layouts ORDER BY id",
        "INSERT OR IGNORE INTO main.metric_names(name) SELECT name FROM source.metric_names ORDER BY id",
    ] {
        transaction.execute(sql, [])?;
    }
    for sql in [
        "INSERT INTO main.ticks(tick, node, layout, data) SELECT t.tick + ?1, n.id, l.id, t.data FROM source.ticks t
            JOIN source.nodes sn ON sn.id = t.node JOIN main.nodes n ON n.name = sn.name
            JOIN source.layouts sl ON sl.id = t.layout JOIN main.layouts l ON l.names = sl.names",
        "INSERT INTO main.metrics(tick, metric, value) SELECT s.tick + ?1, m.id, s.value FROM source.metrics s
            JOIN source.metric_names sm ON sm.id = s.metric JOIN main.metric_names m ON m.name = sm.name",
        "INSERT INTO main.actions(tick, id, content, verdict, reason, why, actor)
            SELECT tick + ?1, id, content, verdict, reason, why, actor FROM source.actions ORDER BY n",
        "INSERT INTO main.audit(tick, unix_s, actor, what, why, detail)
            SELECT tick + ?1, unix_s, actor, what, why, detail FROM source.audit ORDER BY n",
    ] {
        transaction.execute(sql, [later_by])?;
    }
    // What was in force before the first tick counts from that one on.
    transaction.execute(
        "INSERT INTO main.settings(tick, content) SELECT max(tick, ?2) + ?1, content FROM source.settings ORDER BY n",
        params![later_by, first],
    )?;
    // Databases of version 1 have none.
    let has_workloads: bool = transaction.query_row(
        "SELECT count(*) FROM source.sqlite_master WHERE name = 'workloads'",
        [],
        |row| row.get(0),
    )?;
    let known: i64 =
        transaction.query_row("SELECT count(*) FROM main.workloads", [], |row| row.get(0))?;
    if known > 0 {
        // Nothing is known of the next one's before its first word of it.
        transaction.execute(
            "INSERT INTO main.workloads(tick, name, job) VALUES (?1 + ?2, NULL, '')",
            params![later_by, first],
        )?;
    }
    if has_workloads {
        transaction.execute(
            "INSERT INTO main.workloads(tick, name, job)
                SELECT max(tick, ?2) + ?1, name, job FROM source.workloads ORDER BY n",
            params![later_by, first],
        )?;
    }
    let count =
        transaction.query_row("SELECT count(DISTINCT tick) FROM source.ticks", [], |row| {
            row.get(0)
        })?;
    transaction.commit()?;
    Ok((count, later_by, Some(last.saturating_add(later_by))))
}

/// A database's name that SQLite opens to read only.
fn read_only(path: &Path) -> String {
    let mut name = String::from("file:");
    for sign in path.to_string_lossy().chars() {
        match sign {
            '%' => name.push_str("%25"),
            '?' => name.push_str("%3f"),
            '#' => name.push_str("%23"),
            _ => name.push(sign),
        }
    }
    name + "?mode=ro"
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path =
                std::env::temp_dir().join(format!("ascar-merge-{name}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&path);
            std::fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        /// A database with ticks of one node.
        fn database(
            &self,
            name: &str,
            ticks: std::ops::Range<i64>,
            node: &str,
            knob: &str,
        ) -> PathBuf {
            let path = self.0.join(name);
            let connection = schema::open(&path).unwrap();
            connection
                .execute_batch(&format!(
                    "INSERT INTO nodes(name) VALUES ('other'), ('{node}');
                     INSERT INTO layouts(names) VALUES ('[\"x\",\"y\"]');
                     INSERT INTO metric_names(name) VALUES ('m');
                     INSERT INTO settings(tick, content) VALUES ({}, '{{\"{knob}@{node}\": 3}}');
                     INSERT INTO audit(tick, unix_s, actor, what, why, detail) VALUES ({}, 1, 'a', 'b', 'c', '{{}}');",
                    ticks.start - 500,
                    ticks.start,
                ))
                .unwrap();
            for tick in ticks {
                connection
                    .execute(
                        "INSERT INTO ticks VALUES (?, 2, 1, x'0000803f00000040')",
                        [tick],
                    )
                    .unwrap();
                connection
                    .execute("INSERT INTO metrics VALUES (?, 1, 7.5)", [tick])
                    .unwrap();
                connection
                    .execute("INSERT INTO actions VALUES (NULL, ?, 'id', '{}', 'accepted', NULL, '', '')", [tick])
                    .unwrap();
            }
            path
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn number(path: &Path, sql: &str) -> i64 {
        schema::open_to_read(path)
            .unwrap()
            .query_row(sql, [], |row| row.get(0))
            .unwrap()
    }

    #[test]
    fn ticks_never_overlap_and_all_is_there() {
        let folder = Folder::new("all");
        let sources = [
            folder.database("a?%#.sqlite", 100..110, "n1", "k"),
            folder.database("b", 105..125, "n2", "k"),
            folder.database("c", 90_000..90_005, "n1", "k"),
        ];
        let change = |at: usize, sql: &str| {
            Connection::open(&sources[at])
                .unwrap()
                .execute_batch(sql)
                .unwrap();
        };
        change(
            0,
            "INSERT INTO workloads(tick, name, job) VALUES (103, 'web', '')",
        );
        // As an older interface wrote it.
        change(1, "DROP TABLE workloads; PRAGMA user_version = 1");
        let into = folder.0.join("whole.sqlite");
        let merged = merge(&sources, &into).unwrap();
        let moved: Vec<(i64, i64)> = merged.iter().map(|it| (it.ticks, it.later_by)).collect();
        assert_eq!(moved, [(10, 0), (20, 1004), (5, 0)]);
        assert_eq!(number(&into, "SELECT count(*) FROM ticks"), 35);
        assert_eq!(
            number(&into, "SELECT count(DISTINCT tick) FROM metrics"),
            35
        );
        assert_eq!(number(&into, "SELECT count(*) FROM actions"), 35);
        assert_eq!(number(&into, "SELECT count(*) FROM layouts"), 1);
        assert_eq!(number(&into, "SELECT count(*) FROM audit"), 3);
        let of_n2 = "SELECT min(tick) FROM ticks JOIN nodes ON nodes.id = node WHERE name = 'n2'";
        assert_eq!(number(&into, of_n2), 1109);
        let settings = "SELECT tick FROM settings WHERE content LIKE '%n2%'";
        assert_eq!(number(&into, settings), 1109, "not before its ticks");
        assert_eq!(number(&into, "PRAGMA user_version"), schema::VERSION);
        let of_a = "SELECT count(*) FROM workloads WHERE name = 'web' AND tick = 103";
        assert_eq!(number(&into, of_a), 1);
        let unknown = "SELECT tick FROM workloads WHERE name IS NULL ORDER BY n LIMIT 1";
        assert_eq!(
            number(&into, unknown),
            1109,
            "of another system's ticks it says nothing"
        );
        let names: Vec<_> = std::fs::read_dir(&folder.0)
            .unwrap()
            .map(|it| it.unwrap().file_name())
            .collect();
        assert!(
            !names
                .iter()
                .any(|it| it.to_string_lossy().contains("draft")),
            "{names:?}"
        );
    }

    #[test]
    fn what_is_not_of_one_system_is_refused_and_leaves_nothing() {
        let folder = Folder::new("refused");
        let one = folder.database("a", 1..3, "n1", "k");
        let other = folder.database("b", 1..3, "n1", "other_knob");
        let into = folder.0.join("whole");
        let error = merge(&[one.clone(), other], &into).unwrap_err();
        assert!(
            error.contains("different knobs: only one has k, other_knob"),
            "{error}"
        );
        let strange = folder.0.join("strange");
        Connection::open(&strange)
            .unwrap()
            .execute_batch("CREATE TABLE x(y)")
            .unwrap();
        assert!(
            merge(&[one.clone(), strange], &into)
                .unwrap_err()
                .contains("is of version 0")
        );
        let text = folder.0.join("text");
        std::fs::write(&text, vec![b'x'; 5000]).unwrap();
        assert!(merge(&[one.clone(), text], &into).is_err());
        assert!(merge(&[one.clone(), folder.0.join("none")], &into).is_err());
        assert!(
            merge(std::slice::from_ref(&one), &into)
                .unwrap_err()
                .contains("two databases")
        );
        assert!(!into.exists() && !folder.0.join("none").exists());
        assert!(
            merge(&[one.clone(), one.clone()], &one)
                .unwrap_err()
                .contains("already exists")
        );
    }
}
