//! The agent's loop: wait for the middle of the tick and for messages; sample; send; set; put back.

mod orders;

use std::sync::Arc;
use std::time::{Duration, Instant};

use ascar_messaging::file::ConfigFile;
use ascar_messaging::{Fault, Link, ParameterState, limits};
use ascar_service::ServiceManager;
use ascar_wire::{Encoder, Frame};
use serde_json::{Value, json};

use self::orders::BUSY;
use crate::LOG;
use crate::clock::{Clock, Due};
use crate::config::Config;
use crate::contact::{Contact, RESTORE_LIMIT, Step};
use crate::controllers::Controllers;
use crate::controllers::worker::{Done, Request, Seen, Worker};
use crate::footprint;
use crate::lease::{self, Lease, holder};
use crate::readers::LIMIT;
use crate::sampler::Sampler;

/// Waits between attempts to connect.
const PAUSE_MIN: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// After so many ticks the start is over.
const SETTLED_TICKS: u32 = 5;
/// How long the last words may take.
const FAREWELL: Duration = Duration::from_secs(1);
/// Between looks at what the controllers have done, while they are at it.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// How long everything may take to be put back at the end.
const END_LIMIT: Duration = Duration::from_secs(30);

/// A running agent.
pub struct Session {
    config: Config,
    clock: Clock,
    sampler: Sampler,
    worker: Worker,
    lease: Arc<Lease>,
    contact: Contact,
    /// The controllers have not said yet what is in force.
    is_looking: bool,
    levels: Vec<(String, f64)>,
    states: Vec<ParameterState>,
    /// What did not answer, as the last hello named it.
    blocked: Vec<String>,
    encoder: Encoder,
    link: Option<Link>,
    pause: Duration,
    retry_at: Instant,
    last_error: String,
    wants_hello: bool,
    manager: ServiceManager,
    stopped: fn() -> bool,
}

impl Session {
    /// Nothing is touched yet. `stopped` says when to end.
    ///
    /// # Errors
    /// When there is no memory or no thread to be had.
    pub fn new(config: Config, stopped: fn() -> bool) -> Result<Self, Fault> {
        let (knobs, programs) = if config.monitor_only {
            (Vec::new(), Vec::new())
        } else {
            (config.knobs.clone(), config.programs.clone())
        };
        let lease = Lease::new().map_err(|error| Fault(format!("memory to share: {error}")))?;
        let lease = Arc::new(lease);
        let controllers = Controllers::new(knobs, programs, config.state_directory.clone(), &lease);
        let contact = Contact::new(config.contact(), config.interval(), lease::now());
        lease.extend(contact.lease());
        Ok(Self {
            clock: Clock::new(config.interval()),
            sampler: Sampler::new(&config),
            worker: Worker::start(controllers)?,
            lease,
            contact,
            is_looking: false,
            levels: Vec::new(),
            states: Vec::new(),
            blocked: Vec::new(),
            encoder: Encoder::new(config.key_every),
            link: None,
            pause: PAUSE_MIN,
            retry_at: Instant::now(),
            last_error: String::new(),
            wants_hello: true,
            config,
            manager: ServiceManager::of_this_process(),
            stopped,
        })
    }

    /// Runs until told to stop, then puts everything back.
    ///
    /// # Errors
    /// What could not be put back.
    pub fn run(&mut self) -> Result<(), Fault> {
        let mut last = None;
        let mut count = 0_u32;
        self.manager.ready();
        while !(self.stopped)() {
            let due = self.clock.next(last);
            while Instant::now() < due.at && !(self.stopped)() {
                self.manager.works();
                let until = if self.worker.is_busy() {
                    due.at.min(Instant::now() + LOOK_EVERY)
                } else {
                    self.manager.next_by(due.at)
                };
                self.listen(until);
                self.hear_worker()?;
            }
            if (self.stopped)() {
                break;
            }
            self.tick(due)?;
            last = Some(due.tick);
            count = count.saturating_add(1);
            if count == SETTLED_TICKS {
                footprint::give_back_start_up();
            }
        }
        self.manager.ending();
        self.end()
    }

    /// Puts everything back, and says so.
    fn end(&mut self) -> Result<(), Fault> {
        let outcome = self.restore_at_the_end();
        if outcome.is_err() {
            self.lease.end();
        }
        if let Some(link) = &mut self.link {
            let leaving = json!({"version": 1, "node": self.config.node, "leaving": true,
                "touched": outcome.is_err()});
            let subject = format!(
                "ascar.capes.{}.agents.{}.hello",
                self.config.session, self.config.node
            );
            link.publish(&subject, None, leaving.to_string().as_bytes());
            let _ = link.flush(FAREWELL);
        }
        self.worker.end(holder::GRACE);
        outcome
    }

