//! The interface's loop: messages in, ticks closed, stored and published, actions judged and relayed.

mod actions;
mod asked;
mod channel;
mod inbox;
mod memory;
mod publishing;
mod told;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use ascar_guard::{ServiceLevel, Violation};
use ascar_messaging::options::check_name;
use ascar_messaging::waiting::wait;
use ascar_messaging::{Fault, Message, limits};
use ascar_service::ServiceManager;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use asked::Asked;
use channel::Channel;
use told::Told;

use crate::LOG;
use crate::checker::{Checker, Situation};
use crate::clock::{Clock, local};
use crate::config::{Config, Mode};
use crate::fallback::{Event, Restore, State};
use crate::history::Reader;
use crate::live;
use crate::metrics::Metrics;
use crate::nodes::{Hello, Nodes, Received};
use crate::prometheus::{Page, Text};
use crate::relay::{Action, End, Order, Relay};
use crate::replay::{Job, Record, Report, Writer};
use crate::setting::{Setting, Values};
use crate::state::{Files, Slots, StateWriter};
use crate::switch::Switch;
use crate::ticks::{Row, Taken, Tick, Ticks};

/// A node that sent nothing for so many ticks, and so long, is gone.
const GONE_TICKS: i64 = 5;
const GONE_S: f64 = 5.0;
/// After so many it is not even missed.
const FORGOTTEN_TICKS: i64 = 3600;
/// How often agents hear that we are there.
const BEAT_EVERY: Duration = Duration::from_secs(2);
/// Between looks at what other threads have done.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Longest subject of a reply.
const REPLY_BYTES_MAX: usize = 256;
/// How often, between nodes' messages, it is looked whether somebody wants something.
const CONTROL_EVERY: Duration = Duration::from_millis(1);
/// How long what people want may take to be sent before other work goes on.
const CONTROL_PATIENCE: Duration = Duration::from_millis(20);
/// How often what nodes have is written down for a new start, while it changes.
const REMEMBER_EVERY: Duration = Duration::from_secs(5);
/// Longest action.
const ACTION_BYTES_MAX: usize = 256 * 1024;
/// Actions that may wait for approval.
const WAITING_MAX: usize = 100;

/// What is heard of nodes.
const DATA: [&str; 4] = [
    "agents.*.hello",
    "agents.*.frames",
    "agents.*.results",
    "history.*",
];
/// What is heard of others.
const CONTROL: [&str; 2] = ["actions.*", "control.*.*"];

/// A workload that runs, as it was announced.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Announced {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) job: String,
}

/// What is counted.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    pub(crate) frames: u64,
    pub(crate) frame_bytes: u64,
    pub(crate) garbage: u64,
    pub(crate) cut_off: u64,
    pub(crate) late: u64,
    pub(crate) skewed: u64,
    pub(crate) rows_stored: u64,
    pub(crate) ticks_stored: u64,
    pub(crate) ticks_failed: u64,
    pub(crate) ticks_lost: u64,
    pub(crate) keys_asked: u64,
    pub(crate) verdicts: BTreeMap<&'static str, u64>,
    pub(crate) refusals: BTreeMap<String, u64>,
}

/// What is in force on the nodes, and is told once the draft of this number is written.
type Applied = (u64, Action, Values);

/// A running interface.
pub struct Session {
    pub(crate) config: Config,
    pub(crate) prefix: String,
    pub(crate) nodes: Nodes,
    ticks: Ticks,
    metrics: Metrics,
    pub(crate) metrics_now: BTreeMap<String, f64>,
    pub(crate) setting: Setting,
    /// The setting in force as JSON, and by the tick for closed ticks that are not published yet.
    told: Told,
    settings: BTreeMap<i64, Arc<[String]>>,
    /// What came after its tick was closed, and is stored all the same.
    late: BTreeMap<i64, BTreeMap<usize, Row>>,
    pub(crate) checker: Checker,
    pub(crate) relay: Relay,
    pub(crate) service_level: ServiceLevel,
    pub(crate) switch: Switch,
    states: StateWriter,
    /// What people asked of the switch, until it is on disk; by the ticket.
    asked: BTreeMap<u64, Asked>,
    /// Orders of an action, until the draft of this number is written.
    held: Option<(u64, Vec<Order>)>,
    applied: Vec<Applied>,
    pub(crate) writer: Writer,
    pub(crate) reader: Reader,
    clock: Clock,
    /// For what nodes send and for what is told of it.
    data: Channel,
    /// For what people and the learner want, and for orders to nodes.
    control: Channel,
    beat_at: Instant,
    pub(crate) workload: Option<Announced>,
    pub(crate) database: PathBuf,
    pub(crate) waiting: BTreeMap<String, Action>,
    last_change: HashMap<String, i64>,
    pub(crate) counters: Counters,
    page: Option<Page>,
    serial: u64,
    /// What a new start must know is not all on disk yet.
    unsaved: bool,
    saved_at: Instant,
    manager: ServiceManager,
    stopped: fn() -> bool,
}

