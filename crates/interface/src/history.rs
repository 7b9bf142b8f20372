//! Ranges of old ticks, read by a thread of its own and sent in parts.

mod settings;

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use ascar_messaging::limits::NAMES_BYTES_MAX;
use rusqlite::{Connection, params};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::pieces::of_list;
use crate::schema;

/// About what one reply may have.
const REPLY_BYTES_MAX: usize = 8 << 20;
/// About what one part has.
const PART_BYTES: usize = 256 * 1024;
/// About what the entries of the audit log have in a reply.
const AUDIT_BYTES_MAX: usize = 2 * PART_BYTES;
/// Names of nodes in one part.
const NODES_A_PART: usize = 4096;
/// Longest JSON of a layout's names and of an action; longer ones are of an interface without limits, and passed over.
pub const STORED_BYTES_MAX: usize = 2 * NAMES_BYTES_MAX;
/// Requests that may wait.
const REQUESTS_MAX: usize = 64;

/// `P.history`.
#[derive(Clone, Debug, Deserialize)]
pub struct Request {
    #[serde(default)]
    version: u64,
    #[serde(default)]
    extent: bool,
    #[serde(default)]
    from_tick: i64,
    #[serde(default)]
    to_tick: i64,
    #[serde(default)]
    nodes: Option<BTreeSet<String>>,
    /// The newest entries of the audit log instead.
    #[serde(default)]
    audit: Option<u32>,
}

/// One message of a reply.
#[derive(Debug)]
pub struct Part {
    /// Where it goes.
    pub subject: String,
    /// What it says.
    pub payload: Vec<u8>,
    /// Whether it was asked for without a length before it.
    pub is_plain: bool,
}

/// The way to the reader.
#[derive(Debug)]
pub struct Reader {
    requests: SyncSender<(PathBuf, String, Request, bool)>,
    /// What is to be sent.
    pub parts: Receiver<Part>,
}

impl Reader {
    /// Starts it.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn start() -> Result<Self, String> {
        let (requests, receiver) = sync_channel::<(PathBuf, String, Request, bool)>(REQUESTS_MAX);
        let (sender, parts) = channel();
        let work = move || {
            while let Ok((path, subject, request, plain)) = receiver.recv() {
                answer(&path, &subject, &request, plain, &sender);
            }
        };
        std::thread::Builder::new()
            .name("reader".to_owned())
            .spawn(work)
            .map_err(|error| format!("start a thread: {error}"))?;
        Ok(Self { requests, parts })
    }

    /// Asks for a reply on `subject`; a `plain` one is JSON without its length before it.
    ///
    /// # Errors
    /// When too many wait.
    pub fn ask(
        &self,
        path: &Path,
        subject: &str,
        request: Request,
        plain: bool,
    ) -> Result<(), String> {
        self.requests
            .try_send((path.to_owned(), subject.to_owned(), request, plain))
            .map_err(|_| format!("more than {REQUESTS_MAX} requests wait: ask again later"))
    }
}

impl Request {
    /// For the newest entries of the audit log.
    pub fn audit(limit: u32) -> Self {
        Self {
            version: 1,
            extent: false,
            from_tick: 0,
            to_tick: 0,
            nodes: None,
            audit: Some(limit),
        }
    }
}

fn answer(path: &Path, subject: &str, request: &Request, plain: bool, sender: &Sender<Part>) {
    let mut reply = Reply {
        subject,
        sender,
        part: 0,
        bytes: 0,
    };
    let outcome = schema::open_to_read(path).and_then(|connection| {
        let mut read = || match (request.audit, request.extent) {
            (Some(limit), _) => audit(&connection, limit),
            (None, true) => extent(&connection, &mut reply),
            (None, false) => range(&connection, request, &mut reply),
        };
        if request.version > 1 {
            return Err(format!(
                "version = {}: this interface speaks 1",
                request.version
            ));
        }
        read().map_err(|error| format!("database: {error}"))
    });
    let last = outcome.unwrap_or_else(|error| json!({"error": error}));
    if plain {
        let _ = sender.send(Part {
            subject: subject.to_owned(),
            payload: last.to_string().into_bytes(),
            is_plain: true,
        });
    } else {
        reply.send(&last, true, &[]);
    }
}

