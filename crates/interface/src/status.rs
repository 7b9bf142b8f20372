//! How the interface stands: the reply to `status`, in as many messages as it takes.

use ascar_guard::Side;
use ascar_messaging::Message;
use serde_json::{Value, json};

use crate::nodes::Node;
use crate::pieces::{of_list, of_map, together};
use crate::session::Session;

/// Of what a message may have, what one piece of each of the five long fields has at most; the rest is for the others.
const PIECES_A_MESSAGE: usize = 8;

impl Session {
    /// Sends it, to whoever wants a reply.
    pub(crate) fn reply_with_status(&mut self, message: &Message) {
        let texts = self.status(self.payload_bytes_max());
        let parts = texts.len();
        for (part, text) in texts.iter().enumerate() {
            let numbered = match parts {
                1 => String::new(),
                _ => format!(",\"part\":{part},\"parts\":{parts}"),
            };
            self.reply_text(message, &format!("{{\"ok\":{text}{numbered}}}"));
        }
    }

    /// Objects that together are the status.
    pub(crate) fn status(&self, bytes_max: usize) -> Vec<String> {
        let tick = self.tick();
        let piece = bytes_max / PIECES_A_MESSAGE;
        let nodes = self.nodes.all().iter();
        let fields = [
            (
                "nodes",
                of_list(nodes.map(|node| state_of(node, tick)), piece),
            ),
            ("setting", of_map(self.setting.current(), piece)),
            ("defaults", of_map(self.setting.initial(), piece)),
            ("changed", of_list(self.setting.changed(), piece)),
            ("waiting", of_list(self.waiting.values().take(100), piece)),
        ];
        together(&self.status_head(tick), &fields)
    }

    /// All that is short.
    fn status_head(&self, tick: i64) -> Value {
        let knobs: Vec<Value> = self
            .checker
            .knobs()
            .iter()
            .map(|knob| {
                json!({
                    "name": knob.name, "scope": knob.scope.word(), "minimum": knob.minimum, "maximum": knob.maximum,
                    "choices": knob.choices, "step": knob.step, "change_max": knob.change_max,
                    "interval_ticks": knob.interval_ticks,
                })
            })
            .collect();
        let limits = |side: Side| -> Vec<Value> {
            let limits = self.service_level.limits(side);
            limits
                .map(|it| json!({"metric": it.metric, side.keys().1: it.value}))
                .collect()
        };
        let counters = &self.counters;
        json!({
            "version": 1, "tick": tick, "interval_s": self.config.interval_s, "mode": self.switch.mode(), "killed": self.switch.fallback.killed(), "kill": self.standing(),
            "holding": self.switch.fallback.reason_unless_killed(tick), "workload": self.workload.as_ref().map(|it| &it.name), "database": self.database,
            "node_count": self.nodes.all().len(), "knobs": knobs, "floors": limits(Side::Floor), "ceilings": limits(Side::Ceiling),
            "metrics": self.metrics_now, "on_its_way": self.relay.status(),
            "counters": {
                "frames": counters.frames, "frame_bytes": counters.frame_bytes, "garbage": counters.garbage,
                "cut_off": counters.cut_off, "late": counters.late, "skewed": counters.skewed,
                "rows_stored": counters.rows_stored, "ticks_stored": counters.ticks_stored,
                "ticks_failed": counters.ticks_failed, "ticks_lost": counters.ticks_lost,
                "verdicts": counters.verdicts, "refusals": counters.refusals,
            },
        })
    }
}

fn state_of(node: &Node, tick: i64) -> Value {
    let silent_ticks = (node.seen_tick != i64::MIN).then(|| tick - node.seen_tick);
    json!({
        "node": &*node.name, "here": node.here, "monitor_only": node.monitor_only, "blocked": node.blocked, "silent_ticks": silent_ticks,
        "indicators": node.layout.as_ref().map_or(0, |layout| layout.names.len()), "cut_off": node.standing.reason(),
    })
}
