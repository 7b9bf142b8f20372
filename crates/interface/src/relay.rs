//! Carries out one action at a time: tells nodes, waits for what they say, rolls out in stages, takes back.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::checker::Targets;
use crate::config::Rollout;
use crate::key::{Key, Scope};
use crate::setting::Values;

/// What somebody wants.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Action {
    /// Of the message.
    #[serde(default = "version")]
    pub version: u64,
    /// New for each action.
    pub id: String,
    /// The tick that was acted on.
    #[serde(default)]
    pub tick: i64,
    /// What is to change.
    pub set: Values,
    /// For the audit log.
    #[serde(default)]
    pub why: String,
    /// The user who asks, as the server knows it; nobody can send that.
    #[serde(skip_deserializing)]
    pub actor: String,
    /// Whether the interface itself goes back to the last good setting; nobody can send that.
    #[serde(skip)]
    pub falls_back: bool,
}

fn version() -> u64 {
    1
}

impl Action {
    /// # Errors
    /// What is wrong with its form.
    pub fn check(&self) -> Result<(), String> {
        if self.version > 1 {
            return Err(format!(
                "form: version = {}: this interface speaks 1",
                self.version
            ));
        }
        if self.id.is_empty() || self.id.len() > 64 || self.id.contains(char::is_control) {
            return Err("form: id must be 1 to 64 characters".to_owned());
        }
        if self.why.len() > 200 {
            return Err("form: why may be 200 characters long".to_owned());
        }
        Ok(())
    }
}

/// An order for one node.
#[derive(Clone, Debug, PartialEq)]
pub struct Order {
    /// Whom.
    pub node: String,
    /// Comes back with the answer.
    pub id: String,
    /// Local keys.
    pub set: Map<String, Value>,
}

/// What comes of an action in the end.
#[derive(Debug)]
pub enum End {
    /// All nodes have it.
    Applied(Action, Values),
    /// Not all have it; the orders put the others back.
    Failed(Action, String, Vec<Order>),
}

#[derive(Debug)]
struct Pending {
    action: Action,
    /// Those that wait for their turn.
    later: Targets,
    /// Those that have been told and have not answered.
    waiting: BTreeSet<String>,
    taken: BTreeSet<String>,
    targets: Targets,
    before: Values,
    effective: Values,
    stage: u32,
    deadline: i64,
    rest_at: Option<i64>,
}

/// The action on its way, if there is one.
#[derive(Debug)]
pub struct Relay {
    rollout: Rollout,
    patience_ticks: i64,
    pending: Option<Pending>,
    turn: usize,
}

impl Relay {
    /// None on its way.
    pub fn new(rollout: Rollout, patience_ticks: i64) -> Self {
        Self {
            rollout,
            patience_ticks: patience_ticks.max(1),
            pending: None,
            turn: 0,
        }
    }

    /// The action on its way.
    pub fn busy(&self) -> Option<&str> {
        self.pending.as_ref().map(|it| it.action.id.as_str())
    }

    /// Begins an action. `at_once` passes over the stages.
    pub fn begin(
        &mut self,
        action: Action,
        targets: Targets,
        current: &Values,
        tick: i64,
        at_once: bool,
    ) -> Vec<Order> {
        let before = action
            .set
            .keys()
            .filter_map(|key| Some((key.clone(), current.get(key)?.clone())))
            .collect();
        let count = (self.rollout.share * targets.len() as f64).ceil() as usize;
        let mut later = targets.clone();
        let mut first = Targets::new();
        if at_once || count >= targets.len() {
            std::mem::swap(&mut first, &mut later);
        } else {
            // Other nodes each time.
            let names: Vec<String> = targets.keys().cloned().collect();
            for index in 0..count.max(1) {
                let name = &names[(self.turn + index) % names.len()];
                first.extend(later.remove_entry(name));
            }
            self.turn = (self.turn + count.max(1)) % names.len();
        }
        let pending = Pending {
            action,
            later,
            waiting: first.keys().cloned().collect(),
            taken: BTreeSet::new(),
            targets,
            before,
            effective: Values::new(),
            stage: 0,
            deadline: tick.saturating_add(self.patience_ticks),
            rest_at: None,
        };
        let orders = orders(&pending, &first);
        self.pending = Some(pending);
        orders
    }