struct Reply<'a> {
    subject: &'a str,
    sender: &'a Sender<Part>,
    part: u64,
    bytes: usize,
}

impl Reply<'_> {
    fn send(&mut self, header: &Value, last: bool, block: &[u8]) {
        let text = header.to_string();
        self.send_text(&text[1..text.len() - 1], last, block);
    }

    /// The same of what stands between the brackets of the header.
    fn send_text(&mut self, header: &str, last: bool, block: &[u8]) {
        let header = format!("{{\"part\":{},\"last\":{last},{header}}}", self.part);
        self.part += 1;
        let mut payload = Vec::with_capacity(4 + header.len() + block.len());
        payload.extend_from_slice(&(header.len() as u32).to_le_bytes());
        payload.extend_from_slice(header.as_bytes());
        payload.extend_from_slice(block);
        self.bytes += payload.len();
        let _ = self.sender.send(Part {
            subject: self.subject.to_owned(),
            payload,
            is_plain: false,
        });
    }

    /// Entries under a key.
    fn list(&mut self, key: &str, entries: &[Value]) {
        if entries.is_empty() {
            return;
        }
        for piece in of_list(entries, PART_BYTES) {
            self.send_text(&format!("\"{key}\":{piece}"), false, &[]);
        }
    }
}

fn extent(connection: &Connection, reply: &mut Reply) -> rusqlite::Result<Value> {
    let end = |what: &str| -> rusqlite::Result<Option<i64>> {
        connection.query_row(&format!("SELECT {what}(tick) FROM ticks"), [], |row| {
            row.get(0)
        })
    };
    let mut statement = connection.prepare("SELECT name FROM nodes ORDER BY name")?;
    let nodes: Vec<String> = statement
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let (first, last) = (end("min")?, end("max")?);
    let mut pieces = nodes.chunks(NODES_A_PART).peekable();
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            return Ok(json!({"first_tick": first, "last_tick": last, "nodes": piece}));
        }
        reply.send(&json!({ "nodes": piece }), false, &[]);
    }
    Ok(json!({"first_tick": first, "last_tick": last, "nodes": []}))
}

fn audit(connection: &Connection, limit: u32) -> rusqlite::Result<Value> {
    let sql = "SELECT tick, unix_s, actor, what, why, detail FROM audit ORDER BY n DESC LIMIT ?";
    let mut statement = connection.prepare(sql)?;
    let entry = |row: &rusqlite::Row| -> rusqlite::Result<Value> {
        let detail: String = row.get(5)?;
        Ok(json!({
            "tick": row.get::<_, i64>(0)?, "unix_s": row.get::<_, f64>(1)?, "actor": row.get::<_, String>(2)?,
            "what": row.get::<_, String>(3)?, "why": row.get::<_, String>(4)?,
            "detail": serde_json::from_str::<Value>(&detail).unwrap_or(Value::Null),
        }))
    };
    let mut entries = Vec::new();
    let mut bytes = 0;
    for entry in statement.query_map([limit.min(1000)], entry)? {
        let entry = entry?;
        bytes += entry.to_string().len();
        // In one message, as many as fit.
        if bytes > AUDIT_BYTES_MAX && !entries.is_empty() {
            break;
        }
        entries.push(entry);
    }
    Ok(json!({"ok": {"audit": entries}}))
}

/// Ticks and values of one node with one layout.
#[derive(Default)]
struct Block {
    ticks: Vec<u8>,
    values: Vec<u8>,
    rows: usize,
}

impl Block {
    fn add(&mut self, tick: i64, values: &[u8]) {
        self.ticks.extend_from_slice(&tick.to_le_bytes());
        self.values.extend_from_slice(values);
        self.rows += 1;
    }

