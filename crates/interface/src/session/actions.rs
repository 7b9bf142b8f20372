//! Judging actions, carrying them out, putting them back.

use super::*;
use crate::LOG;
use crate::clock::unix_s;
use crate::kill::Reach;

/// How long the orders of a kill may take to leave.
const FLUSH: Duration = Duration::from_millis(500);
/// How long whoever asked for a kill waits to hear that a new start knows of it; ticks are due soon.
const STORE: Duration = Duration::from_millis(300);

impl Session {
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

    pub(super) fn try_judge(
        &self,
        action: &Action,
        approved: bool,
        tick: i64,
    ) -> Result<&'static str, String> {
        action.check()?;
        if action.set.is_empty() {
            return Ok("accepted");
        }
        match (
            self.switch.fallback.state(tick),
            self.switch.fallback.reason(tick),
        ) {
            (State::Killed, _) => {
                return Err("killed: the kill switch is on: revive first".to_owned());
            }
            (_, Some(why)) => return Err(why.to_owned()),
            (_, None) => {}
        }
        if let Some(id) = self.relay.busy() {
            return Err(format!("busy: {id} is on its way"));
        }
        self.checker.check(&action.set, &self.situation(tick))?;
        match self.switch.mode() {
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

    pub(super) fn situation(&self, tick: i64) -> Situation<'_> {
        Situation {
            tick,
            current: self.setting.current(),
            last_change: &self.last_change,
            metrics: &self.metrics_now,
            nodes: &self.nodes,
            local: local(),
        }
    }

    pub(super) fn begin(&mut self, action: Action, tick: i64, at_once: bool) {
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
        let number = self.remember();
        let orders = self
            .relay
            .begin(action, targets, self.setting.current(), tick, at_once);
        if at_once {
            self.send_orders(orders);
        } else {
            // A new start must know what nodes were asked to set.
            self.held = Some((number, orders));
        }
    }

    pub(super) fn finish(&mut self, end: Option<End>) {
        let tick = self.tick();
        match end {
            None => {}
            Some(End::Applied(action, values)) => {
                if values.is_empty() {
                    return self.tell_applied(&action, &values);
                }
                self.setting.take(&values);
                self.service_level.changed(tick);
                let number = self.remember();
                self.applied.push((number, action, values));
            }
            Some(End::Failed(action, reason, undo)) => {
                self.held = None;
                self.audit("interface", "failed", &reason, json!({"id": action.id}));
                self.record(&action, "failed", Some(reason.clone()), tick);
                self.publish(
                    "outcomes",
                    &verdict(&action.id, tick, "failed", Some(&reason), &action.set),
                );
                if action.falls_back {
                    // Back to what was good it goes, as soon as the silent ones are heard again.
                    self.setting.take(&action.set);
                    self.remember();
                } else {
                    self.send_orders(undo);
                }
            }
        }
    }

    /// Says that an action is in force: a new start knows it by then, unless the disk refused it.
    pub(super) fn tell_applied(&mut self, action: &Action, values: &Values) {
        let tick = self.tick();
        self.record(action, "applied", None, tick);
        self.publish(
            "outcomes",
            &verdict(&action.id, tick, "applied", None, values),
        );
    }

    /// Says no.
    pub(crate) fn refuse(&mut self, action: &Action, reason: &str) -> Value {
        let tick = self.tick();
        let told = verdict(&action.id, tick, "refused", Some(reason), &action.set);
        self.record(action, "refused", Some(reason.to_owned()), tick);
        self.publish("outcomes", &told);
        told
    }

    /// A floor or a ceiling was violated: the last good setting comes back, or what was in force before the session.
    pub(super) fn fall_back(&mut self, tick: i64, violation: &Violation) {
        let why = violation.to_string();
        LOG.line(format_args!("{why}: back to the last good setting"));
        let Violation { limit, mean } = violation;
        let (_, bound) = limit.side.keys();
        self.event(
            json!({"event": "breach", "metric": limit.metric, "mean": mean, bound: limit.value}),
        );
        let violated = Event::Violated {
            tick,
            hold_ticks: limit.hold_ticks,
            why: why.clone(),
        };
        let restore = self.switch.fallback.on(violated);
        let end = self.relay.fail(format!("breach: {why}"));
        self.finish(end);
        if restore == Restore::LastGood {
            self.restore_last_good(why);
        }
    }

    fn restore_last_good(&mut self, why: String) {
        let last_good = self.service_level.last_good();
        let wanted = last_good.unwrap_or(self.setting.initial()).clone();
        let set = self.setting.towards(&wanted);
        if set.is_empty() {
            return;
        }
        self.serial += 1;
        let tick = self.tick();
        let action = Action {
            version: 1,
            id: format!("fallback-{tick}-{}", self.serial),
            tick,
            set,
            why,
            actor: "interface".to_owned(),
            falls_back: true,
        };
        self.record(&action, "accepted", None, tick);
        self.begin(action, tick, true);
    }

    /// Puts every knob back, everywhere.
    pub(crate) fn restore_all(&mut self, why: &str) {
        self.serial += 1;
        self.restore_with(why, &format!("restore-{}", self.serial));
        self.remember();
    }

    fn restore_with(&mut self, why: &str, id: &str) {
        let end = self.relay.fail(why.to_owned());
        self.finish(end);
        self.order_all(&json!({"op": "restore", "id": id}));
        self.setting.restored();
        self.service_level.changed(self.tick());
    }

    /// The kill switch: every node is asked to put everything back, whatever the disk does.
    pub(crate) fn kill(&mut self, why: &str) {
        self.waiting.clear();
        let kill = self.new_kill(why);
        let id = kill.id.clone();
        self.switch.kill(kill);
        self.restore_with("killed", &id);
        self.remember();
        self.control.flush(FLUSH);
        self.await_stored(STORE);
    }

    /// How far the kill has come; none where the session is not killed.
    pub(crate) fn standing(&self) -> Value {
        let tick = self.tick();
        let reach = |name: &str| match self.nodes.find(name) {
            None => Reach {
                here: false,
                silent_ticks: None,
            },
            Some(node) => Reach {
                here: node.here,
                silent_ticks: (node.seen_tick != i64::MIN).then(|| tick - node.seen_tick),
            },
        };
        let mut standing = self
            .switch
            .kill
            .as_ref()
            .map_or(Value::Null, |kill| kill.standing(unix_s(), reach));
        if let (Some(why), Some(fields)) = (self.switch.not_stored(), standing.as_object_mut()) {
            fields.insert("not_stored".to_owned(), json!(why));
        }
        standing
    }

    pub(super) fn record(
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
}
