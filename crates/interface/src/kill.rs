//! A pull of the kill switch: which nodes were asked to put everything back, and which have confirmed it. Pure.
//!
//! A node is *asked* until it answers the order of this kill, by its id, that every knob is back. A node that has said
//! before the kill that nothing is changed has not confirmed it: an earlier order may still be on its way to it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Most nodes that are named in an answer.
const NAMED_MAX: usize = 100;

/// One pull of the switch.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Kill {
    /// Of the order that nodes answer; new for each pull.
    pub id: String,
    /// Why, for people.
    pub why: String,
    /// When.
    pub since_unix_s: f64,
    /// Those that have not confirmed it, and what they answered instead.
    unconfirmed: BTreeMap<String, Option<String>>,
    #[serde(skip)]
    confirmed: BTreeSet<String>,
}

/// Whether a node can be heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// It sends now.
    pub here: bool,
    /// Ticks since it was last heard; none if it never was.
    pub silent_ticks: Option<i64>,
}

impl Kill {
    /// Asks these nodes.
    pub fn new(id: String, why: &str, unix_s: f64, nodes: impl Iterator<Item = String>) -> Self {
        Self {
            id,
            why: why.chars().take(500).collect(),
            since_unix_s: unix_s,
            unconfirmed: nodes.map(|node| (node, None)).collect(),
            confirmed: BTreeSet::new(),
        }
    }

    /// A node says hello. Returns whether it is to be asked.
    pub fn heard(&mut self, node: &str, touched: bool, monitor_only: bool) -> bool {
        if monitor_only {
            // Its agent can set nothing; what one before it had set went back when that one ended.
            self.unconfirmed.remove(node);
            return false;
        }
        if self.confirmed.contains(node) && !touched {
            return false;
        }
        self.confirmed.remove(node);
        self.unconfirmed.entry(node.to_owned()).or_default();
        true
    }

    /// A node has answered an order, perhaps this one. Returns whether anything is new.
    pub fn answered(&mut self, node: &str, id: &str, fault: Option<&str>) -> bool {
        if id != self.id || !self.unconfirmed.contains_key(node) {
            return false;
        }
        match fault {
            None => self.confirm(node),
            Some(fault) => {
                let fault: String = fault.chars().take(200).collect();
                self.unconfirmed.insert(node.to_owned(), Some(fault));
            }
        }
        true
    }

    /// A node's agent has ended and put everything back before.
    pub fn left(&mut self, node: &str) {
        if self.unconfirmed.contains_key(node) {
            self.confirm(node);
        }
    }

    fn confirm(&mut self, node: &str) {
        self.unconfirmed.remove(node);
        self.confirmed.insert(node.to_owned());
    }

    /// Those that have not confirmed it.
    pub fn unconfirmed(&self) -> impl Iterator<Item = &str> {
        self.unconfirmed.keys().map(String::as_str)
    }

    /// How far it has come, as it is told.
    pub fn standing(&self, unix_s: f64, reach: impl Fn(&str) -> Reach) -> Value {
        let nodes = self.unconfirmed.iter().take(NAMED_MAX).map(|(node, fault)| {
            let reach = reach(node);
            let state = match (fault, reach.here) {
                (_, false) => "unreachable",
                (Some(_), true) => "failed",
                (None, true) => "asked",
            };
            json!({"node": node, "state": state, "error": fault, "silent_ticks": reach.silent_ticks})
        });
        json!({
            "why": self.why, "asked_s": (unix_s - self.since_unix_s).max(0.0), "confirmed": self.confirmed.len(),
            "unconfirmed": self.unconfirmed.len(), "nodes": nodes.collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kill() -> Kill {
        let nodes = ["a", "b", "c"].map(str::to_owned).into_iter();
        Kill::new("kill-2".to_owned(), "disk replaced", 100.0, nodes)
    }

    fn states(kill: &Kill) -> Vec<(String, String)> {
        let reach = |node: &str| Reach {
            here: node != "c",
            silent_ticks: Some(3),
        };
        let told = kill.standing(107.5, reach);
        assert_eq!(told["asked_s"], json!(7.5));
        let text = |it: &Value| it.as_str().unwrap().to_owned();
        let nodes = told["nodes"].as_array().unwrap().iter();
        nodes
            .map(|it| (text(&it["node"]), text(&it["state"])))
            .collect()
    }

    #[test]
    fn asked_failed_and_unreachable_are_told_apart_until_confirmed() {
        let mut kill = kill();
        assert!(kill.answered("b", "kill-2", Some("busy")));
        let pair = |node: &str, state: &str| (node.to_owned(), state.to_owned());
        let expected = [
            pair("a", "asked"),
            pair("b", "failed"),
            pair("c", "unreachable"),
        ];
        assert_eq!(states(&kill), expected);
        for node in ["a", "b", "c"] {
            assert!(kill.answered(node, "kill-2", None));
            assert!(!kill.answered(node, "kill-2", None));
        }
        assert_eq!(kill.unconfirmed().count(), 0);
    }

    #[test]
    fn an_answer_to_an_earlier_order_and_a_hello_confirm_nothing() {
        let mut kill = kill();
        assert!(!kill.answered("a", "kill-1", None));
        assert!(!kill.answered("stranger", "kill-2", None));
        assert!(kill.heard("a", false, false));
        assert_eq!(kill.unconfirmed().count(), 3);
        // One that monitors can have set nothing.
        assert!(!kill.heard("c", false, true));
        assert_eq!(kill.unconfirmed().count(), 2);
    }

    #[test]
    fn a_node_that_has_changed_something_again_is_asked_again() {
        let mut kill = kill();
        kill.answered("a", "kill-2", None);
        assert!(!kill.heard("a", false, false));
        assert!(kill.heard("a", true, false));
        assert!(kill.unconfirmed().any(|node| node == "a"));
        kill.left("a");
        assert!(!kill.unconfirmed().any(|node| node == "a"));
    }

    #[test]
    fn who_has_not_confirmed_is_known_after_a_new_start() {
        let mut kill = kill();
        kill.answered("a", "kill-2", None);
        let text = serde_json::to_string(&kill).unwrap();
        let again: Kill = serde_json::from_str(&text).unwrap();
        assert_eq!(again.unconfirmed().collect::<Vec<_>>(), ["b", "c"]);
        assert_eq!(again.id, kill.id);
    }
}
