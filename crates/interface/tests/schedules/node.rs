//! A node of a schedule: an agent with the daemons' dead man's switch, its controllers, and the holder of its lease.

use std::time::Duration;

use ascar_agent::contact::{Contact, Step};
use ascar_agent::lease::Term;

use crate::world::{PATIENCE, RESTORE, TICK};

/// A request to a node's controllers.
#[derive(Clone, Debug)]
pub enum Request {
    Set,
    Restore(Option<String>),
}

/// A running agent.
pub struct Agent {
    pub contact: Contact,
    pub queue: Vec<Request>,
}

/// A node.
pub struct Node {
    /// Of the agent's process; what was meant for an earlier one is lost.
    pub run: u32,
    pub agent: Option<Agent>,
    pub stopped_until: u64,
    pub hangs_until: u64,
    term: Term,
    /// The series of the controller that runs.
    holder: Option<u64>,
    /// Its input has ended: when everything is back.
    back_at: Option<u64>,
    pub is_changed: bool,
    pub changed_at: u64,
    pub restored_at: u64,
}

pub fn time(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

impl Node {
    pub fn new() -> Self {
        let term = Term {
            series: 0,
            until: Duration::ZERO,
        };
        Self {
            run: 0,
            agent: None,
            stopped_until: 0,
            hangs_until: 0,
            term,
            holder: None,
            back_at: None,
            is_changed: false,
            changed_at: 0,
            restored_at: 0,
        }
    }

    /// Starts an agent, where the controller of the one before has ended.
    pub fn start(&mut self, now: u64) -> bool {
        if self.agent.is_some() || self.holder.is_some() {
            return false;
        }
        self.run += 1;
        let contact = Contact::new(time(PATIENCE), time(TICK), time(now));
        self.term.until = contact.lease();
        self.agent = Some(Agent {
            contact,
            queue: Vec::new(),
        });
        true
    }

    /// Hands a request to the controllers. Returns whether they were idle.
    pub fn ask(&mut self, request: Request, now: u64) -> bool {
        let Some(agent) = &mut self.agent else {
            return false;
        };
        match request {
            Request::Set => agent.contact.sets(),
            Request::Restore(_) => agent.contact.restores(time(now)),
        }
        agent.queue.push(request);
        agent.queue.len() == 1
    }

    /// The interface was heard; `killed`: what it says of that.
    pub fn hear(&mut self, killed: Option<bool>, now: u64) {
        if let Some(agent) = &mut self.agent {
            match killed {
                Some(killed) => agent.contact.beat(time(now), killed),
                None => agent.contact.heard(time(now)),
            }
            self.term.until = agent.contact.lease();
        }
    }

    /// The dead man's switch. Returns whether the controllers are to put everything back.
    pub fn watch(&mut self, now: u64) -> bool {
        let Some(agent) = &mut self.agent else {
            return false;
        };
        let step = agent.contact.due(time(now));
        if step == Some(Step::End) {
            self.term.series += 1;
        }
        self.term.until = agent.contact.lease();
        step == Some(Step::Restore)
    }

    /// When the controllers can go on, where they cannot now.
    pub fn blocked_until(&self, now: u64) -> Option<u64> {
        let until = self.hangs_until.max(self.back_at.unwrap_or(0));
        (until > now || self.back_at.is_some()).then_some(until.max(now + 1))
    }

    /// The controllers do the next request. Returns the order that is answered.
    pub fn work(&mut self, now: u64) -> Option<String> {
        let agent = self.agent.as_mut().filter(|it| !it.queue.is_empty())?;
        let mut answered = None;
        match agent.queue.remove(0) {
            Request::Set => {
                self.holder = Some(self.term.series);
                if !self.is_changed {
                    self.changed_at = now;
                }
                self.is_changed = true;
            }
            Request::Restore(id) => {
                self.is_changed = false;
                self.restored_at = now;
                answered = id;
            }
        }
        if agent.queue.is_empty() {
            agent.contact.settled(self.is_changed, time(now));
        }
        answered
    }

    /// The holder looks at the lease, and whether its agent is there.
    pub fn look(&mut self, now: u64) {
        if let Some(at) = self.back_at.filter(|at| *at <= now) {
            self.back_at = None;
            self.holder = None;
            self.is_changed = false;
            self.restored_at = at;
        }
        if let Some(series) = self.holder.filter(|_| self.back_at.is_none())
            && (self.agent.is_none() || self.term.left(series, time(now)).is_zero())
        {
            self.back_at = Some(now + RESTORE);
        }
    }
}