    /// Whether a node's answer to this order is waited for.
    pub fn awaits(&self, node: &str, id: &str) -> bool {
        let is_it = |it: &Pending| order_id(it) == id && it.waiting.contains(node);
        self.pending.as_ref().is_some_and(is_it)
    }

    /// A node has answered.
    pub fn answered(
        &mut self,
        node: &str,
        id: &str,
        answer: Result<Map<String, Value>, String>,
        tick: i64,
    ) -> Option<End> {
        let pending = self.pending.as_mut()?;
        if order_id(pending) != id || !pending.waiting.remove(node) {
            return None;
        }
        match answer {
            Err(error) => {
                let error: String = error.chars().take(500).collect();
                self.fail(format!("node {node}: {error}"))
            }
            Ok(found) => {
                pending.taken.insert(node.to_owned());
                for key in pending.action.set.keys() {
                    let parts = Key::parse(key);
                    let is_its = parts.scope() == Scope::All || parts.node.as_deref() == Some(node);
                    if let Some(value) = found.get(&parts.local()).filter(|_| is_its) {
                        pending.effective.insert(key.clone(), value.clone());
                    }
                }
                if !pending.waiting.is_empty() {
                    return None;
                }
                if pending.later.is_empty() {
                    let pending = self.pending.take()?;
                    let mut values = pending.action.set.clone();
                    values.extend(pending.effective);
                    return Some(End::Applied(pending.action, values));
                }
                pending.rest_at = Some(tick.saturating_add(self.rollout.ticks as i64));
                None
            }
        }
    }

    /// A tick has passed: those who are silent have failed, those who wait may have their turn.
    pub fn tick(&mut self, tick: i64) -> (Vec<Order>, Option<End>) {
        let Some(pending) = self.pending.as_mut() else {
            return (Vec::new(), None);
        };
        if !pending.waiting.is_empty() {
            if tick < pending.deadline {
                return (Vec::new(), None);
            }
            let silent: Vec<String> = pending.waiting.iter().take(5).cloned().collect();
            return (
                Vec::new(),
                self.fail(format!("no answer from {}", silent.join(", "))),
            );
        }
        if pending.rest_at.is_some_and(|at| tick >= at) {
            let rest = std::mem::take(&mut pending.later);
            pending.stage += 1;
            pending.rest_at = None;
            pending.waiting = rest.keys().cloned().collect();
            pending.deadline = tick.saturating_add(self.patience_ticks);
            return (orders(pending, &rest), None);
        }
        (Vec::new(), None)
    }

    /// Gives the action up. What was taken is put back by the orders.
    pub fn fail(&mut self, reason: String) -> Option<End> {
        let pending = self.pending.take()?;
        let mut undo = Vec::new();
        // Those who have not answered may have taken it all the same.
        for node in pending.taken.iter().chain(&pending.waiting) {
            let mut set = Map::new();
            for local in pending.targets.get(node).into_iter().flat_map(Map::keys) {
                let fits = |key: &&String| {
                    let parts = Key::parse(key);
                    parts.local() == *local && parts.node.as_ref().is_none_or(|it| it == node)
                };
                if let Some(value) = pending
                    .before
                    .keys()
                    .find(fits)
                    .and_then(|key| pending.before.get(key))
                {
                    set.insert(local.clone(), value.clone());
                }
            }
            if !set.is_empty() {
                undo.push(Order {
                    node: node.clone(),
                    id: format!("{}/back", pending.action.id),
                    set,
                });
            }
        }
        Some(End::Failed(pending.action, reason, undo))
    }

    /// What a screen shows of the action on its way.
    pub fn status(&self) -> Option<BTreeMap<&'static str, Value>> {
        let pending = self.pending.as_ref()?;
        Some(BTreeMap::from([
            ("id", Value::from(pending.action.id.clone())),
            ("stage", Value::from(pending.stage)),
            ("taken", Value::from(pending.taken.len())),
            ("waiting", Value::from(pending.waiting.len())),
            ("later", Value::from(pending.later.len())),
        ]))
    }
}

fn order_id(pending: &Pending) -> String {
    format!("{}/{}", pending.action.id, pending.stage)
}