impl Session {
    /// Opens the database. `stopped` says when to end.
    ///
    /// # Errors
    /// When the database, a rule or the address for Prometheus is wrong.
    pub fn new(config: Config, stopped: fn() -> bool) -> Result<Self, Fault> {
        let checker = Checker::new(&config)?;
        let (writer, opened) = Writer::start(&config.database, config.limits()).map_err(Fault)?;
        let files = Files::beside(&config.database);
        let former = memory::former(&files);
        let is_right = |rest: &Value| memory::parts(rest).is_some();
        let (slots, recalled) = Slots::open(files, config.mode, opened.has_state);
        let (switch, found) = Switch::start(recalled, config.mode, former, is_right);
        let interval = Duration::from_secs_f64(config.interval_s);
        let clock = Clock::start(interval, opened.last);
        let now = Instant::now();
        let mut ticks = Ticks::default();
        ticks.begin(clock.tick(now) - 1);
        let page = match &config.prometheus {
            None => None,
            Some(address) => {
                let page = Page::default();
                crate::prometheus::serve(address, Arc::clone(&page))?;
                Some(page)
            }
        };
        let patience_ticks = (config.action_timeout_s / config.interval_s).ceil() as i64;
        let mut session = Self {
            prefix: format!("ascar.capes.{}", config.session),
            nodes: Nodes::new(config.nodes_max),
            ticks,
            metrics: Metrics::new(config.metrics.clone()),
            metrics_now: config
                .metrics
                .iter()
                .map(|metric| (metric.name.clone(), f64::NAN))
                .collect(),
            setting: Setting::default(),
            told: Told::default(),
            settings: BTreeMap::new(),
            late: BTreeMap::new(),
            checker,
            relay: Relay::new(config.rollout.clone(), patience_ticks),
            service_level: ServiceLevel::new(config.guard().limits()),
            switch,
            states: StateWriter::start(slots).map_err(Fault)?,
            asked: BTreeMap::new(),
            held: None,
            applied: Vec::new(),
            writer,
            reader: Reader::start().map_err(Fault)?,
            clock,
            data: Channel::new("interface", &DATA),
            control: Channel::new("interface control", &CONTROL),
            beat_at: now,
            workload: None,
            database: config.database.clone(),
            waiting: BTreeMap::new(),
            last_change: HashMap::new(),
            counters: Counters::default(),
            page,
            serial: 0,
            unsaved: false,
            saved_at: now,
            config,
            manager: ServiceManager::of_this_process(),
            stopped,
        };
        session.recall(&found);
        Ok(session)
    }

    /// Runs until told to stop.
    ///
    /// # Errors
    /// Never by itself: what goes wrong is said and lived with.
    pub fn run(&mut self) -> Result<(), Fault> {
        self.manager.ready();
        while !(self.stopped)() {
            self.manager.works();
            self.connect();
            let oldest = self.ticks.oldest(self.tick());
            let grace = Duration::from_secs_f64(self.config.grace_s);
            let until = (self.clock.end(oldest) + grace).min(Instant::now() + LOOK_EVERY);
            self.listen(until);
            self.hear_threads();
            self.close_ticks();
            self.beat();
        }
        self.manager.ending();
        if self.unsaved {
            self.remember();
        }
        self.states.stop();
        self.writer.stop();
        self.hear_threads();
        self.control.flush(Duration::from_secs(2));
        self.data.flush(Duration::from_secs(2));
        Ok(())
    }

    /// The present tick.
    pub(crate) fn tick(&self) -> i64 {
        self.clock.tick(Instant::now())
    }

    fn connect(&mut self) {
        let is_new = self.control.connect(&self.config, &self.prefix);
        if self.data.connect(&self.config, &self.prefix) || is_new {
            // What nodes say to that must be heard.
            self.data.flush(CONTROL_PATIENCE);
            self.order_all(&json!({"op": "hello"}));
            self.beat_at = Instant::now();
            self.beat();
        }
    }

    /// What the writers and the reader have to tell.
    fn hear_threads(&mut self) {
        while let Ok(outcome) = self.states.outcomes.try_recv() {
            self.take_outcome(outcome);
        }
        while let Ok(report) = self.writer.reports.try_recv() {
            match report {
                Report::Stored(records) => {
                    self.set_storage_fault(None);
                    for record in records {
                        self.counters.rows_stored += record.tick.rows.len() as u64;
                        // Not one that was published already: the disk refused it, or these rows were late.
                        if self.settings.contains_key(&record.tick.tick) {
                            self.counters.ticks_stored += 1;
                            self.publish_tick(&record, true);
                        }
                    }
                }
                Report::Failed(records, error) => {
                    self.set_storage_fault(Some(error));
                    for record in records {
                        if self.settings.contains_key(&record.tick.tick) {
                            self.counters.ticks_failed += 1;
                            self.publish_tick(&record, false);
                        }
                    }
                }
                Report::Lost(count) => {
                    self.counters.ticks_lost += count as u64;
                    LOG.line(format_args!(
                        "the disk takes nothing: {count} ticks are given up"
                    ));
                }
                Report::Opened(path, last) => {
                    self.database = path;
                    self.note_state();
                    if last.is_some_and(|last| last >= self.tick()) {
                        self.clock =
                            Clock::start(Duration::from_secs_f64(self.config.interval_s), last);
                        self.ticks.begin(self.tick() - 1);
                    }
                    self.writer
                        .send(Job::Setting(self.tick(), self.told.whole()));
                }
                Report::Refused(path, error) => {
                    LOG.line(format_args!("{error}"));
                    self.event(json!({"event": "storage", "stored": true, "refused": path, "error": error}));
                }
            }
        }
        while let Ok(part) = self.reader.parts.try_recv() {
            let channel = if part.is_plain {
                &mut self.control
            } else {
                &mut self.data
            };
            channel.send(&part.subject, &part.payload);
        }
    }

