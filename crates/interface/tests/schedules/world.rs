//! The world of a schedule: the interface and its disk, operators, the network, and the nodes.

use std::collections::BTreeMap;

use ascar_agent::contact::RESTORE_LIMIT;
use ascar_interface::config::Mode;
use ascar_interface::kill::Kill;
use ascar_interface::state::Content;
use ascar_interface::switch::Switch;
use ascar_random::Random;
use serde_json::{Value, json};

use crate::disk::Slots;
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
    Fault,
    Act,
}

pub struct World {
    pub random: Random,
    pub now: u64,
    serial: u64,
    events: BTreeMap<(u64, u64), Event>,
    pub switch: Option<Switch<Slots>>,
    /// Of an interface that is down.
    pub disk: Option<Slots>,
    pub up_at: u64,
    pub nodes: Vec<Node>,
    pub cut_until: u64,
    pub clock_off_s: f64,
    loss: f64,
    /// Since when the session is killed, by operators' doing and by damage.
    killed_at: Option<u64>,
    /// What operators chose, and what could not be chosen.
    chosen: Mode,
    asked_at: BTreeMap<String, u64>,
}

impl World {
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let loss = [0.0, 0.1, 0.3][random.below(3) as usize];
        let disk = Slots {
            contents: [Content::Missing, Content::Missing],
            full: false,
        };
        let mut world = Self {
            random,
            now: 0,
            serial: 0,
            events: BTreeMap::new(),
            switch: None,
            disk: Some(disk),
            up_at: 0,
            nodes: (0..NODES).map(|_| Node::new()).collect(),
            cut_until: 0,
            clock_off_s: 0.0,
            loss,
            killed_at: None,
            chosen: Mode::Automatic,
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
            let is_settled = self.switch.as_ref().is_some_and(|switch| {
                let kill = switch.kill.as_ref();
                kill.is_none_or(|it| it.unconfirmed().next().is_none())
            });
            if is_settled && self.now >= END + BOUND {
                return;
            }
            assert!(
                self.now < END + CALM,
                "rule 5: a node does not confirm the kill"
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
                if self.switch.is_none() && (self.now >= self.up_at || self.is_calm()) {
                    self.start_interface();
                }
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

    fn start_interface(&mut self) {
        let disk = self.disk.take().expect("it is down");
        let is_new = disk.contents == [Content::Missing, Content::Missing];
        let is_right = |rest: &Value| rest.get("setting").is_some();
        let (mut switch, found) = Switch::start(disk, Mode::Automatic, None, is_right);
        assert!(!is_new || found.damage.is_none());
        if let Some(damage) = &found.damage {
            let kill = self.new_kill(damage);
            switch.kill(kill);
            // Nobody pulled it: it stays pulled all the same.
            self.killed_at.get_or_insert(self.now);
        } else if switch.killed() && switch.kill.is_none() {
            switch.kill = Some(self.new_kill("before"));
        }
        let _ = switch.keep(&Self::rest());
        self.switch = Some(switch);
        self.check_interface();
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
        let Some(switch) = &self.switch else {
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
        let Some(switch) = &mut self.switch else {
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
            let _ = switch.keep(&Self::rest());
        }
        if let Some(id) = order {
            self.tell(node, Message::Restore(id));
        }
        self.check_interface();
    }

    /// What operators and the learner do.
    fn act(&mut self) {
        let Some(mut switch) = self.switch.take() else {
            return;
        };
        let draw = self.random.below(100);
        let mut orders = None;
        let mut is_revived = false;
        match draw {
            0..12 => {
                let kill = self.new_kill("by hand");
                orders = Some(Message::Restore(kill.id.clone()));
                switch.kill(kill);
                let _ = switch.keep(&Self::rest());
                self.killed_at.get_or_insert(self.now);
            }
            12..20 => {
                is_revived = switch.revive(&Self::rest()).is_ok();
                if is_revived {
                    self.killed_at = None;
                }
            }
            20..32 => {
                let mode = [Mode::Observe, Mode::Approve, Mode::Automatic][(draw % 3) as usize];
                let chosen = switch.set_mode(mode, &Self::rest()).is_ok();
                self.chosen = if chosen { mode } else { self.chosen.min(mode) };
            }
            _ if !switch.killed() && switch.mode() == Mode::Automatic => {
                orders = Some(Message::Set);
            }
            _ => {}
        }
        self.switch = Some(switch);
        self.check_interface();
        if is_revived {
            self.beat();
        }
        if let Some(order) = orders {
            for node in 0..NODES {
                self.tell(node, order.clone());
            }
        }
    }

    fn check_interface(&self) {
        let Some(switch) = &self.switch else {
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
