//! What comes from agents, learner and others.

use super::*;

impl Session {
    /// Takes messages until `until`, or until nothing more is there and the time is over.
    pub(super) fn listen(&mut self, until: Instant) {
        loop {
            let Some(link) = &mut self.link else {
                std::thread::sleep(
                    until
                        .saturating_duration_since(Instant::now())
                        .min(LOOK_EVERY),
                );
                return;
            };
            match link.receive(until) {
                Ok(Some(message)) => self.take(&message),
                Ok(None) => return,
                Err(fault) => return self.lose(&fault),
            }
            // Thousands may come at once; ticks go on all the same.
            if Instant::now() >= until + LOOK_EVERY {
                return;
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
        match rest {
            "actions" => self.take_action(message),
            "history" => self.take_history(message),
            "control" => self.take_control(message),
            _ => {
                let mut words = rest.split('.');
                if let (Some("agents"), Some(node), Some(what), None) =
                    (words.next(), words.next(), words.next(), words.next())
                    && check_name("node", node).is_ok()
                {
                    match what {
                        "frames" => self.take_frame(node, &message.payload),
                        "hello" => self.take_hello(node, &message.payload),
                        "results" => self.take_result(node, &message.payload),
                        _ => {}
                    }
                }
            }
        }
    }

    pub(super) fn take_frame(&mut self, name: &str, bytes: &[u8]) {
        self.counters.frames += 1;
        self.counters.frame_bytes += bytes.len() as u64;
        let now = self.tick();
        let Some(place) = self.nodes.place(name) else {
            self.counters.garbage += 1;
            return;
        };
        let (received, malformed) = self.nodes.frame(place, bytes, now);
        if malformed.is_some_and(|it| it != ascar_wire::Malformed::Lost) {
            self.counters.garbage += 1;
        }
        match received {
            Received::Ask(false) => {}
            Received::Ask(true) => {
                self.counters.keys_asked += 1;
                self.order(name, &json!({"op": "key"}));
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
    }

    pub(super) fn take_hello(&mut self, name: &str, bytes: &[u8]) {
        let parsed =
            (bytes.len() <= MESSAGE_BYTES_MAX).then(|| serde_json::from_slice::<Hello>(bytes));
        let (Some(Ok(hello)), Some(place)) = (parsed, self.nodes.place(name)) else {
            self.counters.garbage += 1;
            return;
        };
        if hello.leaving {
            if let Some(kill) = self.switch.kill.as_mut().filter(|_| !hello.touched) {
                kill.left(name);
                self.unsaved = true;
            }
            if self.nodes.all()[place].here {
                self.nodes.node(place).here = false;
                self.event(json!({"event": "node", "node": name, "state": "gone"}));
            }
            return;
        }
        let (knobs, touched) = (hello.knobs.clone(), hello.touched);
        if self.nodes.hello(place, hello).is_err() {
            self.counters.garbage += 1;
            return;
        }
        let behind = self
            .setting
            .learn(name, &knobs, touched, self.checker.knobs());
        // Thousands may say hello at once.
        self.unsaved = true;
        let monitor_only = self.nodes.all()[place].monitor_only;
        if let Some(kill) = &mut self.switch.kill
            && kill.heard(name, touched, monitor_only)
        {
            let order = json!({"op": "restore", "id": kill.id});
            self.order(name, &order);
        }
        // What is on its way has its own answers.
        let may_set = self.switch.mode() != Mode::Observe
            && !self.switch.fallback.killed()
            && !self.nodes.all()[place].monitor_only;
        if !behind.is_empty() && may_set && self.relay.busy().is_none() {
            self.serial += 1;
            let order = Order {
                node: name.to_owned(),
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
    }

    pub(super) fn take_result(&mut self, name: &str, bytes: &[u8]) {
        let parsed =
            (bytes.len() <= MESSAGE_BYTES_MAX).then(|| serde_json::from_slice::<Value>(bytes));
        let Some(Ok(result)) = parsed else {
            self.counters.garbage += 1;
            return;
        };
        let id = result["id"].as_str().unwrap_or_default();
        let answer = match (&result["ok"], &result["error"]) {
            (Value::Object(found), _) => Ok(found.clone()),
            (_, Value::String(error)) => Err(error.clone()),
            _ => {
                self.counters.garbage += 1;
                return;
            }
        };
        if let Some(kill) = &mut self.switch.kill {
            let fault = answer.as_ref().err().map(String::as_str);
            self.unsaved |= kill.answered(name, id, fault);
        }
        let end = self.relay.answered(name, id, answer, self.tick());
        self.finish(end);
    }

    pub(super) fn take_action(&mut self, message: &Message) {
        let parsed = (message.payload.len() <= MESSAGE_BYTES_MAX)
            .then(|| serde_json::from_slice::<Action>(&message.payload));
        let verdict = match parsed {
            Some(Ok(action)) => self.judge(action, false),
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
            self.send(reply, &payload);
        }
    }
}
