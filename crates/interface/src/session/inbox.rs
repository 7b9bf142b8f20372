//! What comes from agents, learner and others.

use ascar_messaging::Link;
use ascar_wire::Malformed;

use super::*;
use crate::LOG;
use crate::nodes::{HELLO_VERSION, other_version, version_of_hello};
use crate::standing::{Hearing, Standing};

/// Requests that are taken one after the other.
const WANTS_MAX: usize = 64;

impl Session {
    /// Takes messages until `until`, or until nothing more is there and the time is over. What people and the learner
    /// want goes before what nodes send.
    pub(super) fn listen(&mut self, until: Instant) {
        let mut looked: Option<Instant> = None;
        loop {
            let now = Instant::now();
            if looked.is_none_or(|at| now >= at + CONTROL_EVERY) {
                self.take_wants();
                looked = Some(now);
            }
            if let Some(message) = self.data.receive() {
                self.take(&message);
                // Thousands may come at once; ticks go on all the same.
                if now >= until + LOOK_EVERY {
                    return;
                }
                continue;
            }
            self.take_wants();
            if now >= until {
                return;
            }
            let links: Vec<&Link> = [&self.control, &self.data]
                .into_iter()
                .filter_map(Channel::link)
                .collect();
            if links.len() < 2 {
                // The other one is to be connected.
                return wait(&links, until.min(now + LOOK_EVERY));
            }
            wait(&links, until);
        }
    }

    /// Takes what people and the learner want; no more at once than leaves time for ticks.
    fn take_wants(&mut self) {
        for _ in 0..WANTS_MAX {
            match self.control.receive() {
                Some(message) => self.take(&message),
                None => return,
            }
        }
    }

    pub(super) fn take(&mut self, message: &Message) {
        let Some(rest) = message
            .subject
            .strip_prefix(&self.prefix)
            .and_then(|rest| rest.strip_prefix('.'))
        else {
            return;
        };
        let words: Vec<&str> = rest.split('.').collect();
        match words[..] {
            ["agents", node, what] if check_name("node", node).is_ok() => {
                self.take_of_node(node, what, &message.payload);
            }
            [_, user, ..] if !may_ask(user, message) => self.counters.garbage += 1,
            ["actions", user] => self.take_action(user, message),
            ["history", _] => self.take_history(message),
            ["control", user, op] => self.take_control(user, op, message),
            _ => {}
        }
    }

    /// What a node sends: read, unless it breaks a limit or has broken one.
    fn take_of_node(&mut self, name: &str, what: &str, bytes: &[u8]) {
        let is_hello = what == "hello";
        if !is_hello && !["frames", "results"].contains(&what) {
            return;
        }
        self.counters.frames += u64::from(what == "frames");
        self.counters.frame_bytes += if what == "frames" {
            bytes.len() as u64
        } else {
            0
        };
        let tick = self.tick();
        let Some(place) = self.nodes.place(name) else {
            self.counters.garbage += 1;
            return;
        };
        match self
            .nodes
            .node(place)
            .standing
            .hear(is_hello, bytes.len(), tick)
        {
            Hearing::Read => {}
            Hearing::PassOver => return,
            Hearing::Ask => return self.order(name, &json!({"op": "key"})),
            Hearing::TooMany => return self.cut_off(place, Standing::too_many()),
        }
        let bytes_max = match what {
            "frames" => limits::FRAME_BYTES_MAX,
            _ => limits::MESSAGE_BYTES_MAX,
        };
        let size = format!("bytes of {what}");
        let outcome =
            limits::check_count(&size, bytes.len(), bytes_max).and_then(|()| match what {
                "frames" => self.take_frame(place, bytes, tick),
                "hello" => self.take_hello(place, bytes, tick),
                _ => self.take_result(place, bytes),
            });
        if let Err(reason) = outcome {
            self.cut_off(place, reason);
        }
    }

    /// Listens no more to a node that breaks a limit, for a while; everybody hears of it.
    fn cut_off(&mut self, place: usize, reason: String) {
        self.counters.cut_off += 1;
        let name = Arc::clone(&self.nodes.all()[place].name);
        if self.nodes.cut_off(place, reason.clone(), self.tick()) {
            LOG.line(format_args!(
                "node {name} is cut off: {reason}: look at what its agent sends"
            ));
        }
        self.setting.forget_node(&name, self.checker.knobs());
        self.event(json!({"event": "node", "node": &*name, "state": "cut off", "reason": reason}));
    }