    fn send(&mut self, mut header: Value, reply: &mut Reply) {
        header["rows"] = json!(self.rows);
        self.ticks.append(&mut self.values);
        reply.send(&header, false, &self.ticks);
        *self = Self::default();
    }
}

fn range(connection: &Connection, request: &Request, reply: &mut Reply) -> rusqlite::Result<Value> {
    // One moment for all that is read.
    connection.execute_batch("BEGIN")?;
    let nodes = names(connection, "SELECT id, name FROM nodes")?;
    let layouts: HashMap<i64, (u32, Vec<String>)> = names(
        connection,
        &format!("SELECT id, names FROM layouts WHERE length(names) <= {STORED_BYTES_MAX}"),
    )?
    .into_iter()
    .map(|(id, names)| {
        (
            id,
            serde_json::from_str::<Vec<String>>(&names).unwrap_or_default(),
        )
    })
    .map(|(id, names)| (id, (number(&names), names)))
    .collect();
    let mut next = None;
    let mut blocks: HashMap<(i64, i64), Block> = HashMap::new();
    let header = |(node, layout): (i64, i64)| {
        let (number, names) = &layouts[&layout];
        json!({"node": nodes.get(&node), "layout": format!("{number:08x}"), "names": names})
    };
    let mut statement =
        connection.prepare("SELECT tick, node, layout, data FROM ticks WHERE tick >= ? AND tick < ? ORDER BY tick, node")?;
    let mut rows = statement.query(params![request.from_tick, request.to_tick])?;
    let mut waiting = 0;
    let mut last_tick = i64::MIN;
    while let Some(row) = rows.next()? {
        let (tick, node, layout): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        if tick != last_tick && reply.bytes + waiting > REPLY_BYTES_MAX {
            next = Some(tick);
            break;
        }
        last_tick = tick;
        let is_wanted = request
            .nodes
            .as_ref()
            .is_none_or(|wanted| nodes.get(&node).is_some_and(|name| wanted.contains(name)));
        let data = row.get_ref(3)?.as_blob().unwrap_or_default();
        // What was damaged is left out, not guessed.
        let is_whole = layouts
            .get(&layout)
            .is_some_and(|it| it.1.len() * 4 == data.len());
        if !is_wanted || !is_whole {
            continue;
        }
        let block = blocks.entry((node, layout)).or_default();
        block.add(tick, data);
        waiting += data.len() + 8;
        if block.values.len() > PART_BYTES {
            waiting -= block.values.len() + block.ticks.len();
            block.send(header((node, layout)), reply);
        }
    }
    let mut keys: Vec<(i64, i64)> = blocks.keys().copied().collect();
    keys.sort_unstable();
    for key in keys {
        let block = blocks.get_mut(&key).filter(|block| block.rows > 0);
        if let Some(block) = block {
            block.send(header(key), reply);
        }
    }
    let end = next.unwrap_or(request.to_tick);
    metrics(connection, request.from_tick, end, reply)?;
    actions(connection, request.from_tick, end, reply)?;
    settings::read(connection, request.from_tick, end, reply)?;
    workloads(connection, request.from_tick, end, reply)?;
    Ok(json!({"next_tick": next}))
}

fn names(connection: &Connection, sql: &str) -> rusqlite::Result<HashMap<i64, String>> {
    let mut statement = connection.prepare(sql)?;
    statement
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect()
}

/// As agents number their layouts: FNV-1a.
fn number(names: &[String]) -> u32 {
    let mut hash = 0x811c_9dc5_u32;
    for byte in names.iter().flat_map(|name| name.bytes().chain([0])) {
        hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    }
    hash
}

