//! What is published: ticks, orders, events, our own metrics.

use super::*;

/// With a beat so many nodes are asked by name; where more have not confirmed a kill, all are.
const ASKED_MAX: usize = 32;

/// Values of the setting in force that are shown as metrics of our own.
const KEYS_SHOWN_MAX: usize = 10_000;

impl Session {
    pub(super) fn send_orders(&mut self, orders: Vec<Order>) {
        for order in orders {
            self.order(
                &order.node,
                &json!({"op": "set", "id": order.id, "set": order.set}),
            );
        }
    }

    pub(super) fn publish_tick(&mut self, record: &Record, stored: bool) {
        let number = record.tick.tick;
        let setting = self.settings.remove(&number);
        let (data, control) = (self.data.link().is_some(), self.control.link().is_some());
        if !data && !control {
            return;
        }
        let setting = setting.unwrap_or_else(|| self.told.pieces());
        let rows = &record.tick.rows;
        let is_missing = |it: &(usize, &crate::nodes::Node)| {
            !rows.contains_key(&it.0)
                && it.1.seen_tick > number - FORGOTTEN_TICKS
                && it.1.seen_tick != i64::MIN
        };
        let common = live::Common {
            tick: number,
            stored,
            missing: self
                .nodes
                .all()
                .iter()
                .enumerate()
                .filter(is_missing)
                .map(|it| &*it.1.name)
                .collect(),
            cut_off: self
                .nodes
                .all()
                .iter()
                .filter_map(|node| Some((&*node.name, node.standing.reason()?)))
                .collect(),
            metrics: record
                .metrics
                .iter()
                .map(|(name, value)| (name.to_string(), json!(value)))
                .collect(),
            setting: self.told.for_tick(&setting, number),
            mode: json!(self.switch.mode()),
            holding: self.switch.fallback.reason(number).map(str::to_owned),
            workload: self.workload.as_ref().map(|it| it.name.as_str()),
        };
        let messages = live::messages(&common, rows, self.data.payload_bytes_max());
        // What was told before stays before it.
        self.control.flush(CONTROL_PATIENCE);
        // A flood may end the connection that it comes on.
        let channel = if data {
            &mut self.data
        } else {
            &mut self.control
        };
        let subject = format!("{}.ticks", self.prefix);
        for message in messages {
            channel.send(&subject, message.as_bytes());
        }
    }

    pub(super) fn beat(&mut self) {
        if Instant::now() >= self.beat_at {
            self.beat_at = Instant::now() + BEAT_EVERY;
            let tick = self.tick();
            let killed = self.switch.fallback.killed();
            self.order_all(&json!({"op": "beat", "tick": tick, "killed": killed}));
            self.ask_again();
        }
    }

    /// Messages may be lost, and orders may overtake each other: whoever has not confirmed a kill is asked again.
    fn ask_again(&mut self) {
        let Some(kill) = &self.switch.kill else {
            return;
        };
        let order = json!({"op": "restore", "id": kill.id});
        let nodes: Vec<String> = kill
            .unconfirmed()
            .take(ASKED_MAX + 1)
            .map(str::to_owned)
            .collect();
        if nodes.len() > ASKED_MAX {
            return self.order_all(&order);
        }
        for node in nodes {
            self.order(&node, &order);
        }
    }

    pub(crate) fn audit(&mut self, actor: &str, what: &str, why: &str, detail: Value) {
        let short = |text: &str| text.chars().take(500).collect::<String>();
        self.writer.send(Job::Audit {
            tick: self.tick(),
            actor: short(actor),
            what: short(what),
            why: short(why),
            detail: detail.to_string(),
        });
    }

    pub(crate) fn event(&mut self, mut event: Value) {
        event["tick"] = json!(self.tick());
        self.publish("events", &event);
    }

    pub(super) fn order(&mut self, node: &str, order: &Value) {
        self.publish(&format!("nodes.{node}"), order);
    }

