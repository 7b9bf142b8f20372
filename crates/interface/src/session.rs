//! The interface's loop: messages in, ticks closed, written and told, actions judged and relayed.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use ascar_messaging::options::check_name;
use ascar_messaging::{Fault, Link, Message};
use serde_json::{Map, Value, json};

use crate::checker::{Checker, Situation};
use crate::clock::{Clock, local};
use crate::config::{Config, Mode};
use crate::guard::{Breach, Guard};
use crate::history::Reader;
use crate::live;
use crate::metrics::Metrics;
use crate::nodes::{Hello, Nodes, Received};
use crate::prometheus::{Page, Text};
use crate::relay::{Action, End, Order, Relay};
use crate::replay::{Job, Record, Report, Writer};
use crate::setting::{Setting, Values};
use crate::ticks::{Row, Taken, Tick, Ticks};

/// A node that sent nothing for so many ticks is gone.
const GONE_TICKS: i64 = 5;
/// After so many it is not even missed.
const FORGOTTEN_TICKS: i64 = 3600;
/// How often agents hear that we are there.
const BEAT_EVERY: Duration = Duration::from_secs(2);
/// Between looks at what other threads have done.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Between attempts to connect.
const PAUSE: Duration = Duration::from_millis(500);
/// Longest JSON that is read.
const MESSAGE_BYTES_MAX: usize = 1 << 20;
/// Actions that may wait for approval.
const WAITING_MAX: usize = 100;

/// What is counted.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    pub(crate) frames: u64,
    pub(crate) frame_bytes: u64,
    pub(crate) garbage: u64,
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

/// A running interface.
pub struct Session {
    pub(crate) config: Config,
    pub(crate) prefix: String,
    pub(crate) mode: Mode,
    pub(crate) killed: bool,
    pub(crate) nodes: Nodes,
    ticks: Ticks,
    metrics: Metrics,
    pub(crate) metrics_now: BTreeMap<String, f64>,
    pub(crate) setting: Setting,
    /// The setting in force as JSON, and by the tick for those that are not told yet.
    setting_json: Arc<Value>,
    settings: BTreeMap<i64, Arc<Value>>,
    /// What came when its tick was told already, and is kept all the same.
    late: BTreeMap<i64, BTreeMap<usize, Row>>,
    pub(crate) checker: Checker,
    pub(crate) relay: Relay,
    pub(crate) guard: Guard,
    pub(crate) writer: Writer,
    pub(crate) reader: Reader,
    clock: Clock,
    link: Option<Link>,
    retry_at: Instant,
    last_error: String,
    beat_at: Instant,
    pub(crate) workload: Option<String>,
    pub(crate) database: PathBuf,
    pub(crate) waiting: BTreeMap<String, Action>,
    last_change: HashMap<String, i64>,
    pub(crate) storage_fault: Option<String>,
    pub(crate) counters: Counters,
    page: Option<Page>,
    serial: u64,
    /// What a new start must know is not all on disk yet.
    unsaved: bool,
    stopped: fn() -> bool,
}

