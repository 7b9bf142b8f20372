//! What people ask of the switch: another mode, the end of a kill. It is answered when it is on disk.

use super::*;
use crate::switch::{Deed, Ended};

/// Most requests that wait for the disk.
const ASKED_MAX: usize = 64;

/// A request that is not answered yet.
pub(super) struct Asked {
    user: String,
    why: String,
    /// Where the answer goes.
    reply: Option<String>,
}

impl Session {
    /// Begins what a user wants of the switch.
    ///
    /// # Errors
    /// Why it is not begun; otherwise it is answered later.
    pub(crate) fn ask_switch(
        &mut self,
        user: &str,
        request: &Value,
        reply: Option<&String>,
    ) -> Result<(), String> {
        let deed = match request["op"].as_str() {
            Some("revive") => Deed::Revive,
            _ => Deed::Mode(
                serde_json::from_value(request["mode"].clone()).map_err(|_| {
                    format!(
                        "mode = {}: allowed are observe, approve, automatic",
                        request["mode"]
                    )
                })?,
            ),
        };
        if self.asked.len() >= ASKED_MAX {
            return Err(format!(
                "busy: {ASKED_MAX} requests wait until the state is on the disk"
            ));
        }
        let ticket = self.switch.want(deed);
        let asked = Asked {
            user: user.to_owned(),
            why: request["why"].as_str().unwrap_or_default().to_owned(),
            reply: reply.cloned(),
        };
        self.asked.insert(ticket, asked);
        self.drop_waiting();
        self.remember();
        Ok(())
    }

    /// Answers a request whose deed has ended.
    pub(super) fn answer(&mut self, ended: Ended) {
        let Ended { ticket, deed, done } = ended;
        let Some(Asked { user, why, reply }) = self.asked.remove(&ticket) else {
            return;
        };
        let (op, detail) = match deed {
            Deed::Mode(mode) => ("mode", json!({"mode": mode})),
            Deed::Revive => ("revive", json!({})),
        };
        let answer = match (done, deed) {
            (Ok(()), _) => {
                self.drop_waiting();
                if deed == Deed::Revive {
                    // Before anything is set again: an agent puts back what is set while it takes the session for killed.
                    self.beat_at = Instant::now();
                    self.beat();
                }
                let mut event = detail.clone();
                event["event"] = json!(op);
                self.event(event);
                self.audit(&user, op, &why, detail.clone());
                json!({"ok": detail})
            }
            (Err(error), Deed::Mode(mode)) => {
                json!({"error": format!("mode = {:?}: state {error}", json!(mode))})
            }
            (Err(error), Deed::Revive) => {
                json!({"error": format!("the session stays killed: state {error}")})
            }
        };
        if let Some(subject) = reply {
            self.control.send(&subject, answer.to_string().as_bytes());
        }
    }

    /// Only in the mode `approve` does an action wait.
    fn drop_waiting(&mut self) {
        if self.switch.mode() != Mode::Approve {
            self.waiting.clear();
        }
    }
}
