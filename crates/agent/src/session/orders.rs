//! What the interface tells an agent to do, and the answers.

use ascar_messaging::Message;
use serde_json::{Value, json};

use super::Session;
use crate::controllers::worker::Request;
use crate::lease;

/// Longest message that is read.
const MESSAGE_BYTES_MAX: usize = 256 * 1024;
/// What an order is refused with.
pub(super) const BUSY: &str = "busy: the controllers of this node do not answer";

impl Session {
    /// Does what the interface says. What is not understood is passed over: a newer interface may say more.
    pub(super) fn obey(&mut self, message: &Message) {
        if message.payload.len() > MESSAGE_BYTES_MAX {
            return;
        }
        let Ok(order) = serde_json::from_slice::<Value>(&message.payload) else {
            return;
        };
        let id = order["id"].as_str().unwrap_or_default();
        let op = order["op"].as_str();
        // Others do not say whether the session is killed, and extend no lease.
        if matches!(op, Some("set" | "restore")) {
            self.contact.heard(lease::now());
            self.lease.extend(self.contact.lease());
        }
        match op {
            Some("beat") => {
                let killed = order["killed"].as_bool().unwrap_or(false);
                self.contact.beat(lease::now(), killed);
                self.watch();
            }
            Some("hello" | "key") => self.wants_hello = true,
            Some("set") => {
                if let Err(fault) = self.set(id, &order["set"]) {
                    self.answer(id, Err(fault));
                }
            }
            Some("restore") => {
                self.contact.restores(lease::now());
                if !self.worker.ask(Request::Restore(Some(id.to_owned()))) {
                    self.answer(id, Err(BUSY.to_owned()));
                }
            }
            _ => {}
        }
    }

    fn set(&mut self, id: &str, settings: &Value) -> Result<(), String> {
        let settings = settings.as_object().ok_or("set: is missing")?;
        if self.config.monitor_only {
            return Err(
                "this node is only monitored: monitor_only = true in its agent's file".to_owned(),
            );
        }
        self.contact.sets();
        let request = Request::Set(id.to_owned(), settings.clone());
        self.worker
            .ask(request)
            .then_some(())
            .ok_or(BUSY.to_owned())
    }

    pub(super) fn answer(&mut self, id: &str, outcome: Result<Value, String>) {
        let answer = match outcome {
            Ok(value) => json!({"id": id, "ok": value}),
            Err(error) => json!({"id": id, "error": error}),
        };
        self.send("results", answer.to_string().as_bytes());
    }
}
