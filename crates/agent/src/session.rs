//! The agent's loop: wait for the middle of the tick and for messages; sample; send; set; put back.

use std::time::{Duration, Instant};

use ascar_messaging::file::ConfigFile;
use ascar_messaging::{Fault, Link, Message, limits};
use ascar_wire::{Encoder, Frame};
use serde_json::{Map, Value, json};

use crate::clock::{Clock, Due, wall};
use crate::collectors::Collector;
use crate::config::Config;
use crate::controllers::Controllers;
use crate::derive::{Averages, calendar};
use crate::footprint;
use crate::sample::Sample;

/// Longest message that is read.
const MESSAGE_BYTES_MAX: usize = 256 * 1024;
/// Waits between attempts to connect.
const PAUSE_MIN: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// After so many ticks the start is over.
const SETTLED_TICKS: u32 = 5;
/// How long the last words may take.
const FAREWELL: Duration = Duration::from_secs(1);

/// What samples: collectors, derived indicators, knobs.
pub struct Sampler {
    collectors: Vec<Box<dyn Collector>>,
    averages: Averages,
    calendar: bool,
    /// The tick's indicators.
    pub sample: Sample,
}

impl Sampler {
    /// Starts the collectors.
    pub fn new(config: &Config) -> Self {
        Self {
            collectors: config
                .collectors
                .iter()
                .cloned()
                .map(|it| it.start())
                .collect(),
            averages: Averages::new(config.averages.clone()),
            calendar: config.calendar,
            sample: Sample::new(
                config.indicators.clone(),
                config.without.clone(),
                config.significant_digits,
            ),
        }
    }

    /// One tick.
    pub fn take(&mut self, controllers: &mut Controllers) {
        self.sample.begin(Instant::now());
        for collector in &mut self.collectors {
            collector.sample(&mut self.sample);
        }
        controllers.sample(&mut self.sample);
        if self.calendar {
            calendar(&mut self.sample, wall().as_secs() as i64);
        }
        self.averages.sample(&mut self.sample);
    }
}

/// A running agent.
pub struct Session {
    config: Config,
    clock: Clock,
    sampler: Sampler,
    controllers: Controllers,
    encoder: Encoder,
    link: Option<Link>,
    pause: Duration,
    retry_at: Instant,
    last_error: String,
    /// When the interface was last heard.
    heard: Instant,
    wants_hello: bool,
    stopped: fn() -> bool,
}

impl Session {
    /// Nothing is touched yet. `stopped` says when to end.
    pub fn new(config: Config, stopped: fn() -> bool) -> Self {
        let now = Instant::now();
        let knobs = if config.monitor_only {
            Vec::new()
        } else {
            config.knobs.clone()
        };
        let programs = if config.monitor_only {
            Vec::new()
        } else {
            config.programs.clone()
        };
        Self {
            clock: Clock::new(config.interval()),
            sampler: Sampler::new(&config),
            controllers: Controllers::new(knobs, programs, config.state_directory.clone()),
            encoder: Encoder::new(config.key_every),
            link: None,
            pause: PAUSE_MIN,
            retry_at: now,
            last_error: String::new(),
            heard: now,
            wants_hello: true,
            config,
            stopped,
        }
    }

    /// Runs until told to stop, then puts everything back.
    ///
    /// # Errors
    /// What could not be put back.
    pub fn run(&mut self) -> Result<(), Fault> {
        let mut last = None;
        let mut count = 0_u32;
        while !(self.stopped)() {
            let due = self.clock.next(last);
            while Instant::now() < due.at && !(self.stopped)() {
                self.listen(due.at);
            }
            if (self.stopped)() {
                break;
            }
            self.tick(due);
            last = Some(due.tick);
            count = count.saturating_add(1);
            if count == SETTLED_TICKS {
                footprint::give_back_start_up();
            }
        }
        let restored = self.controllers.restore();
        if let Some(link) = &mut self.link {
            let leaving = json!({"version": 1, "node": self.config.node, "leaving": true});
            let subject = format!(
                "ascar.capes.{}.agents.{}.hello",
                self.config.session, self.config.node
            );
            link.publish(&subject, None, leaving.to_string().as_bytes());
            let _ = link.flush(FAREWELL);
        }
        restored.map(|_| ()).map_err(Fault)
    }

    /// Waits for messages until `until`, connecting first where need be.
    fn listen(&mut self, until: Instant) {
        if self.link.is_none() && Instant::now() >= self.retry_at {
            self.connect();
        }
        let Some(link) = &mut self.link else {
            let wait = until.min(
                self.retry_at
                    .max(Instant::now() + Duration::from_millis(10)),
            );
            std::thread::sleep(wait.saturating_duration_since(Instant::now()));
            return;
        };
        match link.receive(until) {
            Ok(Some(message)) => self.obey(&message),
            Ok(None) => {}
            Err(fault) => self.lose(&fault),
        }
    }

    fn connect(&mut self) {
        let connected = self
            .config
            .options()
            .and_then(|options| Link::connect(&options, &format!("agent {}", self.config.node)));
        match connected {
            Ok(mut link) => {
                let prefix = format!("ascar.capes.{}.nodes", self.config.session);
                link.subscribe(&format!("{prefix}.{}", self.config.node));
                link.subscribe(&format!("{prefix}.all"));
                self.link = Some(link);
                self.pause = PAUSE_MIN;
                self.last_error.clear();
                self.wants_hello = true;
                self.encoder.start_anew();
            }
            Err(fault) => self.lose(&fault),
        }
    }