    pub(super) fn order_all(&mut self, order: &Value) {
        self.publish("nodes.all", order);
    }

    pub(super) fn publish(&mut self, what: &str, message: &Value) {
        let subject = format!("{}.{what}", self.prefix);
        self.control.send(&subject, message.to_string().as_bytes());
    }

    pub(crate) fn reply(&mut self, message: &Message, answer: &Value) {
        self.reply_text(message, &answer.to_string());
    }

    pub(crate) fn reply_text(&mut self, message: &Message, answer: &str) {
        if let Some(subject) = &message.reply {
            self.control.send(subject, answer.as_bytes());
        }
    }

    /// The longest reply in one message.
    pub(crate) fn payload_bytes_max(&self) -> usize {
        self.control.payload_bytes_max()
    }

    pub(super) fn write_page(&mut self) {
        let Some(page) = &self.page else {
            return;
        };
        let counters = &self.counters;
        let mut text = Text::default();
        let here = self.nodes.all().iter().filter(|node| node.here).count();
        for (name, kind, help, value) in [
            (
                "ascar_capes_nodes",
                "gauge",
                "Agents that send now",
                here as f64,
            ),
            (
                "ascar_capes_frames_total",
                "counter",
                "Frames received",
                counters.frames as f64,
            ),
            (
                "ascar_capes_frame_bytes_total",
                "counter",
                "Bytes of frames received",
                counters.frame_bytes as f64,
            ),
            (
                "ascar_capes_garbage_total",
                "counter",
                "Messages that were none",
                counters.garbage as f64,
            ),
            (
                "ascar_capes_late_total",
                "counter",
                "Frames that came after their tick was closed",
                counters.late as f64,
            ),
            (
                "ascar_capes_skewed_total",
                "counter",
                "Frames of nodes whose clock is wrong",
                counters.skewed as f64,
            ),
            (
                "ascar_capes_rows_stored_total",
                "counter",
                "Node ticks on disk",
                counters.rows_stored as f64,
            ),
            (
                "ascar_capes_ticks_stored_total",
                "counter",
                "Ticks on disk",
                counters.ticks_stored as f64,
            ),
            (
                "ascar_capes_ticks_lost_total",
                "counter",
                "Ticks given up as the disk took nothing",
                counters.ticks_lost as f64,
            ),
            (
                "ascar_capes_key_frames_asked_total",
                "counter",
                "Key frames asked for",
                counters.keys_asked as f64,
            ),
            (
                "ascar_capes_holding",
                "gauge",
                "1 when nothing may be changed",
                f64::from(u8::from(
                    self.switch.fallback.state(self.tick()) != State::Tuning,
                )),
            ),
        ] {
            text.one(name, kind, help, value);
        }
        let verdicts = counters
            .verdicts
            .iter()
            .map(|(word, count)| (*word, *count as f64));
        text.many(
            "ascar_capes_actions_total",
            "counter",
            "Verdicts on actions",
            "verdict",
            verdicts,
        );
        let refusals = counters
            .refusals
            .iter()
            .map(|(word, count)| (word.as_str(), *count as f64));
        text.many(
            "ascar_capes_refusals_total",
            "counter",
            "Refused actions",
            "reason",
            refusals,
        );
        let metrics = self
            .metrics_now
            .iter()
            .filter(|it| it.1.is_finite())
            .map(|(name, value)| (name.as_str(), *value));
        text.many(
            "ascar_capes_metric",
            "gauge",
            "The last tick's metrics",
            "name",
            metrics,
        );
        let knobs = self.setting.current().iter().take(KEYS_SHOWN_MAX);
        let knobs = knobs.filter_map(|(key, value)| Some((key.as_str(), value.as_f64()?)));
        text.many(
            "ascar_capes_knob",
            "gauge",
            "The setting in force",
            "key",
            knobs,
        );
        *page.lock().unwrap_or_else(PoisonError::into_inner) = text.whole();
    }
}