fn metrics(connection: &Connection, from: i64, to: i64, reply: &mut Reply) -> rusqlite::Result<()> {
    let mut known: Vec<(i64, String)> = names(connection, "SELECT id, name FROM metric_names")?
        .into_iter()
        .collect();
    known.sort();
    let header = json!({"node": null, "names": known.iter().map(|it| &it.1).collect::<Vec<_>>()});
    let mut statement =
        connection.prepare("SELECT tick, metric, value FROM metrics WHERE tick >= ? AND tick < ? ORDER BY tick, metric")?;
    let mut rows = statement.query(params![from, to])?;
    let mut block = Block::default();
    let mut present: Option<(i64, Vec<f32>)> = None;
    let flush = |present: &mut Option<(i64, Vec<f32>)>, block: &mut Block, reply: &mut Reply| {
        if let Some((tick, values)) = present.take() {
            block.add(
                tick,
                &values
                    .iter()
                    .flat_map(|it| it.to_le_bytes())
                    .collect::<Vec<u8>>(),
            );
        }
        if block.values.len() > PART_BYTES {
            block.send(header.clone(), reply);
        }
    };
    while let Some(row) = rows.next()? {
        let (tick, metric, value): (i64, i64, f64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        if present.as_ref().is_some_and(|it| it.0 != tick) {
            flush(&mut present, &mut block, reply);
        }
        let (_, values) = present.get_or_insert_with(|| (tick, vec![f32::NAN; known.len()]));
        if let Some(place) = known.iter().position(|it| it.0 == metric) {
            values[place] = value as f32;
        }
    }
    flush(&mut present, &mut block, reply);
    if block.rows > 0 {
        block.send(header.clone(), reply);
    }
    Ok(())
}

fn actions(connection: &Connection, from: i64, to: i64, reply: &mut Reply) -> rusqlite::Result<()> {
    let sql = "SELECT tick, id, content, verdict, reason, why, actor FROM actions WHERE tick >= ? AND tick < ? ORDER BY n";
    let mut statement = connection.prepare(sql)?;
    let entry = |row: &rusqlite::Row| -> rusqlite::Result<Value> {
        let content: String = row.get(2)?;
        Ok(json!({
            "tick": row.get::<_, i64>(0)?, "id": row.get::<_, String>(1)?,
            "set": object(&content),
            "verdict": row.get::<_, String>(3)?, "reason": row.get::<_, Option<String>>(4)?,
            "why": row.get::<_, String>(5)?, "actor": row.get::<_, String>(6)?,
        }))
    };
    let found: Vec<Value> = statement
        .query_map(params![from, to], entry)?
        .collect::<Result<_, _>>()?;
    reply.list("actions", &found);
    Ok(())
}

/// What is stored of an action or a setting; null where it is too long, or no object.
fn object(content: &str) -> Value {
    let short = Some(content).filter(|it| it.len() <= STORED_BYTES_MAX);
    let found = short.and_then(|it| serde_json::from_str(it).ok());
    found.filter(Value::is_object).unwrap_or(Value::Null)
}

/// The last workload that was announced at or before the first tick, and those after it.
fn workloads(
    connection: &Connection,
    from: i64,
    to: i64,
    reply: &mut Reply,
) -> rusqlite::Result<()> {
    let entry = |row: &rusqlite::Row| -> rusqlite::Result<Value> {
        let (name, job): (Option<String>, String) = (row.get(1)?, row.get(2)?);
        Ok(json!({"tick": row.get::<_, i64>(0)?.max(from), "name": name, "job": job}))
    };
    let mut found = Vec::new();
    let columns = ("workloads", "tick, name, job");
    in_force(connection, columns, (from, to), entry, |it| found.push(it))?;
    reply.list("workloads", &found);
    Ok(())
}

/// What of a table was in force at the first tick, and what came after it, one after the other.
fn in_force<T>(
    connection: &Connection,
    (table, columns): (&str, &str),
    (from, to): (i64, i64),
    entry: impl Fn(&rusqlite::Row) -> rusqlite::Result<T>,
    mut take: impl FnMut(T),
) -> rusqlite::Result<()> {
    let sql = format!(
        "SELECT {columns} FROM {table} WHERE tick < ?2
        AND n >= coalesce((SELECT max(n) FROM {table} WHERE tick <= ?1), 0) ORDER BY n"
    );
    let mut statement = connection.prepare(&sql)?;
    for found in statement.query_map(params![from, to], entry)? {
        take(found?);
    }
    Ok(())
}