    /// # Errors
    /// Its version, where that is the reason and the node's agent is not known to speak this one.
    fn take_frame(&mut self, place: usize, bytes: &[u8], now: i64) -> Result<(), String> {
        let (received, malformed) = self.nodes.frame(place, bytes, now);
        if malformed.is_some_and(|it| it != Malformed::Lost) {
            self.counters.garbage += 1;
        }
        if let Some(other @ Malformed::Version(_)) = malformed
            && !self.nodes.all()[place].here
        {
            return Err(other.to_string());
        }
        match received {
            Received::Ask(false) => {}
            Received::Ask(true) => {
                self.counters.keys_asked += 1;
                let name = Arc::clone(&self.nodes.all()[place].name);
                self.order(&name, &json!({"op": "key"}));
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
        Ok(())
    }

    /// # Errors
    /// Which limit it breaks.
    fn take_hello(&mut self, place: usize, bytes: &[u8], tick: i64) -> Result<(), String> {
        let Ok(hello) = serde_json::from_slice::<Hello>(bytes) else {
            return self.misunderstood(place, version_of_hello(bytes));
        };
        let name = Arc::clone(&self.nodes.all()[place].name);
        if hello.leaving {
            if let Some(kill) = self.switch.kill.as_mut().filter(|_| !hello.touched) {
                kill.left(&name);
                self.unsaved = true;
            }
            if self.nodes.all()[place].here {
                self.nodes.node(place).here = false;
                self.event(json!({"event": "node", "node": &*name, "state": "gone"}));
            }
            return Ok(());
        }
        if hello.version != HELLO_VERSION {
            return self.misunderstood(place, hello.version);
        }
        let (knobs, touched) = (hello.knobs.clone(), hello.touched);
        self.nodes.hello(place, hello, tick)?;
        let behind = self
            .setting
            .learn(&name, &knobs, touched, self.checker.knobs());
        // Thousands may say hello at once.
        self.unsaved = true;
        let monitor_only = self.nodes.all()[place].monitor_only;
        if let Some(kill) = &mut self.switch.kill
            && kill.heard(&name, touched, monitor_only)
        {
            let order = json!({"op": "restore", "id": kill.id});
            self.order(&name, &order);
        }
        // What is on its way has its own answers.
        let may_set = self.switch.mode() != Mode::Observe
            && !self.switch.fallback.killed()
            && !self.nodes.all()[place].monitor_only;
        if !behind.is_empty() && may_set && self.relay.busy().is_none() {
            self.serial += 1;
            let order = Order {
                node: name.to_string(),
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
        Ok(())
    }

    /// Counts a hello that is not understood.
    ///
    /// # Errors
    /// Its version, where that is the reason. An agent that is at work here speaks this one: another comes of somebody else.
    fn misunderstood(&mut self, place: usize, version: u64) -> Result<(), String> {
        self.counters.garbage += 1;
        if version == HELLO_VERSION || self.nodes.all()[place].here {
            return Ok(());
        }
        Err(other_version(version))
    }

    /// # Errors
    /// Which limit it breaks.
    fn take_result(&mut self, place: usize, bytes: &[u8]) -> Result<(), String> {
        let Ok(result) = serde_json::from_slice::<Value>(bytes) else {
            self.counters.garbage += 1;
            return Ok(());
        };
        let id = result["id"].as_str().unwrap_or_default();
        let name = Arc::clone(&self.nodes.all()[place].name);
        // The values are taken into the setting; a report of what was put back is not.
        if let Value::Object(found) = &result["ok"]
            && self.relay.awaits(&name, id)
            && let Err(reason) = limits::check_values(found)
        {
            let end = self
                .relay
                .answered(&name, id, Err(reason.clone()), self.tick());
            self.finish(end);
            return Err(reason);
        }
        let answer = match (&result["ok"], &result["error"]) {
            (Value::Object(found), _) => Ok(found.clone()),
            (_, Value::String(error)) => Err(error.clone()),
            _ => {
                self.counters.garbage += 1;
                return Ok(());
            }
        };
        if let Some(kill) = &mut self.switch.kill {
            let fault = answer.as_ref().err().map(String::as_str);
            self.unsaved |= kill.answered(&name, id, fault);
        }
        let end = self.relay.answered(&name, id, answer, self.tick());
        self.finish(end);
        Ok(())
    }

    pub(super) fn take_action(&mut self, user: &str, message: &Message) {
        let parsed = (message.payload.len() <= ACTION_BYTES_MAX)
            .then(|| serde_json::from_slice::<Action>(&message.payload));
        let verdict = match parsed {
            Some(Ok(mut action)) => {
                user.clone_into(&mut action.actor);
                self.judge(action, false)
            }
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

    pub(super) fn take_history(&mut self, message: &Message) {
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
            self.data.send(reply, &payload);
        }
    }
}

/// Whether a request is heard. The server lets a user publish only under its own name; the reply goes to an inbox of
/// that user and nowhere else, for the interface may publish wherever it is told to.
pub(super) fn may_ask(user: &str, message: &Message) -> bool {
    let is_own_inbox = |reply: &String| {
        let token = reply
            .strip_prefix("_INBOX.")
            .and_then(|rest| rest.strip_prefix(user))
            .and_then(|rest| rest.strip_prefix('.'));
        reply.len() <= REPLY_BYTES_MAX
            && token.is_some_and(|it| it.split('.').all(|it| check_name("reply", it).is_ok()))
    };
    check_name("user", user).is_ok() && message.reply.as_ref().is_none_or(is_own_inbox)
}
