//! SHARP's windows on this node's block devices (Li, chapter 3): the agent is a controller whose rules act on the kernel itself.
//!
//! In flow order: [`queues`] are what the kernel counts and a keeper sets, [`counted`] makes a congestion state and a window of
//! those counts, [`plane`] follows rules with them, and the thread here looks ten times a second and answers the rule manager.
//! Windows are away from their initial values only under a lease, which runs out a while after the message server was last
//! there.

pub mod counted;
pub mod plane;
pub mod queues;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ascar_messaging::file::{ConfigFile, range};
use ascar_messaging::options::check_name;
use ascar_messaging::{Fault, Link, Message, Parameter};
use ascar_plane::{Asked, Endpoint, Told};
use serde::Deserialize;

use self::counted::Range;
use self::plane::KernelPlane;
use self::queues::{KernelQueues, knob_of};
use crate::LOG;
use crate::config::Config;
use crate::controllers::{Controllers, check_kept};
use crate::lease::{self, Lease, holder};
use crate::relay::{FIND, PREFIX, fits, verb_of};

/// Between looks at what the kernel has counted.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// A controller's tick.
const TICK: Duration = Duration::from_secs(1);
/// Waits between attempts to connect.
const PAUSE_MIN: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// The lease outlasts the patience by this.
const MARGIN: Duration = Duration::from_secs(2);
/// The longest message that is read.
const ASKED_BYTES_MAX: usize = 1 << 20;
/// What blk-mq has at least, whatever it is told; and what rules can reach.
const REQUESTS_MIN: f64 = 4.0;
const REQUESTS_MAX: f64 = 256.0;
const DEVICES_MAX: usize = 16;
/// A thread's stack: rules are parsed there.
const STACK_BYTES: usize = 1 << 20;

/// `[windows]` in the file: devices whose requests in flight rules limit.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WindowOptions {
    /// Block devices.
    pub devices: Vec<String>,
    /// The controller's name; the node's where none is given.
    pub controller: Option<String>,
    /// The workload by which rules are deployed here.
    #[serde(default = "default_workload")]
    pub workload: String,
    /// The least window.
    #[serde(default = "default_minimum")]
    pub minimum: u32,
    /// The greatest window.
    #[serde(default = "default_maximum")]
    pub maximum: u32,
}

fn default_workload() -> String {
    "blocks".to_owned()
}

fn default_minimum() -> u32 {
    4
}

fn default_maximum() -> u32 {
    128
}

impl WindowOptions {
    /// # Errors
    /// When a key is wrong.
    pub fn check(&self) -> Result<(), Fault> {
        let count = self.devices.len();
        if !(1..=DEVICES_MAX).contains(&count) {
            return Err(Fault(format!(
                "windows.devices: {count} are given; allowed are 1 to {DEVICES_MAX}"
            )));
        }
        for (at, device) in self.devices.iter().enumerate() {
            if self.devices[..at].contains(device) {
                return Err(Fault(format!(
                    "windows.devices = {device:?}: is given twice; name each once"
                )));
            }
        }
        if let Some(name) = &self.controller {
            check_name("windows.controller", name)?;
        }
        check_name("windows.workload", &self.workload)?;
        range(
            "windows.minimum",
            self.minimum.into(),
            REQUESTS_MIN,
            REQUESTS_MAX,
        )?;
        let least = f64::from(self.minimum);
        range("windows.maximum", self.maximum.into(), least, REQUESTS_MAX)?;
        self.knobs().iter().try_for_each(check_kept)
    }

    /// The knobs that are their windows.
    fn knobs(&self) -> Vec<Parameter> {
        let knob = |device: &String| Parameter {
            name: knob_of(device),
            minimum: Some(self.minimum.into()),
            maximum: Some(self.maximum.into()),
            choices: Vec::new(),
        };
        self.devices.iter().map(knob).collect()
    }
}

