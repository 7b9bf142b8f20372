//! A schedule of actions and ticks: orders and answers are lost, doubled, late and out of order; nodes refuse, are silent
//! and have wrong clocks; the interface is held up. What carries an action out, and what gathers frames into ticks, are
//! the daemon's; clock and network are the schedule's.
//!
//! What must hold:
//!
//! 7. an action is told as applied only when every node it was for has carried it out;
//! 8. one that has failed is taken back from every node that may have it, to what was before;
//! 9. no action is on its way for longer than its stages, their patience and the rest between them allow;
//! 10. before the rest is over no more than the share of the nodes is told;
//! 11. each tick is closed once, in order, and has each frame that came in time and that no later one replaced.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ascar_interface::checker::Targets;
use ascar_interface::config::Rollout;
use ascar_interface::layouts::Layout;
use ascar_interface::relay::{Action, End, Order, Relay};
use ascar_interface::ticks::{Row, Taken, Ticks};
use ascar_random::Random;
use serde_json::{Map, Value, json};

const TICKS: i64 = 60;
const TICK_MS: u64 = 1000;
const SKEWS: [i64; 8] = [0, 1, -1, 2, -2, 5, -1_000_000, i64::MAX / 2];

#[derive(Clone, Debug)]
enum Event {
    Order(usize, Order),
    Answer(usize, String, Result<Map<String, Value>, String>),
    Frame(usize, i64),
}

/// A node with one knob.
#[derive(Debug, Default)]
struct Node {
    /// Orders that it has carried out, or refused.
    done: BTreeSet<String>,
    refused: BTreeSet<String>,
    skew: i64,
    silent_until: u64,
    /// A connection keeps its order.
    last_at: u64,
}

/// The action on its way.
#[derive(Debug)]
struct Flight {
    targets: BTreeSet<usize>,
    told: BTreeSet<usize>,
    first_max: usize,
    begun: i64,
    /// The last answer of the first nodes came in this tick.
    heard: i64,
}

pub struct Actions {
    random: Random,
    now: u64,
    serial: u64,
    events: BTreeMap<(u64, u64), Event>,
    nodes: Vec<Node>,
    loss: f64,
    rollout: Rollout,
    patience: i64,
    relay: Relay,
    flight: Option<Flight>,
    current: Value,
    ticks: Ticks,
    layout: Arc<Layout>,
    closed: i64,
    /// Frames in open ticks by tick and node.
    open: BTreeMap<(i64, usize), f32>,
    frames: u32,
}

impl Actions {
    pub fn new(seed: u64) -> Self {
        let mut random = Random::of(seed, &[1]);
        let share = [1.0, 0.5, 0.3][random.below(3) as usize];
        let rest = random.below(6);
        let rollout = Rollout { share, ticks: rest };
        let patience = 1 + random.below(5) as i64;
        let count = 1 + random.below(5) as usize;
        let mut ticks = Ticks::default();
        ticks.begin(-1);
        Self {
            now: 0,
            serial: 0,
            events: BTreeMap::new(),
            nodes: (0..count).map(|_| Node::default()).collect(),
            loss: [0.0, 0.1, 0.3][random.below(3) as usize],
            relay: Relay::new(rollout.clone(), patience),
            rollout,
            patience,
            random,
            flight: None,
            current: json!(0),
            ticks,
            layout: Arc::new(Layout::new(0, vec!["x".to_owned()])),
            closed: -1,
            open: BTreeMap::new(),
            frames: 0,
        }
    }

    pub fn run(&mut self) {
        for tick in 0..TICKS {
            let end = (tick as u64 + 1) * TICK_MS;
            for node in 0..self.nodes.len() {
                self.live(node, tick);
            }
            self.act(tick);
            while let Some(entry) = self.events.first_entry().filter(|it| it.key().0 < end) {
                self.now = entry.key().0;
                let event = entry.remove();
                self.step(event);
            }
            self.now = end;
            // Held up, it closes several ticks at the next end.
            if self.chance(0.1) && tick + 1 < TICKS {
                continue;
            }
            while self.ticks.oldest(tick + 1) <= tick {
                self.close();
            }
            let (orders, ended) = self.relay.tick(tick + 1);
            if let (Some(flight), false) = (&self.flight, orders.is_empty()) {
                let rested = tick + 1 - flight.heard;
                assert!(
                    rested >= self.rollout.ticks as i64,
                    "rule 10: {rested} ticks of rest: {flight:?}"
                );
            }
            self.send_orders(orders);
            self.finish(ended);
            self.check_time(tick + 1);
        }
    }