    fn restore_at_the_end(&mut self) -> Result<(), Fault> {
        let deadline = Instant::now() + END_LIMIT;
        self.lease.extend(lease::now() + 2 * END_LIMIT);
        if !self.worker.ask(Request::Restore(None)) {
            return Err(Fault(BUSY.to_owned()));
        }
        // Those asked for before come first.
        let mut restored = Ok(());
        while self.worker.is_busy() {
            match self.worker.done(deadline)? {
                Some((Done::Restored(_, outcome), _)) => restored = outcome.map(|_| ()),
                Some(_) => {}
                None => {
                    return Err(Fault(format!(
                        "the controllers do not answer within {} s: their lease is ended",
                        END_LIMIT.as_secs()
                    )));
                }
            }
        }
        restored.map_err(Fault)
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
                self.manager.status("connected");
                self.wants_hello = true;
                self.encoder.start_anew();
            }
            Err(fault) => self.lose(&fault),
        }
    }

    fn lose(&mut self, fault: &Fault) {
        // Once, not every second.
        if self.last_error != fault.0 {
            LOG.line(format_args!("{fault}"));
            self.manager.status(&fault.0);
            self.last_error.clone_from(&fault.0);
        }
        self.link = None;
        self.retry_at = Instant::now() + self.pause;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
    }

    fn tick(&mut self, due: Due) -> Result<(), Fault> {
        if self.contact.is_forgotten(lease::now()) {
            self.catch_up();
        }
        self.watch();
        self.sampler.begin();
        let wants_states = self.wants_hello;
        self.look(wants_states)?;
        self.sampler.finish(&self.levels);
        let is_changed = self.sampler.sample.take_changed();
        if is_changed && !wants_states {
            self.look(true)?;
        }
        self.note_blocked();
        self.watch();
        if self.link.is_none() {
            return Ok(());
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
        Ok(())
    }

    /// The dead man's switch, and the lease that works without us.
    fn watch(&mut self) {
        let now = lease::now();
        match self.contact.due(now) {
            None => {}
            Some(Step::Restore) => {
                let why = if self.contact.killed() {
                    "the session is killed".to_owned()
                } else {
                    format!(
                        "nothing heard of the interface for {} s",
                        self.config.contact_s
                    )
                };
                LOG.line(format_args!("{why}: every knob is put back"));
                self.contact.restores(now);
                self.worker.ask(Request::Restore(None));
            }
            Some(Step::End) => {
                LOG.line(format_args!(
                    "the controllers do not answer within {} s: their lease is ended, so that knobs go back without them",
                    RESTORE_LIMIT.as_secs()
                ));
                self.lease.end();
            }
        }
        self.lease.extend(self.contact.lease());
    }

    /// Has the controllers look what is in force; waits for it, but not for one that does not answer.
    fn look(&mut self, states: bool) -> Result<(), Fault> {
        self.levels.clear();
        if !self.is_looking && self.worker.ask(Request::Look { states }) {
            self.is_looking = true;
            let deadline = Instant::now() + LIMIT;
            while self.is_looking {
                match self.worker.done(deadline)? {
                    Some((done, touched)) => self.take(done, touched),
                    None => return Ok(()),
                }
            }
        }
        Ok(())
    }

    fn hear_worker(&mut self) -> Result<(), Fault> {
        while self.worker.is_busy()
            && let Some((done, touched)) = self.worker.done(Instant::now())?
        {
            self.take(done, touched);
        }
        Ok(())
    }

    /// Takes in what the controllers have done.
    fn take(&mut self, done: Done, touched: bool) {
        if !self.worker.is_busy() {
            self.contact.settled(touched, lease::now());
        }
        match done {
            Done::Set(id, outcome) => self.answer(&id, outcome.map(Value::Object)),
            Done::Restored(id, outcome) => {
                if let Err(fault) = &outcome {
                    LOG.line(format_args!("not everything is put back: {fault}"));
                }
                if let Some(id) = id {
                    self.answer(&id, outcome);
                }
                self.wants_hello = true;
            }
            Done::Looked(Seen {
                levels,
                states,
                news,
            }) => {
                self.is_looking = false;
                self.levels = levels;
                if let Some(states) = states {
                    self.states = states;
                }
                if let Some(news) = news {
                    LOG.line(news);
                    self.wants_hello = true;
                }
            }
        }
    }

    /// Names what does not answer, once.
    fn note_blocked(&mut self) {
        let mut blocked: Vec<String> = self.sampler.readers.blocked().map(str::to_owned).collect();
        if self.is_looking {
            blocked.push("knobs".to_owned());
        }
        if blocked != self.blocked {
            if self.is_looking {
                LOG.line("knobs: the controllers do not answer: their values are missing");
            }
            self.blocked = blocked;
            self.wants_hello = true;
        }
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
        // Said here, where it can be mended: the interface would cut this node off.
        if let Err(error) = limits::check_knobs(&self.states) {
            LOG.line(format_args!(
                "{error}: name fewer or shorter ones; the interface does not listen to this node"
            ));
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
            "touched": self.contact.touched(),
            "blocked": self.blocked,
            "knobs": self.states,
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
            LOG.line(format_args!(
                "{what} of {} bytes is more than the server takes: name fewer indicators",
                payload.len()
            ));
            return;
        }
        link.publish(&subject, None, payload);
        if let Err(fault) = link.flush(Duration::ZERO) {
            self.lose(&fault);
        }
    }
}