/// The thread that follows rules.
#[derive(Debug)]
pub struct Windows {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Windows {
    /// Starts it, where the file has windows.
    ///
    /// # Errors
    /// When there is no memory or no thread to be had, or the node's name is none of a controller.
    pub fn start(config: &Config) -> Result<Option<Self>, Fault> {
        let Some(options) = &config.windows else {
            return Ok(None);
        };
        let mut controller = WindowController::new(config, options)?;
        let stop = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&stop);
        let thread = thread::Builder::new()
            .name("windows".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || controller.run(&asked))
            .map_err(|error| Fault(format!("a thread for windows: {error}")))?;
        Ok(Some(Self { stop, thread }))
    }

    /// Has it put back all windows, and waits for that as long as a keeper may take.
    pub fn end(self) {
        self.stop.store(true, Ordering::SeqCst);
        let begun = Instant::now();
        while !self.thread.is_finished() && begun.elapsed() < holder::GRACE {
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// A controller of this node's devices.
struct WindowController {
    config: Config,
    name: String,
    endpoint: Endpoint<KernelPlane<KernelQueues>>,
    lease: Arc<Lease>,
    link: Option<Link>,
    /// When the message server was there last.
    heard: Duration,
    pause: Duration,
    retry_at: Instant,
    said: String,
    /// What could not be set since the last tick.
    fault: Option<String>,
    ticked: Duration,
    moved_bytes: u64,
}

impl WindowController {
    fn new(config: &Config, options: &WindowOptions) -> Result<Self, Fault> {
        let lease = Lease::new().map_err(|error| Fault(format!("memory to share: {error}")))?;
        let lease = Arc::new(lease);
        let state_directory = config.state_directory.clone();
        let controllers = Controllers::new(options.knobs(), Vec::new(), state_directory, &lease);
        let plane = KernelPlane::new(
            &config.node,
            &options.devices,
            Range::of(options.minimum, options.maximum),
            KernelQueues::new(controllers),
        );
        let name = options.controller.as_ref().unwrap_or(&config.node).clone();
        // Another process is another instance, also after another boot.
        let instance = format!(
            "{:x}-{:x}",
            std::process::id(),
            crate::clock::wall().as_nanos()
        );
        let endpoint = Endpoint::new(&name, &options.workload, &instance, plane).map_err(Fault)?;
        Ok(Self {
            config: config.clone(),
            name,
            endpoint,
            lease,
            link: None,
            heard: lease::now(),
            pause: PAUSE_MIN,
            retry_at: Instant::now(),
            said: String::new(),
            fault: None,
            ticked: lease::now(),
            moved_bytes: 0,
        })
    }

    fn run(&mut self, stop: &AtomicBool) {
        while !stop.load(Ordering::SeqCst) {
            let until = Instant::now() + LOOK_EVERY;
            self.look();
            self.listen(until);
        }
        // What is not put back now, the keeper puts back when this process ends.
        if let Told::Refusal { reason } = self.stop_following() {
            LOG.line(format_args!(
                "windows: not everything is put back: {reason}"
            ));
        }
    }

    /// Takes in what was counted; ends what is over.
    fn look(&mut self) {
        let now = lease::now();
        if self.link.is_some() {
            self.heard = now;
        }
        self.lease
            .extend(self.heard + self.config.contact() + MARGIN);
        let now_us = u64::try_from(now.as_micros()).unwrap_or(u64::MAX);
        if let Err(fault) = self.endpoint.plane_mut().look(now_us) {
            self.fault = Some(fault);
        }
        while let Some(line) = self.endpoint.expire(now) {
            LOG.line(format_args!("windows: {line}"));
        }
        let elapsed = now.saturating_sub(self.ticked);
        if elapsed >= TICK {
            self.tick(now, elapsed);
        }
    }

    /// The end of a tick: looks after the keeper, gives up what cannot go on, and says that it is there.
    fn tick(&mut self, now: Duration, elapsed: Duration) {
        self.ticked = now;
        if let Some(news) = self.endpoint.plane_mut().watch() {
            LOG.line(format_args!("windows: {news}"));
        }
        if let Some(fault) = self.fault.take() {
            self.give_up(&fault);
        }
        if now.saturating_sub(self.heard) > self.config.contact() {
            let silence = format!(
                "nothing heard of the message server for {} s",
                self.config.contact_s
            );
            self.give_up(&silence);
        }
        // What could not be put back when rules ended.
        if self.endpoint.rules().is_none() && self.endpoint.plane().is_following() {
            self.stop_following();
        }
        let moved_bytes = self.endpoint.plane().moved_bytes();
        let grown = moved_bytes.saturating_sub(self.moved_bytes);
        self.moved_bytes = moved_bytes;
        let tick_s = elapsed.as_secs_f64();
        let beat = self.endpoint.beat(tick_s, grown as f64 / 1e6 / tick_s);
        if let Some(link) = &mut self.link {
            let subject = format!("{PREFIX}beat.{}", self.name);
            link.publish(&subject, None, beat.to_line().as_bytes());
        }
    }

    /// Follows no rules any more, if it follows some.
    fn give_up(&mut self, why: &str) {
        let Some(rules) = self.endpoint.rules().map(str::to_owned) else {
            return;
        };
        LOG.line(format_args!("windows: {why}: rules {rules} end"));
        if let Told::Refusal { reason } = self.stop_following() {
            LOG.line(format_args!(
                "windows: not everything is put back: {reason}"
            ));
        }
    }

    fn stop_following(&mut self) -> Told {
        let told = self.endpoint.answer(&Asked::Stop {}, lease::now());
        told.unwrap_or_else(|| Told::refusal("nobody answers"))
    }

    /// Answers until then, connecting first where need be.
    fn listen(&mut self, until: Instant) {
        if self.link.is_none() && Instant::now() >= self.retry_at {
            self.connect();
        }
        loop {
            let Some(link) = &mut self.link else {
                thread::sleep(until.saturating_duration_since(Instant::now()));
                return;
            };
            match link.receive(until) {
                Ok(Some(message)) => self.pass(&message),
                Ok(None) => return,
                Err(fault) => self.lose(&fault),
            }
        }
    }

    fn connect(&mut self) {
        let who = format!("agent {}, windows", self.config.node);
        let connected = self
            .config
            .options()
            .and_then(|options| Link::connect(&options, &who));
        match connected {
            Ok(mut link) => {
                link.subscribe(&format!("{PREFIX}{FIND}"));
                link.subscribe(&format!("{PREFIX}*.{}", self.name));
                self.link = Some(link);
                self.pause = PAUSE_MIN;
                self.said.clear();
                LOG.line(format_args!(
                    "windows: the rule manager reaches controller {}",
                    self.name
                ));
            }
            Err(fault) => self.lose(&fault),
        }
    }

    fn lose(&mut self, fault: &Fault) {
        // Once, not every second.
        if self.said != fault.0 {
            LOG.line(format_args!("windows: {fault}"));
            self.said.clone_from(&fault.0);
        }
        self.link = None;
        self.retry_at = Instant::now() + self.pause;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
    }

    /// Answers a message.
    fn pass(&mut self, message: &Message) {
        let Some(verb) = verb_of(&message.subject, &self.name) else {
            return;
        };
        let told = match self.asked(verb, &message.payload) {
            Ok(asked) => self.endpoint.answer(&asked, lease::now()),
            // Of those that are looked for, only who is meant says so.
            Err(_) if verb == FIND => None,
            Err(reason) => Some(Told::refusal(&reason)),
        };
        let (Some(told), Some(reply), Some(link)) = (told, &message.reply, &mut self.link) else {
            return;
        };
        let mut line = told.to_line();
        if line.len() > link.payload_bytes_max() {
            let reason = format!(
                "an answer of {} bytes is more than the server takes",
                line.len()
            );
            line = Told::refusal(&reason).to_line();
        }
        link.publish(reply, None, line.as_bytes());
    }

    /// What is asked under a subject: the server lets a user ask by it, so another message must not come there.
    fn asked(&self, verb: &str, payload: &[u8]) -> Result<Asked, String> {
        if payload.len() >= ASKED_BYTES_MAX {
            return Err(format!(
                "message: {} bytes: at most {ASKED_BYTES_MAX}",
                payload.len()
            ));
        }
        if !fits(payload, verb) {
            return Err(format!(
                "message: is no rules.{verb} in JSON, as its subject says"
            ));
        }
        Asked::parse(payload)
    }
}