    fn set_storage_fault(&mut self, fault: Option<String>) {
        if fault.is_none() != self.switch.fallback.stored() {
            if let Some(error) = &fault {
                LOG.line(format_args!(
                    "cannot write {}: {error}",
                    self.database.display()
                ));
            }
            self.event(json!({"event": "storage", "stored": fault.is_none(), "error": fault}));
        }
        self.switch
            .fallback
            .on(fault.map_or(Event::Stored, Event::Unstored));
    }

    /// Closes the ticks whose grace period has passed, and those for which every present node has sent a frame.
    fn close_ticks(&mut self) {
        let grace = Duration::from_secs_f64(self.config.grace_s);
        loop {
            let now = self.tick();
            let tick = self.ticks.oldest(now);
            let nodes = self.nodes.all();
            let here = nodes.iter().filter(|node| node.here).count();
            // A node that joins does not stand in for a present one that is silent.
            let places = self.ticks.places(tick);
            let sent = places.filter(|place| nodes[*place].here).count();
            // The middle has passed, so that nobody is still to sample.
            let half = Duration::from_secs_f64(self.config.interval_s / 2.0);
            let is_complete =
                here > 0 && sent == here && Instant::now() + half > self.clock.end(tick);
            if tick > now || (!is_complete && Instant::now() < self.clock.end(tick) + grace) {
                return;
            }
            self.close(tick);
        }
    }

    fn close(&mut self, number: i64) {
        let tick = self.ticks.close(number);
        for place in tick.rows.keys() {
            let node = self.nodes.node(*place);
            node.seen_tick = number;
            if !node.here {
                node.here = true;
                let name = Arc::clone(&node.name);
                self.event(json!({"event": "node", "node": &*name, "state": "here"}));
            }
        }
        let silence_max = GONE_TICKS.max((GONE_S / self.config.interval_s).ceil() as i64);
        let gone: Vec<usize> = (0..self.nodes.all().len())
            .filter(|place| {
                let node = &self.nodes.all()[*place];
                node.here && node.seen_tick < number - silence_max
            })
            .collect();
        for place in gone {
            let node = self.nodes.node(place);
            node.here = false;
            let name = Arc::clone(&node.name);
            self.event(json!({"event": "node", "node": &*name, "state": "gone"}));
        }
        let rows = tick
            .rows
            .values()
            .map(|row| (&*row.node, &row.layout, row.values.as_slice()));
        let values = self.metrics.of(rows);
        let names: Vec<Arc<str>> = self.metrics.names().map(Arc::from).collect();
        let metrics: Vec<(Arc<str>, f64)> = names.into_iter().zip(values).collect();
        self.metrics_now = metrics
            .iter()
            .map(|(name, value)| (name.to_string(), *value))
            .collect();
        let current = self.setting.current();
        if let Some(violation) = self.service_level.take(number, &self.metrics_now, current) {
            self.fall_back(number, &violation);
        }
        let (orders, end) = self.relay.tick(self.tick());
        self.send_orders(orders);
        self.finish(end);
        let piece_bytes = self.data.payload_bytes_max() / 4;
        if self.told.keep_up(&self.setting, piece_bytes) {
            self.writer.send(Job::Setting(number, self.told.whole()));
        }
        self.settings.insert(number, self.told.pieces());
        self.writer
            .send(Job::Tick(Arc::new(Record { tick, metrics })));
        for (tick, rows) in std::mem::take(&mut self.late) {
            let tick = Tick { tick, rows };
            let metrics = Vec::new();
            self.writer
                .send(Job::Tick(Arc::new(Record { tick, metrics })));
        }
        if self.unsaved && self.saved_at.elapsed() >= REMEMBER_EVERY {
            self.remember();
        }
        self.write_page();
    }
}

/// A verdict as it is told.
pub(crate) fn verdict(
    id: &str,
    tick: i64,
    word: &str,
    reason: Option<&str>,
    set: &Values,
) -> Value {
    json!({"version": 1, "id": id, "tick": tick, "verdict": word, "reason": reason, "set": set})
}

#[cfg(test)]
mod tests;