impl Session {
    /// Opens the database. `stopped` says when to end.
    ///
    /// # Errors
    /// When the database, a rule or the address for Prometheus is wrong.
    pub fn new(config: Config, stopped: fn() -> bool) -> Result<Self, Fault> {
        let checker = Checker::new(&config)?;
        let (writer, last) =
            Writer::start(&config.database, config.retention.clone()).map_err(Fault)?;
        let interval = Duration::from_secs_f64(config.interval_s);
        let clock = Clock::start(interval, last);
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
            mode: config.mode,
            killed: false,
            nodes: Nodes::new(config.nodes_max),
            ticks,
            metrics: Metrics::new(config.metrics.clone()),
            metrics_now: config
                .metrics
                .iter()
                .map(|metric| (metric.name.clone(), f64::NAN))
                .collect(),
            setting: Setting::default(),
            setting_json: Arc::new(json!({})),
            settings: BTreeMap::new(),
            late: BTreeMap::new(),
            checker,
            relay: Relay::new(config.rollout.clone(), patience_ticks),
            guard: Guard::new(config.floors.clone()),
            writer,
            reader: Reader::start().map_err(Fault)?,
            clock,
            link: None,
            retry_at: now,
            last_error: String::new(),
            beat_at: now,
            workload: None,
            database: config.database.clone(),
            waiting: BTreeMap::new(),
            last_change: HashMap::new(),
            storage_fault: None,
            counters: Counters::default(),
            page,
            serial: 0,
            unsaved: false,
            config,
            stopped,
        };
        session.recall();
        Ok(session)
    }

    /// Runs until told to stop.
    ///
    /// # Errors
    /// Never by itself: what goes wrong is said and lived with.
    pub fn run(&mut self) -> Result<(), Fault> {
        while !(self.stopped)() {
            self.connect();
            let oldest = self.ticks.oldest(self.tick());
            let grace = Duration::from_secs_f64(self.config.grace_s);
            let until = (self.clock.end(oldest) + grace).min(Instant::now() + LOOK_EVERY);
            self.listen(until);
            self.hear_threads();
            self.close_ticks();
            self.beat();
        }
        self.writer.stop();
        self.hear_threads();
        if let Some(link) = &mut self.link {
            let _ = link.flush(Duration::from_secs(2));
        }
        Ok(())
    }

    /// The present tick.
    pub(crate) fn tick(&self) -> i64 {
        self.clock.tick(Instant::now())
    }

    fn connect(&mut self) {
        if self.link.is_some() || Instant::now() < self.retry_at {
            return;
        }
        let connected = self
            .config
            .options()
            .and_then(|options| Link::connect(&options, "interface"));
        match connected {
            Ok(mut link) => {
                for subject in [
                    "agents.*.hello",
                    "agents.*.frames",
                    "agents.*.results",
                    "actions",
                    "history",
                    "control",
                ] {
                    link.subscribe(&format!("{}.{subject}", self.prefix));
                }
                self.link = Some(link);
                self.last_error.clear();
                self.order_all(&json!({"op": "hello"}));
            }
            Err(fault) => self.lose(&fault),
        }
    }

    fn lose(&mut self, fault: &Fault) {
        if self.last_error != fault.0 {
            eprintln!("ascard interface: {fault}");
            self.last_error.clone_from(&fault.0);
        }
        self.link = None;
        self.retry_at = Instant::now() + PAUSE;
    }

    /// Takes messages until `until`, or until nothing more is there and the time is over.
    fn listen(&mut self, until: Instant) {
        loop {
            let Some(link) = &mut self.link else {
                std::thread::sleep(
                    until
                        .saturating_duration_since(Instant::now())
                        .min(LOOK_EVERY),
                );
                return;
            };
            match link.receive(until) {
                Ok(Some(message)) => self.take(&message),
                Ok(None) => return,
                Err(fault) => return self.lose(&fault),
            }
            // Thousands may come at once; ticks go on all the same.
            if Instant::now() >= until + LOOK_EVERY {
                return;
            }
        }
    }

    fn take(&mut self, message: &Message) {
        let Some(rest) = message
            .subject
            .strip_prefix(&self.prefix)
            .and_then(|rest| rest.strip_prefix('.'))
        else {
            return;
        };
        match rest {
            "actions" => self.take_action(message),
            "history" => self.take_history(message),
            "control" => self.take_control(message),
            _ => {
                let mut words = rest.split('.');
                if let (Some("agents"), Some(node), Some(what), None) =
                    (words.next(), words.next(), words.next(), words.next())
                    && check_name("node", node).is_ok()
                {
                    match what {
                        "frames" => self.take_frame(node, &message.payload),
                        "hello" => self.take_hello(node, &message.payload),
                        "results" => self.take_result(node, &message.payload),
                        _ => {}
                    }
                }
            }
        }
    }

    fn take_frame(&mut self, name: &str, bytes: &[u8]) {
        self.counters.frames += 1;
        self.counters.frame_bytes += bytes.len() as u64;
        let now = self.tick();
        let Some(place) = self.nodes.place(name) else {
            self.counters.garbage += 1;
            return;
        };
        let (received, malformed) = self.nodes.frame(place, bytes, now);
        if malformed.is_some_and(|it| it != ascar_wire::Malformed::Lost) {
            self.counters.garbage += 1;
        }
        match received {
            Received::Ask(false) => {}
            Received::Ask(true) => {
                self.counters.keys_asked += 1;
                self.order(name, &json!({"op": "key"}));
            }
            Received::Values(tick, layout, values) => {
                let node = Arc::clone(&self.nodes.all()[place].name);
                match self.ticks.take(
                    place,
                    tick,
                    now,
                    Row {
                        node,
                        layout,
                        values,
                    },
                ) {
                    Taken::Into(_) => {}
                    Taken::Skewed(_) => self.counters.skewed += 1,
                    Taken::Late(tick, row) => {
                        self.counters.late += 1;
                        self.late.entry(tick).or_default().insert(place, row);
                    }
                }
            }
        }
    }

    fn take_hello(&mut self, name: &str, bytes: &[u8]) {
        let parsed =
            (bytes.len() <= MESSAGE_BYTES_MAX).then(|| serde_json::from_slice::<Hello>(bytes));
        let (Some(Ok(hello)), Some(place)) = (parsed, self.nodes.place(name)) else {
            self.counters.garbage += 1;
            return;
        };
        if hello.leaving {
            if self.nodes.all()[place].here {
                self.nodes.node(place).here = false;
                self.event(json!({"event": "node", "node": name, "state": "gone"}));
            }
            return;
        }
        let (knobs, touched) = (hello.knobs.clone(), hello.touched);
        if self.nodes.hello(place, hello).is_err() {
            self.counters.garbage += 1;
            return;
        }
        let behind = self
            .setting
            .learn(name, &knobs, touched, self.checker.knobs());
        // Thousands may say hello at once.
        self.unsaved = true;
        // What is on its way has its own answers.
        let may_set =
            self.mode != Mode::Observe && !self.killed && !self.nodes.all()[place].monitor_only;
        if !behind.is_empty() && may_set && self.relay.busy().is_none() {
            self.serial += 1;
            let order = Order {
                node: name.to_owned(),
                id: format!("again-{}", self.serial),
                set: behind,
            };
            self.audit(
                "interface",
                "set again",
                &format!("{name} is not as the others"),
                json!(order.set),
            );
            self.send_orders(vec![order]);
        }
    }

    fn take_result(&mut self, name: &str, bytes: &[u8]) {
        let parsed =
            (bytes.len() <= MESSAGE_BYTES_MAX).then(|| serde_json::from_slice::<Value>(bytes));
        let Some(Ok(result)) = parsed else {
            self.counters.garbage += 1;
            return;
        };
        let id = result["id"].as_str().unwrap_or_default();
        let answer = match (&result["ok"], &result["error"]) {
            (Value::Object(found), _) => Ok(found.clone()),
            (_, Value::String(error)) => Err(error.clone()),
            _ => {
                self.counters.garbage += 1;
                return;
            }
        };
        let end = self.relay.answered(name, id, answer, self.tick());
        self.finish(end);
    }

    fn take_action(&mut self, message: &Message) {
        let parsed = (message.payload.len() <= MESSAGE_BYTES_MAX)
            .then(|| serde_json::from_slice::<Action>(&message.payload));
        let verdict = match parsed {
            Some(Ok(action)) => self.judge(action, false),
            Some(Err(error)) => {
                self.counters.garbage += 1;
                verdict(
                    "",
                    self.tick(),
                    "refused",
                    Some(&format!("form: {error}")),
                    &Values::new(),
                )
            }
            None => {
                self.counters.garbage += 1;
                verdict(
                    "",
                    self.tick(),
                    "refused",
                    Some("form: too long"),
                    &Values::new(),
                )
            }
        };
        self.reply(message, &verdict);
    }

    /// Judges an action and begins it where that is right. Returns the verdict as it is told.
    pub(crate) fn judge(&mut self, action: Action, approved: bool) -> Value {
        let tick = self.tick();
        let (word, reason) = match self.try_judge(&action, approved, tick) {
            Ok(word) => (word, None),
            Err(reason) => ("refused", Some(reason)),
        };
        let told = verdict(&action.id, tick, word, reason.as_deref(), &action.set);
        self.record(&action, word, reason, tick);
        self.publish("outcomes", &told);
        if word == "waiting" {
            self.waiting.insert(action.id.clone(), action);
        } else if word == "accepted" {
            self.begin(action, tick, false);
        }
        told
    }

    fn try_judge(
        &self,
        action: &Action,
        approved: bool,
        tick: i64,
    ) -> Result<&'static str, String> {
        action.check()?;
        if action.set.is_empty() {
            return Ok("accepted");
        }
        if self.killed {
            return Err("killed: the kill switch is on: revive first".to_owned());
        }
        if let Some(why) = self.holding(tick) {
            return Err(why);
        }
        if let Some(id) = self.relay.busy() {
            return Err(format!("busy: {id} is on its way"));
        }
        self.checker.check(&action.set, &self.situation(tick))?;
        match self.mode {
            Mode::Observe => Ok("observed"),
            Mode::Approve if approved => Ok("accepted"),
            Mode::Approve if self.waiting.len() >= WAITING_MAX => {
                Err(format!("busy: {WAITING_MAX} actions wait for approval"))
            }
            Mode::Approve if self.waiting.contains_key(&action.id) => {
                Err(format!("form: id {:?} waits already", action.id))
            }
            Mode::Approve => Ok("waiting"),
            Mode::Automatic => Ok("accepted"),
        }
    }

    /// Why nothing may be changed now.
    pub(crate) fn holding(&self, tick: i64) -> Option<String> {
        if let Some(why) = self.guard.holding(tick) {
            return Some(why.to_owned());
        }
        self.storage_fault
            .as_ref()
            .map(|why| format!("storage: {why}"))
    }

    fn situation(&self, tick: i64) -> Situation<'_> {
        Situation {
            tick,
            current: self.setting.current(),
            last_change: &self.last_change,
            metrics: &self.metrics_now,
            nodes: &self.nodes,
            local: local(),
        }
    }

    fn begin(&mut self, action: Action, tick: i64, at_once: bool) {
        let targets = self.checker.route(&action.set, &self.situation(tick));
        if targets.is_empty() {
            let values = action.set.clone();
            return self.finish(Some(End::Applied(action, values)));
        }
        self.audit(
            &action.actor,
            "set",
            &action.why,
            json!({"id": action.id, "set": action.set}),
        );
        self.setting.touch(action.set.keys());
        for key in action.set.keys() {
            self.last_change.insert(key.clone(), tick);
        }
        self.remember();
        let orders = self
            .relay
            .begin(action, targets, self.setting.current(), tick, at_once);
        self.send_orders(orders);
    }

    fn finish(&mut self, end: Option<End>) {
        let tick = self.tick();
        match end {
            None => {}
            Some(End::Applied(action, values)) => {
                if !values.is_empty() {
                    self.setting.take(&values);
                    self.guard.changed(tick);
                    self.remember();
                }
                self.record(&action, "applied", None, tick);
                self.publish(
                    "outcomes",
                    &verdict(&action.id, tick, "applied", None, &values),
                );
            }
            Some(End::Failed(action, reason, undo)) => {
                self.audit("interface", "failed", &reason, json!({"id": action.id}));
                self.record(&action, "failed", Some(reason.clone()), tick);
                self.publish(
                    "outcomes",
                    &verdict(&action.id, tick, "failed", Some(&reason), &action.set),
                );
                if action.actor == "guard" {
                    // Back to what was good it goes, as soon as the silent ones are heard again.
                    self.setting.take(&action.set);
                    self.remember();
                } else {
                    self.send_orders(undo);
                }
            }
        }
    }

    fn send_orders(&mut self, orders: Vec<Order>) {
        for order in orders {
            self.order(
                &order.node,
                &json!({"op": "set", "id": order.id, "set": order.set}),
            );
        }
    }

    fn take_history(&mut self, message: &Message) {
        let Some(reply) = &message.reply else {
            return;
        };
        let outcome = match serde_json::from_slice(&message.payload) {
            Ok(request) => self.reader.ask(&self.database, reply, request, false),
            Err(error) => Err(format!("request: {error}")),
        };
        if let Err(error) = outcome {
            let header = json!({"part": 0, "last": true, "error": error}).to_string();
            let mut payload = (header.len() as u32).to_le_bytes().to_vec();
            payload.extend_from_slice(header.as_bytes());
            self.send(reply, &payload);
        }
    }

    /// Says no.
    pub(crate) fn refuse(&mut self, action: &Action, reason: &str) -> Value {
        let tick = self.tick();
        let told = verdict(&action.id, tick, "refused", Some(reason), &action.set);
        self.record(action, "refused", Some(reason.to_owned()), tick);
        self.publish("outcomes", &told);
        told
    }

    /// What the writer and the reader have to tell.
    fn hear_threads(&mut self) {
        while let Ok(report) = self.writer.reports.try_recv() {
            match report {
                Report::Stored(records) => {
                    self.set_storage_fault(None);
                    for record in records {
                        self.counters.rows_stored += record.tick.rows.len() as u64;
                        // Not one that was told already: the disk refused it, or these rows were late.
                        if self.settings.contains_key(&record.tick.tick) {
                            self.counters.ticks_stored += 1;
                            self.tell(&record, true);
                        }
                    }
                }
                Report::Failed(records, error) => {
                    self.set_storage_fault(Some(error));
                    for record in records {
                        if self.settings.contains_key(&record.tick.tick) {
                            self.counters.ticks_failed += 1;
                            self.tell(&record, false);
                        }
                    }
                }
                Report::Lost(count) => {
                    self.counters.ticks_lost += count as u64;
                    eprintln!(
                        "ascard interface: the disk takes nothing: {count} ticks are given up"
                    );
                }
                Report::Opened(path, last) => {
                    self.database = path;
                    if last.is_some_and(|last| last >= self.tick()) {
                        self.clock =
                            Clock::start(Duration::from_secs_f64(self.config.interval_s), last);
                        self.ticks.begin(self.tick() - 1);
                    }
                    self.writer
                        .send(Job::Setting(self.tick(), self.setting_json.to_string()));
                }
                Report::Refused(path, error) => {
                    eprintln!("ascard interface: {error}");
                    self.event(json!({"event": "storage", "stored": true, "refused": path, "error": error}));
                }
            }
        }
        while let Ok(part) = self.reader.parts.try_recv() {
            self.send(&part.subject, &part.payload);
        }
    }

    fn set_storage_fault(&mut self, fault: Option<String>) {
        if fault.is_some() != self.storage_fault.is_some() {
            if let Some(error) = &fault {
                eprintln!(
                    "ascard interface: cannot write {}: {error}",
                    self.database.display()
                );
            }
            self.event(json!({"event": "storage", "stored": fault.is_none(), "error": fault}));
        }
        self.storage_fault = fault;
    }

    /// Ends the ticks that are over, or that every node has sent.
    fn close_ticks(&mut self) {
        let grace = Duration::from_secs_f64(self.config.grace_s);
        loop {
            let now = self.tick();
            let tick = self.ticks.oldest(now);
            let here = self.nodes.all().iter().filter(|node| node.here).count();
            // The middle has passed, so that nobody is still to sample.
            let half = Duration::from_secs_f64(self.config.interval_s / 2.0);
            let is_whole = here > 0
                && self.ticks.count(tick) >= here
                && Instant::now() + half > self.clock.end(tick);
            if tick > now || (!is_whole && Instant::now() < self.clock.end(tick) + grace) {
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
        let gone: Vec<usize> = (0..self.nodes.all().len())
            .filter(|place| {
                let node = &self.nodes.all()[*place];
                node.here && node.seen_tick < number - GONE_TICKS
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
        if let Some(breach) = self
            .guard
            .look(number, &self.metrics_now, self.setting.current())
        {
            self.fall_back(&breach);
        }
        let (orders, end) = self.relay.tick(self.tick());
        self.send_orders(orders);
        self.finish(end);
        let setting = json!(self.setting.current());
        if setting != *self.setting_json {
            self.setting_json = Arc::new(setting);
            self.writer
                .send(Job::Setting(number, self.setting_json.to_string()));
        }
        self.settings.insert(number, Arc::clone(&self.setting_json));
        self.writer
            .send(Job::Tick(Arc::new(Record { tick, metrics })));
        for (tick, rows) in std::mem::take(&mut self.late) {
            let tick = Tick { tick, rows };
            let metrics = Vec::new();
            self.writer
                .send(Job::Tick(Arc::new(Record { tick, metrics })));
        }
        if self.unsaved {
            self.remember();
        }
        self.write_page();
    }

    /// The service level is broken: the last good setting, or what was there before us.
    fn fall_back(&mut self, breach: &Breach) {
        let Breach {
            metric,
            mean,
            minimum,
        } = breach;
        let why = format!("the mean of {metric} was {mean:.6}, less than {minimum}");
        eprintln!("ascard interface: {why}: back to the last good setting");
        self.event(json!({"event": "breach", "metric": metric, "mean": mean, "minimum": minimum}));
        let end = self.relay.fail(format!("breach: {why}"));
        self.finish(end);
        let wanted = self
            .guard
            .last_good()
            .unwrap_or(self.setting.defaults())
            .clone();
        let set = self.setting.towards(&wanted);
        if set.is_empty() || self.killed {
            return;
        }
        self.serial += 1;
        let tick = self.tick();
        let id = format!("guard-{tick}-{}", self.serial);
        let action = Action {
            version: 1,
            id,
            tick,
            set,
            why,
            actor: "guard".to_owned(),
        };
        self.record(&action, "accepted", None, tick);
        self.begin(action, tick, true);
    }

    /// Puts every knob back, everywhere.
    pub(crate) fn restore_all(&mut self, why: &str) {
        let end = self.relay.fail(why.to_owned());
        self.finish(end);
        self.serial += 1;
        self.order_all(&json!({"op": "restore", "id": format!("restore-{}", self.serial)}));
        self.setting.restored();
        self.guard.changed(self.tick());
        self.remember();
    }

    fn tell(&mut self, record: &Record, stored: bool) {
        let number = record.tick.tick;
        let setting = self
            .settings
            .remove(&number)
            .unwrap_or_else(|| Arc::clone(&self.setting_json));
        let rows = &record.tick.rows;
        let is_missing = |it: &(usize, &crate::nodes::Node)| {
            !rows.contains_key(&it.0)
                && it.1.seen_tick > number - FORGOTTEN_TICKS
                && it.1.seen_tick != i64::MIN
        };
        let common = live::Common {
            tick: number,
            stored,
            missing: self
                .nodes
                .all()
                .iter()
                .enumerate()
                .filter(is_missing)
                .map(|it| &*it.1.name)
                .collect(),
            metrics: record
                .metrics
                .iter()
                .map(|(name, value)| (name.to_string(), json!(value)))
                .collect(),
            setting: (*setting).clone(),
            mode: json!(self.mode),
            holding: if self.killed {
                Some("killed".to_owned())
            } else {
                self.holding(number)
            },
            workload: self.workload.as_deref(),
        };
        let Some(link) = &self.link else {
            return;
        };
        let messages = live::messages(&common, rows, link.payload_bytes_max());
        let subject = format!("{}.ticks", self.prefix);
        for message in messages {
            self.send(&subject, message.as_bytes());
        }
    }

    fn beat(&mut self) {
        if Instant::now() >= self.beat_at {
            self.beat_at = Instant::now() + BEAT_EVERY;
            let tick = self.tick();
            self.order_all(&json!({"op": "beat", "tick": tick}));
        }
    }

    fn record(
        &mut self,
        action: &Action,
        verdict: &'static str,
        reason: Option<String>,
        tick: i64,
    ) {
        *self.counters.verdicts.entry(verdict).or_default() += 1;
        if let Some(kind) = reason
            .as_deref()
            .filter(|_| verdict == "refused")
            .and_then(|it| it.split([':', ' ']).next())
        {
            *self.counters.refusals.entry(kind.to_owned()).or_default() += 1;
        }
        self.writer.send(Job::Action {
            tick,
            id: action.id.chars().take(64).collect(),
            content: json!(action.set).to_string(),
            verdict,
            reason,
            why: action.why.chars().take(200).collect(),
            actor: action.actor.chars().take(200).collect(),
        });
    }

    pub(crate) fn audit(&mut self, actor: &str, what: &str, why: &str, detail: Value) {
        let short = |text: &str| text.chars().take(500).collect::<String>();
        self.writer.send(Job::Audit {
            tick: self.tick(),
            actor: short(actor),
            what: short(what),
            why: short(why),
            detail: detail.to_string(),
        });
    }

    pub(crate) fn event(&mut self, mut event: Value) {
        event["tick"] = json!(self.tick());
        self.publish("events", &event);
    }

    fn order(&mut self, node: &str, order: &Value) {
        self.publish(&format!("nodes.{node}"), order);
    }

    fn order_all(&mut self, order: &Value) {
        self.publish("nodes.all", order);
    }

    fn publish(&mut self, what: &str, message: &Value) {
        let subject = format!("{}.{what}", self.prefix);
        self.send(&subject, message.to_string().as_bytes());
    }

    pub(crate) fn reply(&mut self, message: &Message, answer: &Value) {
        if let Some(subject) = &message.reply {
            self.send(subject, answer.to_string().as_bytes());
        }
    }

    /// What is longer than the server takes is not sent: it would end the connection.
    fn send(&mut self, subject: &str, payload: &[u8]) {
        let Some(link) = &mut self.link else {
            return;
        };
        if payload.len() > link.payload_bytes_max() {
            eprintln!(
                "ascard interface: {subject}: a message of {} bytes is not sent",
                payload.len()
            );
            return;
        }
        link.publish(subject, None, payload);
    }

    /// What a new start must know: beside the database, for the disk may be full.
    pub(crate) fn remember(&mut self) {
        self.unsaved = false;
        let state = json!({"version": 1, "setting": self.setting, "killed": self.killed, "mode": self.mode});
        let path = self.state_path();
        let draft = path.with_extension("draft");
        let written =
            std::fs::write(&draft, state.to_string()).and_then(|()| std::fs::rename(&draft, &path));
        if let Err(error) = written {
            eprintln!("ascard interface: {}: {error}", path.display());
        }
    }

    fn recall(&mut self) {
        let Ok(text) = std::fs::read(self.state_path()) else {
            return;
        };
        let Ok(state) = serde_json::from_slice::<Value>(&text) else {
            eprintln!(
                "ascard interface: {}: is damaged and passed over",
                self.state_path().display()
            );
            return;
        };
        self.killed = state["killed"] == json!(true);
        // Of the file's mode and the one that somebody chose the more careful one.
        if let Ok(mode) = serde_json::from_value::<Mode>(state["mode"].clone()) {
            self.mode = self.mode.min(mode);
        }
        if let Ok(setting) = serde_json::from_value(state["setting"].clone()) {
            self.setting = setting;
        }
    }

    fn state_path(&self) -> PathBuf {
        let mut name = self.config.database.as_os_str().to_owned();
        name.push(".state");
        PathBuf::from(name)
    }

    fn write_page(&mut self) {
        let Some(page) = &self.page else {
            return;
        };
        let counters = &self.counters;
        let mut text = Text::default();
        let here = self.nodes.all().iter().filter(|node| node.here).count();
        for (name, kind, help, value) in [
            (
                "ascar_capes_nodes",
                "gauge",
                "Agents that send now",
                here as f64,
            ),
            (
                "ascar_capes_frames_total",
                "counter",
                "Frames received",
                counters.frames as f64,
            ),
            (
                "ascar_capes_frame_bytes_total",
                "counter",
                "Bytes of frames received",
                counters.frame_bytes as f64,
            ),
            (
                "ascar_capes_garbage_total",
                "counter",
                "Messages that were none",
                counters.garbage as f64,
            ),
            (
                "ascar_capes_late_total",
                "counter",
                "Frames that came when their tick was over",
                counters.late as f64,
            ),
            (
                "ascar_capes_skewed_total",
                "counter",
                "Frames of nodes whose clock is wrong",
                counters.skewed as f64,
            ),
            (
                "ascar_capes_rows_stored_total",
                "counter",
                "Node ticks on disk",
                counters.rows_stored as f64,
            ),
            (
                "ascar_capes_ticks_stored_total",
                "counter",
                "Ticks on disk",
                counters.ticks_stored as f64,
            ),
            (
                "ascar_capes_ticks_lost_total",
                "counter",
                "Ticks given up as the disk took nothing",
                counters.ticks_lost as f64,
            ),
            (
                "ascar_capes_key_frames_asked_total",
                "counter",
                "Key frames asked for",
                counters.keys_asked as f64,
            ),
            (
                "ascar_capes_holding",
                "gauge",
                "1 when nothing may be changed",
                f64::from(u8::from(self.holding(self.tick()).is_some() || self.killed)),
            ),
        ] {
            text.one(name, kind, help, value);
        }
        let verdicts = counters
            .verdicts
            .iter()
            .map(|(word, count)| (*word, *count as f64));
        text.many(
            "ascar_capes_actions_total",
            "counter",
            "Verdicts on actions",
            "verdict",
            verdicts,
        );
        let refusals = counters
            .refusals
            .iter()
            .map(|(word, count)| (word.as_str(), *count as f64));
        text.many(
            "ascar_capes_refusals_total",
            "counter",
            "Refused actions",
            "reason",
            refusals,
        );
        let metrics = self
            .metrics_now
            .iter()
            .filter(|it| it.1.is_finite())
            .map(|(name, value)| (name.as_str(), *value));
        text.many(
            "ascar_capes_metric",
            "gauge",
            "The last tick's metrics",
            "name",
            metrics,
        );
        let knobs: Map<String, Value> = self.setting.current().clone().into_iter().collect();
        let knobs = knobs
            .iter()
            .filter_map(|(key, value)| Some((key.as_str(), value.as_f64()?)));
        text.many(
            "ascar_capes_knob",
            "gauge",
            "The setting in force",
            "key",
            knobs,
        );
        *page.lock().unwrap_or_else(PoisonError::into_inner) = text.whole();
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