    fn chance(&mut self, share: f64) -> bool {
        self.random.unit() < share
    }

    fn after(&mut self, wait: u64, event: Event) {
        self.serial += 1;
        self.events.insert((self.now + wait, self.serial), event);
    }

    fn delay(&mut self) -> u64 {
        let most = if self.chance(0.1) { 4000 } else { 50 };
        self.random.below(most)
    }

    fn send_orders(&mut self, orders: Vec<Order>) {
        for order in orders {
            let node: usize = order.node.parse().unwrap();
            if let Some(flight) = &mut self.flight {
                flight.told.insert(node);
            }
            if self.chance(self.loss) {
                continue;
            }
            let at = (self.now + self.delay()).max(self.nodes[node].last_at);
            self.nodes[node].last_at = at;
            self.after(at - self.now, Event::Order(node, order));
        }
    }

    /// What a node does in a tick: its frame goes, and its clock or it itself goes wrong.
    fn live(&mut self, node: usize, tick: i64) {
        if self.chance(0.05) {
            self.nodes[node].skew = SKEWS[self.random.below(8) as usize];
        }
        if self.chance(0.05) {
            self.nodes[node].silent_until = self.now + self.random.below(8000);
        }
        for _ in 0..1 + self.random.below(8) / 7 {
            let named = tick + self.nodes[node].skew;
            let wait = self.random.below(TICK_MS) + self.delay();
            if !self.chance(self.loss) {
                self.after(wait, Event::Frame(node, named));
            }
        }
    }

    fn act(&mut self, tick: i64) {
        if self.relay.busy().is_some() || self.chance(0.5) {
            return;
        }
        self.serial += 1;
        let value = json!(self.serial);
        let count = self.nodes.len();
        let is_for = |it: &usize| *it == self.serial as usize % count || it.is_multiple_of(2);
        let targets: BTreeSet<usize> = (0..count).filter(is_for).collect();
        let action: Action =
            serde_json::from_value(json!({"id": format!("a{}", self.serial), "set": {"x": value}}))
                .unwrap();
        let orders: Targets = targets
            .iter()
            .map(|it| {
                (
                    it.to_string(),
                    Map::from_iter([("x".to_owned(), value.clone())]),
                )
            })
            .collect();
        let at_once = self.chance(0.1);
        let share = (self.rollout.share * targets.len() as f64).ceil() as usize;
        self.flight = Some(Flight {
            first_max: if at_once { targets.len() } else { share.max(1) },
            targets,
            told: BTreeSet::new(),
            begun: tick,
            heard: tick,
        });
        let current = BTreeMap::from([("x".to_owned(), self.current.clone())]);
        let orders = self.relay.begin(action, orders, &current, tick, at_once);
        self.send_orders(orders);
        let flight = self.flight.as_ref().expect("it was begun");
        assert!(flight.told.len() <= flight.first_max, "rule 10: {flight:?}");
    }

    fn step(&mut self, event: Event) {
        let tick = (self.now / TICK_MS) as i64;
        match event {
            Event::Order(node, order) => self.obey(node, order),
            Event::Answer(node, id, answer) => {
                let name = node.to_string();
                if let Some(flight) = self
                    .flight
                    .as_mut()
                    .filter(|_| self.relay.awaits(&name, &id))
                {
                    flight.heard = tick;
                }
                let ended = self.relay.answered(&name, &id, answer, tick);
                self.finish(ended);
            }
            Event::Frame(node, named) => self.take(node, named, tick),
        }
    }

