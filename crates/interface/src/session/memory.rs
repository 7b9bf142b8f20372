//! What a new start of the interface must know, in files of their own: beside the database, for its disk may be full.

use std::time::{Duration, Instant};

use ascar_messaging::options::check_name;
use serde_json::{Value, json};

use super::{Announced, Applied, Session};
use crate::LOG;
use crate::clock::unix_s;
use crate::kill::Kill;
use crate::replay::Job;
use crate::setting::Setting;
use crate::state::{Content, Files, Outcome, read};
use crate::switch::Found;

/// The parts of the state that are the session's.
pub(super) fn parts(rest: &Value) -> Option<(Setting, Option<Announced>)> {
    let part = |key: &str| rest.get(key).cloned();
    let setting = serde_json::from_value(part("setting")?).ok()?;
    let workload = serde_json::from_value(part("workload")?).ok()?;
    Some((setting, workload))
}

/// The state of an earlier version: one file, without generation and checksum.
pub(super) fn former(files: &Files) -> Option<Result<String, String>> {
    let name = files.former().display();
    match read(files.former()) {
        Content::Missing => None,
        Content::Unreadable(why) => Some(Err(format!("{name}: {why}"))),
        Content::Bytes(bytes) => {
            Some(String::from_utf8(bytes).map_err(|_| format!("{name}: is damaged")))
        }
    }
}

impl Session {
    /// What is written beside the switch and the mode.
    pub(crate) fn rest(&self) -> Value {
        json!({"setting": self.setting, "workload": self.workload})
    }

    /// Has what a new start must know written, without waiting for the disk. Returns the draft's number.
    pub(crate) fn remember(&mut self) -> u64 {
        self.unsaved = false;
        self.saved_at = Instant::now();
        let draft = self.switch.draft(&self.rest());
        let number = draft.number;
        self.states.send(draft);
        number
    }

    /// A state was written, or could not be: that is said, once. What waited for it goes on.
    pub(super) fn take_outcome(&mut self, outcome: Outcome) {
        let before = self.switch.fault().map(str::to_owned);
        let number = outcome.number;
        let ended = self.switch.kept(outcome);
        match self.switch.fault() {
            Some(fault) if before.as_deref() != Some(fault) => {
                LOG.line(format_args!("state {fault}"));
            }
            _ => {}
        }
        // It is tried again.
        self.unsaved |= self.switch.fault().is_some();
        if before.is_some() {
            self.note_state();
        }
        if let Some((_, orders)) = self.held.take_if(|it| it.0 <= number) {
            self.send_orders(orders);
        }
        let (told, waiting) = std::mem::take(&mut self.applied)
            .into_iter()
            .partition(|it| it.0 <= number);
        self.applied = waiting;
        let told: Vec<Applied> = told;
        for (_, action, values) in told {
            self.tell_applied(&action, &values);
        }
        if self.switch.is_draft_due() {
            self.remember();
        }
        for one in ended {
            self.answer(one);
        }
    }

    /// Has the session's own database note that it has a state: without one it is then no first start. While a
    /// workload's is open instead, this waits until the session goes back to its own.
    pub(super) fn note_state(&mut self) {
        if self.switch.fault().is_none() {
            self.writer
                .send(Job::HasState(self.config.database.clone()));
        }
    }

    /// Waits until the kill is on disk, or the time is over.
    pub(super) fn await_stored(&mut self, limit: Duration) {
        let end = Instant::now() + limit;
        while self.switch.not_stored().is_some() {
            let left = end.saturating_duration_since(Instant::now());
            match self.states.outcomes.recv_timeout(left) {
                Ok(outcome) => self.take_outcome(outcome),
                Err(_) => return,
            }
        }
    }

    /// Takes up what was found.
    pub(super) fn recall(&mut self, found: &Found) {
        if let Some((setting, workload)) = parts(&found.rest) {
            let (setting, wrong) = setting.within_limits();
            if let Some((count, first)) = wrong {
                LOG.line(format_args!(
                    "{count} entries of the setting are over the limits and left out: {first}"
                ));
            }
            self.setting = setting;
            // A job goes on while the interface is begun anew; its end will be announced.
            let known = workload.filter(|it| check_name("name", &it.name).is_ok());
            if let Some(known) = known {
                self.writer.send(Job::Open(self.database_of(Some(&known))));
                self.workload = Some(known);
            }
        }
        if let Some(damage) = &found.damage {
            let why = format!(
                "the state cannot be read ({damage}): the session is killed until `ascar capes control revive`"
            );
            LOG.line(&why);
            self.audit("interface", "kill", &why, json!({}));
            let kill = self.new_kill(&why);
            self.switch.kill(kill);
            self.setting.restored();
        } else if self.switch.killed() && self.switch.kill.is_none() {
            self.switch.kill = Some(self.new_kill("killed before the interface was started"));
        }
        self.remember();
        // Nothing has begun yet that would wait for the disk as well.
        if let Ok(outcome) = self.states.outcomes.recv() {
            self.take_outcome(outcome);
        }
        if self.switch.fault().is_none() {
            Files::beside(&self.config.database).forget_former();
            self.note_state();
        }
    }

    /// A kill that asks every node that can set something.
    pub(crate) fn new_kill(&mut self, why: &str) -> Kill {
        self.serial += 1;
        let now = unix_s();
        // Another start counts from one again.
        let id = format!("kill-{:x}-{}", (now * 1e6) as u64, self.serial);
        let nodes = self.nodes.all().iter().filter(|node| !node.monitor_only);
        Kill::new(id, why, now, nodes.map(|node| node.name.to_string()))
    }
}