    fn lose(&mut self, fault: &Fault) {
        // Once, not every second.
        if self.last_error != fault.0 {
            eprintln!("ascard agent: {fault}");
            self.last_error.clone_from(&fault.0);
        }
        self.link = None;
        self.retry_at = Instant::now() + self.pause;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
    }

    fn tick(&mut self, due: Due) {
        if let Some(news) = self.controllers.watch() {
            eprintln!("ascard agent: {news}");
            self.wants_hello = true;
        }
        if self.is_forgotten() {
            self.catch_up();
        }
        if self.is_forgotten() {
            let outcome = self.controllers.restore();
            eprintln!(
                "ascard agent: nothing heard of the interface for {} s: every knob is put back: {}",
                self.config.contact_s,
                outcome.map_or_else(|fault| fault, |report| report.to_string())
            );
            self.wants_hello = true;
        }
        self.sampler.take(&mut self.controllers);
        let is_changed = self.sampler.sample.take_changed();
        if self.link.is_none() {
            return;
        }
        if is_changed || self.wants_hello {
            self.hello();
        }
        let frame = Frame {
            tick: due.tick,
            layout: self.sampler.sample.layout(),
            values: self.sampler.sample.values().to_vec(),
        };
        let mut bytes = Vec::with_capacity(256);
        self.encoder.encode(&frame, &mut bytes);
        self.send("frames", &bytes);
    }

    /// Whether there is something to put back, for nothing was heard of the interface for too long.
    fn is_forgotten(&self) -> bool {
        self.controllers.touched() && self.heard.elapsed() > self.config.contact()
    }

    /// Reads what came while this process could not run: the silence may have been its own.
    fn catch_up(&mut self) {
        let now = Instant::now();
        while let Some(link) = &mut self.link {
            match link.receive(now) {
                Ok(Some(message)) => self.obey(&message),
                Ok(None) => return,
                Err(fault) => self.lose(&fault),
            }
        }
    }

    fn hello(&mut self) {
        self.wants_hello = false;
        let knobs = self.controllers.states();
        // Said here, where it can be mended: the interface would cut this node off.
        if let Err(error) = limits::check_knobs(&knobs) {
            eprintln!(
                "ascard agent: {error}: name fewer or shorter ones; the interface does not listen to this node"
            );
        }
        let sample = &self.sampler.sample;
        let hello = json!({
            "version": 1,
            "node": self.config.node,
            "boot_id": ascar_keeper::kernel::boot_id(),
            "interval_s": self.config.interval_s,
            "layout": format!("{:08x}", sample.layout()),
            "names": sample.names(),
            "monitor_only": self.config.monitor_only,
            "touched": self.controllers.touched(),
            "knobs": knobs,
        });
        self.send("hello", hello.to_string().as_bytes());
        self.encoder.start_anew();
    }

    fn send(&mut self, what: &str, payload: &[u8]) {
        let subject = format!(
            "ascar.capes.{}.agents.{}.{what}",
            self.config.session, self.config.node
        );
        let Some(link) = &mut self.link else {
            return;
        };
        if payload.len() > link.payload_bytes_max() {
            eprintln!(
                "ascard agent: {what} of {} bytes is more than the server takes: name fewer indicators",
                payload.len()
            );
            return;
        }
        link.publish(&subject, None, payload);
        if let Err(fault) = link.flush(Duration::ZERO) {
            self.lose(&fault);
        }
    }

    /// Does what the interface says. What is not understood is passed over: a newer interface may say more.
    fn obey(&mut self, message: &Message) {
        if message.payload.len() > MESSAGE_BYTES_MAX {
            return;
        }
        let Ok(order) = serde_json::from_slice::<Value>(&message.payload) else {
            return;
        };
        let id = order["id"].as_str().unwrap_or_default();
        match order["op"].as_str() {
            Some("beat") => self.heard = Instant::now(),
            Some("hello" | "key") => {
                self.heard = Instant::now();
                self.wants_hello = true;
            }
            Some("set") => {
                self.heard = Instant::now();
                let outcome = match order["set"].as_object() {
                    Some(settings) => self.set(settings),
                    None => Err("set: is missing".to_owned()),
                };
                self.answer(id, outcome.map(Value::Object));
            }
            Some("restore") => {
                self.heard = Instant::now();
                let outcome = self.controllers.restore();
                self.answer(id, outcome);
                self.hello();
            }
            _ => {}
        }
    }

    fn set(&mut self, settings: &Map<String, Value>) -> Result<Map<String, Value>, String> {
        if self.config.monitor_only {
            return Err(
                "this node is only monitored: monitor_only = true in its agent's file".to_owned(),
            );
        }
        self.controllers.set(settings)
    }

    fn answer(&mut self, id: &str, outcome: Result<Value, String>) {
        let answer = match outcome {
            Ok(value) => json!({"id": id, "ok": value}),
            Err(error) => json!({"id": id, "error": error}),
        };
        self.send("results", answer.to_string().as_bytes());
    }
}
