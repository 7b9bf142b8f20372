//! The world of a schedule: the interface and its disk, operators, the network, and the nodes.

use std::collections::BTreeMap;

use ascar_agent::contact::RESTORE_LIMIT;
use ascar_interface::config::Mode;
use ascar_interface::kill::Kill;
use ascar_interface::state::{Content, Outcome};
use ascar_interface::switch::{Deed, Ended, Switch};
use ascar_random::Random;
use serde_json::{Value, json};

use crate::disk::{Contents, Thread};
use crate::node::{Node, Request};

pub const NODES: usize = 2;
/// Milliseconds, as all times here: until then things go wrong.
const END: u64 = 25_000;
/// And so long afterwards, at most, everything is in order again.
const CALM: u64 = 60_000;
pub const TICK: u64 = 1000;
const BEAT: u64 = 2000;
pub const PATIENCE: u64 = 3000;
const LOOK: u64 = 500;
const DELAY_MAX: u64 = 1500;
/// How long a controller takes to put everything back.
pub const RESTORE: u64 = 300;
/// The last word that extends the lease may be late; then the controllers may hang, and the holder looks at last.
const BOUND: u64 =
    DELAY_MAX + PATIENCE + 2 * TICK + RESTORE_LIMIT.as_millis() as u64 + LOOK + RESTORE + 2 * TICK;

/// What goes over the network.
#[derive(Clone, Debug)]
enum Message {
    Beat(bool),
    Set,
    Restore(String),
    Hello(bool),
    Result(String),
}

#[derive(Clone, Debug)]
enum Event {
    ToNode(usize, u32, Message),
    ToInterface(usize, Message),
    Beat,
    Tick(usize),
    Look(usize),
    Work(usize, u32),
    /// The disk ends a write of this run of the interface.
    Written(u32),
    Fault,
    Act,
}

/// A running interface.
pub struct Interface {
    pub switch: Switch,
    pub thread: Thread,
}

pub struct World {
    pub random: Random,
    pub now: u64,
    serial: u64,
    events: BTreeMap<(u64, u64), Event>,
    pub interface: Option<Interface>,
    /// Of the interface's process.
    run: u32,
    /// Of an interface that is down.
    pub disk: Option<Contents>,
    pub up_at: u64,
    /// Until then the disk takes its time.
    pub slow_until: u64,
    pub nodes: Vec<Node>,
    pub cut_until: u64,
    pub clock_off_s: f64,
    loss: f64,
    /// Since when the session is killed, by operators' doing and by damage.
    killed_at: Option<u64>,
    /// Of the first draft of that kill, until an answer about it has come: it may be lost with the interface.
    unkept: Option<u64>,
    /// The session may be revived by a deed that was begun, and not answered, before the interface died.
    may_be_revived: bool,
    /// The least careful mode that operators chose, and were told of.
    chosen: Mode,
    /// What they have not been told of yet, by the ticket.
    asked: BTreeMap<u64, Deed>,
    asked_at: BTreeMap<String, u64>,
}