fn orders(pending: &Pending, targets: &Targets) -> Vec<Order> {
    let id = order_id(pending);
    let order = |(node, set): (&String, &Map<String, Value>)| Order {
        node: node.clone(),
        id: id.clone(),
        set: set.clone(),
    };
    targets.iter().map(order).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn action() -> Action {
        serde_json::from_value(json!({"id": "a", "set": {"x": 3}})).unwrap()
    }

    fn targets(names: &[&str]) -> Targets {
        let set = Map::from_iter([("x".to_owned(), json!(3))]);
        names
            .iter()
            .map(|name| ((*name).to_owned(), set.clone()))
            .collect()
    }

    fn ok() -> Result<Map<String, Value>, String> {
        Ok(Map::from_iter([("x".to_owned(), json!(4))]))
    }

    fn before() -> Values {
        Values::from([("x".to_owned(), json!(1))])
    }

    #[test]
    fn nobody_can_send_an_action_that_falls_back_or_is_anothers() {
        let sent = json!({"id": "a", "set": {"x": 3}, "actor": "interface", "falls_back": true});
        let read = serde_json::from_value::<Action>(sent).unwrap();
        assert!(!read.falls_back && read.actor.is_empty());
    }

    #[test]
    fn an_action_is_applied_when_all_have_answered() {
        let mut relay = Relay::new(Rollout::default(), 5);
        let orders = relay.begin(action(), targets(&["m", "n"]), &before(), 0, false);
        assert_eq!(orders.len(), 2);
        assert!(relay.answered("m", "a/0", ok(), 1).is_none());
        // Twice, of somebody else, of something else.
        assert!(relay.answered("m", "a/0", ok(), 1).is_none());
        assert!(relay.answered("z", "a/0", ok(), 1).is_none());
        assert!(relay.answered("n", "b/0", ok(), 1).is_none());
        let Some(End::Applied(_, values)) = relay.answered("n", "a/0", ok(), 1) else {
            panic!()
        };
        assert_eq!(values["x"], json!(4));
        assert!(relay.busy().is_none());
    }

    #[test]
    fn a_refusal_and_a_silence_put_the_others_back() {
        let mut relay = Relay::new(Rollout::default(), 5);
        relay.begin(action(), targets(&["m", "n"]), &before(), 0, false);
        relay.answered("m", "a/0", ok(), 1);
        let Some(End::Failed(_, reason, undo)) =
            relay.answered("n", "a/0", Err("no".to_owned()), 1)
        else {
            panic!()
        };
        assert_eq!(reason, "node n: no");
        assert_eq!((undo[0].node.as_str(), &undo[0].set["x"]), ("m", &json!(1)));
        relay.begin(action(), targets(&["m", "n"]), &before(), 10, false);
        relay.answered("m", "a/0", ok(), 11);
        assert!(relay.tick(14).1.is_none());
        let (_, Some(End::Failed(_, reason, undo))) = relay.tick(15) else {
            panic!()
        };
        assert_eq!((reason.as_str(), undo.len()), ("no answer from n", 2));
    }

    #[test]
    fn a_share_of_the_nodes_goes_first() {
        let mut relay = Relay::new(
            Rollout {
                share: 0.3,
                ticks: 10,
            },
            5,
        );
        let names = ["a", "b", "c", "d"];
        let first = relay.begin(action(), targets(&names), &before(), 0, false);
        assert_eq!(first.len(), 2);
        for order in &first {
            assert!(relay.answered(&order.node, &order.id, ok(), 1).is_none());
        }
        assert!(relay.tick(10).0.is_empty());
        let (rest, _) = relay.tick(11);
        assert_eq!((rest.len(), rest[0].id.as_str()), (2, "a/1"));
        // The service level suffers: all four are put back.
        let Some(End::Failed(_, _, undo)) = relay.fail("breach".to_owned()) else {
            panic!()
        };
        assert_eq!(undo.len(), 4);
        // The next begins elsewhere.
        let next = relay.begin(action(), targets(&names), &before(), 20, false);
        assert_eq!(
            next.iter().map(|it| it.node.as_str()).collect::<Vec<_>>(),
            ["c", "d"]
        );
    }
}