    fn obey(&mut self, node: usize, order: Order) {
        let it = &mut self.nodes[node];
        if self.now < it.silent_until {
            let wait = it.silent_until - self.now;
            it.last_at = it.last_at.max(it.silent_until);
            return self.after(wait, Event::Order(node, order));
        }
        let answer = if self.random.unit() < 0.05 {
            it.refused.insert(order.id.clone());
            Err("no".to_owned())
        } else {
            it.done.insert(order.id.clone());
            Ok(order.set)
        };
        for _ in 0..1 + self.random.below(10) / 9 {
            if !self.chance(self.loss) {
                let wait = self.delay();
                self.after(wait, Event::Answer(node, order.id.clone(), answer.clone()));
            }
        }
    }

    fn finish(&mut self, end: Option<End>) {
        let Some(end) = end else { return };
        let flight = self.flight.take().expect("one is on its way");
        assert!(self.relay.busy().is_none());
        let is_among = |orders: &BTreeSet<String>, id: &str| {
            let stages = [format!("{id}/0"), format!("{id}/1")];
            stages.iter().any(|it| orders.contains(it))
        };
        let has = |node: &usize, id: &str| is_among(&self.nodes[*node].done, id);
        let has_refused = |node: &usize, id: &str| is_among(&self.nodes[*node].refused, id);
        match end {
            End::Applied(action, values) => {
                for node in &flight.targets {
                    assert!(has(node, &action.id), "rule 7: node {node}, {action:?}");
                }
                self.current = values["x"].clone();
            }
            End::Failed(action, reason, undo) => {
                // Also where the order is still on its way.
                let may_have = |it: &&usize| !has_refused(it, &action.id);
                for node in flight.told.iter().filter(may_have) {
                    let back = undo.iter().find(|it| it.node == node.to_string());
                    assert_eq!(
                        back.map(|it| &it.set["x"]),
                        Some(&self.current),
                        "rule 8: node {node}, {reason}"
                    );
                }
                let told: BTreeSet<String> = flight.told.iter().map(usize::to_string).collect();
                assert!(
                    undo.iter().all(|it| told.contains(&it.node)),
                    "rule 8: {undo:?} beyond {told:?}"
                );
                self.send_orders(undo);
            }
        }
    }

    fn check_time(&self, tick: i64) {
        let Some(flight) = &self.flight else { return };
        let held_up = 8; // the longest row of ends that it misses is shorter, in all schedules so far
        let most = 2 * self.patience + self.rollout.ticks as i64 + held_up;
        let passed = tick - flight.begun;
        assert!(
            passed <= most,
            "rule 9: {passed} ticks of {most}: {flight:?}"
        );
    }

    fn take(&mut self, node: usize, named: i64, now: i64) {
        self.frames += 1;
        let value = self.frames as f32;
        let row = Row {
            node: node.to_string().into(),
            layout: Arc::clone(&self.layout),
            values: vec![value],
        };
        match self.ticks.take(node, named, now, row) {
            Taken::Into(tick) => {
                assert_eq!(tick, named, "rule 11");
                self.open.insert((tick, node), value);
            }
            Taken::Skewed(tick) => {
                assert!((now..=now + 2).contains(&tick), "rule 11: {tick} at {now}");
                self.open.insert((tick, node), value);
            }
            Taken::Late(tick, row) => {
                assert!(tick <= self.closed, "rule 11: {tick} is still open");
                assert_eq!(row.values, [value]);
            }
        }
    }

    fn close(&mut self) {
        let tick = self.closed + 1;
        let closed = self.ticks.close(tick);
        assert_eq!(closed.tick, tick);
        let rows: BTreeMap<usize, f32> = closed
            .rows
            .iter()
            .map(|(node, row)| (*node, row.values[0]))
            .collect();
        let later = self.open.split_off(&(tick + 1, 0));
        let due = std::mem::replace(&mut self.open, later);
        let due: BTreeMap<usize, f32> = due.into_iter().map(|((_, node), it)| (node, it)).collect();
        assert_eq!(rows, due, "rule 11: tick {tick}");
        self.closed = tick;
    }
}