impl World {
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let loss = [0.0, 0.1, 0.3][random.below(3) as usize];
        let mut world = Self {
            random,
            now: 0,
            serial: 0,
            events: BTreeMap::new(),
            interface: None,
            run: 0,
            disk: Some(Contents::new()),
            up_at: 0,
            slow_until: 0,
            nodes: (0..NODES).map(|_| Node::new()).collect(),
            cut_until: 0,
            clock_off_s: 0.0,
            loss,
            killed_at: None,
            unkept: None,
            may_be_revived: false,
            chosen: Mode::Automatic,
            asked: BTreeMap::new(),
            asked_at: BTreeMap::new(),
        };
        world.start_interface();
        for node in 0..NODES {
            world.nodes[node].start(0);
            world.after(0, Event::Tick(node));
            world.after(0, Event::Look(node));
        }
        world.after(0, Event::Beat);
        world.after(500, Event::Fault);
        world.after(700, Event::Act);
        world
    }

    /// Until everything is in order again.
    pub fn run(&mut self) {
        while let Some(((at, _), event)) = self.events.pop_first() {
            self.now = at;
            self.step(event);
            let is_settled = self.interface.as_ref().is_some_and(|it| {
                let kill = it.switch.kill.as_ref();
                let is_confirmed = kill.is_none_or(|it| it.unconfirmed().next().is_none());
                is_confirmed && it.switch.not_stored().is_none()
            });
            if is_settled && self.asked.is_empty() && self.now >= END + BOUND {
                return;
            }
            assert!(
                self.now < END + CALM,
                "rule 5: a node does not confirm the kill, or it is never on disk"
            );
        }
    }

    fn after(&mut self, wait: u64, event: Event) {
        self.serial += 1;
        self.events.insert((self.now + wait, self.serial), event);
    }

    pub fn chance(&mut self, share: f64) -> bool {
        self.random.unit() < share
    }

    fn is_calm(&self) -> bool {
        self.now >= END
    }

    fn send(&mut self, event: Event) {
        if !self.is_calm() && (self.now < self.cut_until || self.chance(self.loss)) {
            return;
        }
        let delay_max = match (self.is_calm(), self.chance(0.2)) {
            (true, _) => 5,
            (false, true) => DELAY_MAX,
            (false, false) => 20,
        };
        let delay = self.random.below(delay_max);
        self.after(delay, event);
    }

    fn tell(&mut self, node: usize, message: Message) {
        let run = self.nodes[node].run;
        self.send(Event::ToNode(node, run, message));
    }

    fn step(&mut self, event: Event) {
        match event {
            Event::Beat => {
                if self.interface.is_none() && (self.now >= self.up_at || self.is_calm()) {
                    self.start_interface();
                }
                self.retry();
                self.beat();
                self.after(BEAT, Event::Beat);
            }
            Event::Tick(node) => self.tick(node),
            Event::Look(node) => {
                self.nodes[node].look(self.now);
                self.after(LOOK, Event::Look(node));
            }
            Event::ToNode(node, run, message) => {
                if let Some(wait) = self.stopped_for(node, run) {
                    // It waits in the socket of a process that is stopped.
                    self.after(wait, Event::ToNode(node, run, message));
                } else if self.nodes[node].run == run {
                    self.obey(node, message);
                }
            }
            Event::ToInterface(node, message) => self.hear(node, &message),
            Event::Work(node, run) => self.work(node, run),
            Event::Written(run) if run == self.run => self.take_outcome(),
            Event::Written(_) => {}
            Event::Fault if self.is_calm() => {}
            Event::Fault => {
                self.fault();
                let wait = 300 + self.random.below(3000);
                self.after(wait, Event::Fault);
            }
            Event::Act if self.is_calm() => {}
            Event::Act => {
                self.act();
                let wait = 100 + self.random.below(1500);
                self.after(wait, Event::Act);
            }
        }
    }

    // The interface.

    fn rest() -> Value {
        json!({"setting": {"x": 1}})
    }

    fn read(disk: Contents) -> (Switch, Thread, Option<String>) {
        let is_right = |rest: &Value| rest.get("setting").is_some();
        let (thread, recalled) = Thread::start(disk);
        let (switch, found) = Switch::start(recalled, Mode::Automatic, None, is_right);
        (switch, thread, found.damage)
    }

    fn start_interface(&mut self) {
        let disk = self.disk.take().expect("it is down");
        let is_new = disk.contents == [Content::Missing, Content::Missing] && !disk.is_noted;
        let (mut switch, thread, damage) = Self::read(disk);
        assert!(!is_new || damage.is_none());
        if let Some(damage) = &damage {
            let kill = self.new_kill(damage);
            switch.kill(kill);
            // Nobody pulled it: it stays pulled all the same.
            self.killed_at.get_or_insert(self.now);
        } else if switch.killed() && switch.kill.is_none() {
            switch.kill = Some(self.new_kill("before"));
        }
        if self.may_be_revived && !switch.killed() {
            self.killed_at = None;
        }
        self.may_be_revived = false;
        self.run += 1;
        self.interface = Some(Interface { switch, thread });
        self.remember();
        // A start waits for the disk.
        self.take_outcome();
        self.check_interface();
    }

    /// The interface dies: what was neither on disk nor told may be so or not.
    pub fn forget(&mut self, switch: &Switch) {
        for deed in std::mem::take(&mut self.asked).into_values() {
            match deed {
                Deed::Mode(mode) => self.chosen = self.chosen.max(mode),
                Deed::Revive => self.may_be_revived = true,
            }
        }
        self.may_be_revived |= switch.killed() && self.unkept.is_some();
        self.unkept = None;
    }

    /// Hands the state to the thread that writes. Returns the draft's number.
    fn remember(&mut self) -> u64 {
        let interface = self.interface.as_mut().expect("it runs");
        let draft = interface.switch.draft(&Self::rest());
        let number = draft.number;
        interface.thread.waiting = Some(draft);
        self.begin_write();
        number
    }

    fn begin_write(&mut self) {
        if !self.interface.as_mut().is_some_and(|it| it.thread.begin()) {
            return;
        }
        let wait = match self.is_calm() {
            true => 1,
            false => self.slow_until.saturating_sub(self.now) + 1 + self.random.below(50),
        };
        self.after(wait, Event::Written(self.run));
    }

    /// What could not be written is written later.
    fn retry(&mut self) {
        let is_calm = self.is_calm();
        let Some(interface) = &mut self.interface else {
            return;
        };
        let disk = interface.thread.slots.disk();
        if is_calm {
            disk.full = false;
            disk.failing = None;
        }
        if interface.switch.fault().is_some() {
            self.remember();
        }
    }

    /// The disk has ended a write, and the interface hears of it.
    fn take_outcome(&mut self) {
        let Some(interface) = self.interface.as_mut() else {
            return;
        };
        if interface.thread.writing.is_none() {
            return;
        }
        let outcome = interface.thread.end();
        let Outcome { number, .. } = outcome;
        let ended = interface.switch.kept(outcome);
        if self.unkept.is_some_and(|it| it <= number) {
            self.unkept = None;
        }
        if interface.switch.is_draft_due() {
            self.remember();
        }
        self.begin_write();
        for one in &ended {
            self.hear_end(one);
        }
        self.check_disk(&ended);
        self.check_interface();
    }

    /// Operators hear what has come of a deed.
    fn hear_end(&mut self, ended: &Ended) {
        self.asked.remove(&ended.ticket);
        match (ended.deed, &ended.done) {
            (_, Err(_)) => {}
            (Deed::Mode(mode), Ok(())) => self.chosen = mode,
            (Deed::Revive, Ok(())) => {
                self.killed_at = None;
                self.beat();
            }
        }
    }

    /// What was told as done outlives the interface.
    fn check_disk(&mut self, ended: &[Ended]) {
        let interface = self.interface.as_mut().expect("it runs");
        let (again, ..) = Self::read(interface.thread.slots.disk().clone());
        let switch = &interface.switch;
        assert!(
            !switch.killed() || switch.not_stored().is_some() || again.killed(),
            "rule 6: the kill counts as on disk"
        );
        let is_wanted = |deed: &Deed| matches!(deed, Deed::Mode(_));
        if !self.asked.values().any(is_wanted) {
            assert!(
                again.mode() <= self.chosen,
                "rule 6: {:?} after a new start, where {:?} was told: {ended:?}",
                again.mode(),
                self.chosen
            );
        }
    }

    fn new_kill(&mut self, why: &str) -> Kill {
        self.serial += 1;
        let unix_s = self.now as f64 / 1e3 + self.clock_off_s;
        let id = format!("kill-{:x}-{}", (unix_s * 1e6) as u64, self.serial);
        self.asked_at.insert(id.clone(), self.now);
        let nodes = (0..NODES).map(|node| node.to_string());
        Kill::new(id, why, unix_s, nodes)
    }

    fn beat(&mut self) {
        let Some(Interface { switch, .. }) = &self.interface else {
            return;
        };
        let killed = switch.killed();
        let mut asked: Vec<(usize, String)> = Vec::new();
        if let Some(kill) = &switch.kill {
            let nodes = kill.unconfirmed();
            asked.extend(nodes.map(|it| (it.parse().unwrap(), kill.id.clone())));
        }
        for node in 0..NODES {
            self.tell(node, Message::Beat(killed));
        }
        for (node, id) in asked {
            self.tell(node, Message::Restore(id));
        }
    }

    fn hear(&mut self, node: usize, message: &Message) {
        let Some(Interface { switch, .. }) = &mut self.interface else {
            return;
        };
        let Some(kill) = &mut switch.kill else {
            return;
        };
        let name = node.to_string();
        let mut order = None;
        let is_new = match message {
            Message::Hello(touched) if kill.heard(&name, *touched, false) => {
                order = Some(kill.id.clone());
                true
            }
            Message::Result(id) => kill.answered(&name, id, None),
            _ => false,
        };
        if is_new {
            self.remember();
        }
        if let Some(id) = order {
            self.tell(node, Message::Restore(id));
        }
        self.check_interface();
    }

    /// What operators and the learner do.
    fn act(&mut self) {
        if self.interface.is_none() {
            return;
        }
        let draw = self.random.below(100);
        match draw {
            0..12 => self.pull(),
            12..20 => self.want(Deed::Revive),
            20..32 => {
                let mode = [Mode::Observe, Mode::Approve, Mode::Automatic][(draw % 3) as usize];
                self.want(Deed::Mode(mode));
            }
            _ => self.set(),
        }
        self.check_interface();
    }

    /// The order goes to the nodes whatever the disk does.
    fn pull(&mut self) {
        let kill = self.new_kill("by hand");
        let order = Message::Restore(kill.id.clone());
        let interface = self.interface.as_mut().expect("it runs");
        interface.switch.kill(kill);
        let number = self.remember();
        let is_revived = self.asked.values().any(|it| *it == Deed::Revive);
        if self.killed_at.is_none() || is_revived {
            self.unkept = Some(number);
        }
        self.killed_at.get_or_insert(self.now);
        self.tell_all(&order);
    }

    fn want(&mut self, deed: Deed) {
        let interface = self.interface.as_mut().expect("it runs");
        let ticket = interface.switch.want(deed);
        self.asked.insert(ticket, deed);
        self.remember();
    }

    fn set(&mut self) {
        let interface = self.interface.as_ref().expect("it runs");
        if !interface.switch.killed() && interface.switch.mode() == Mode::Automatic {
            self.tell_all(&Message::Set);
        }
    }

    fn tell_all(&mut self, order: &Message) {
        for node in 0..NODES {
            self.tell(node, order.clone());
        }
    }

    fn check_interface(&self) {
        let Some(Interface { switch, .. }) = &self.interface else {
            return;
        };
        assert!(
            self.killed_at.is_none() || switch.killed(),
            "rule 2: the session was killed, and is not any more"
        );
        assert!(
            switch.mode() <= self.chosen,
            "rule 3: {:?} where {:?} was chosen",
            switch.mode(),
            self.chosen
        );
        if let Some(kill) = &switch.kill {
            let asked_at = self.asked_at[&kill.id];
            let waiting: Vec<&str> = kill.unconfirmed().collect();
            for (place, node) in self.nodes.iter().enumerate() {
                let is_confirmed = !waiting.contains(&place.to_string().as_str());
                assert!(
                    !is_confirmed || node.restored_at >= asked_at,
                    "rule 4: node {place} counts as confirmed"
                );
            }
        }
    }

    // A node.

    /// How long this agent is still stopped.
    fn stopped_for(&self, node: usize, run: u32) -> Option<u64> {
        let it = &self.nodes[node];
        let is_there = it.run == run && it.agent.is_some();
        (is_there && self.now < it.stopped_until).then(|| it.stopped_until - self.now)
    }

    fn ask(&mut self, node: usize, request: Request) {
        if self.nodes[node].ask(request, self.now) {
            let run = self.nodes[node].run;
            let wait = 1 + self.random.below(100);
            self.after(wait, Event::Work(node, run));
        }
    }

    fn work(&mut self, node: usize, run: u32) {
        let it = &mut self.nodes[node];
        if it.run != run || it.agent.is_none() {
            return;
        }
        let until = it
            .stopped_until
            .max(it.blocked_until(self.now).unwrap_or(0));
        if until > self.now {
            return self.after(until - self.now, Event::Work(node, run));
        }
        let answered = it.work(self.now);
        let is_busy = it.agent.as_ref().is_some_and(|it| !it.queue.is_empty());
        if is_busy {
            self.after(1, Event::Work(node, run));
        }
        if let Some(id) = answered {
            self.send(Event::ToInterface(node, Message::Result(id)));
        }
    }

    fn obey(&mut self, node: usize, message: Message) {
        match message {
            Message::Beat(killed) => {
                self.nodes[node].hear(Some(killed), self.now);
                self.watch(node);
            }
            Message::Set => {
                self.nodes[node].hear(None, self.now);
                self.ask(node, Request::Set);
            }
            Message::Restore(id) => {
                self.nodes[node].hear(None, self.now);
                self.ask(node, Request::Restore(Some(id)));
            }
            Message::Hello(_) | Message::Result(_) => {}
        }
    }

    fn watch(&mut self, node: usize) {
        if self.nodes[node].watch(self.now) {
            self.ask(node, Request::Restore(None));
        }
    }

    fn tick(&mut self, node: usize) {
        let is_begun = (self.is_calm() || self.chance(0.3)) && self.nodes[node].start(self.now);
        if self.is_calm() {
            self.nodes[node].stopped_until = 0;
            self.nodes[node].hangs_until = 0;
        }
        if self.now >= self.nodes[node].stopped_until {
            self.watch(node);
            let touched = self.nodes[node]
                .agent
                .as_ref()
                .map(|it| it.contact.touched());
            if let Some(touched) = touched
                && (is_begun || self.chance(0.3))
            {
                self.send(Event::ToInterface(node, Message::Hello(touched)));
            }
        }
        let it = &self.nodes[node];
        if let Some(killed_at) = self.killed_at {
            let away = self.now - killed_at.max(it.changed_at);
            assert!(
                !it.is_changed || away <= BOUND,
                "rule 1: {away} ms after the kill node {node} is changed"
            );
        }
        self.after(TICK, Event::Tick(node));
    }
}
