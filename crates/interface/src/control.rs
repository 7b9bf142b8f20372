//! `P.control`: for people and job schedulers.

use std::path::PathBuf;

use ascar_guard::Side;
use ascar_messaging::Message;
use ascar_messaging::options::check_name;
use serde_json::{Value, json};

use crate::config::Mode;
use crate::history::Request;
use crate::relay::Action;
use crate::replay::Job;
use crate::session::{Announced, Session};

/// Longest request.
const REQUEST_BYTES_MAX: usize = 64 * 1024;

impl Session {
    pub(crate) fn take_control(&mut self, message: &Message) {
        let parsed = (message.payload.len() <= REQUEST_BYTES_MAX)
            .then(|| serde_json::from_slice::<Value>(&message.payload))
            .and_then(Result::ok)
            .filter(Value::is_object);
        let outcome = match parsed {
            None => {
                self.counters.garbage += 1;
                Err("a request is a JSON object of at most 64 KiB".to_owned())
            }
            Some(request) if request["op"] == "audit" => {
                let limit = request["limit"].as_u64().unwrap_or(100).min(1000) as u32;
                match &message.reply {
                    None => return,
                    Some(reply) => {
                        match self
                            .reader
                            .ask(&self.database, reply, Request::audit(limit), true)
                        {
                            Ok(()) => return,
                            Err(error) => Err(error),
                        }
                    }
                }
            }
            Some(request) => self.control(&request),
        };
        let answer = match outcome {
            Ok(value) => json!({"ok": value}),
            Err(error) => json!({"error": error}),
        };
        self.reply(message, &answer);
    }

    fn control(&mut self, request: &Value) -> Result<Value, String> {
        let text = |key: &str| request[key].as_str().unwrap_or_default().to_owned();
        let (op, actor, why) = (text("op"), text("actor"), text("why"));
        if op == "status" {
            return Ok(self.status());
        }
        if op == "confirmation" {
            return Ok(json!({"killed": self.switch.fallback.killed(), "kill": self.standing()}));
        }
        let outcome = self.deed(&op, request)?;
        let mut detail = request.clone();
        if let Some(fields) = detail.as_object_mut() {
            for key in ["op", "actor", "why"] {
                fields.remove(key);
            }
        }
        self.audit(&actor, &op, &why, detail);
        Ok(outcome)
    }

    fn deed(&mut self, op: &str, request: &Value) -> Result<Value, String> {
        let text = |key: &str| request[key].as_str().unwrap_or_default().to_owned();
        match op {
            "mode" => {
                let mode: Mode = serde_json::from_value(request["mode"].clone()).map_err(|_| {
                    format!(
                        "mode = {}: allowed are observe, approve, automatic",
                        request["mode"]
                    )
                })?;
                self.set_mode(mode)
                    .map_err(|error| format!("mode = {:?}: state {error}", json!(mode)))?;
                if mode != Mode::Approve {
                    self.waiting.clear();
                }
                self.event(json!({"event": "mode", "mode": mode}));
                Ok(json!({"mode": mode}))
            }
            "approve" | "reject" => {
                let id = text("id");
                let action = self.waiting.remove(&id).ok_or_else(|| {
                    let ids: Vec<&str> = self.waiting.keys().map(String::as_str).collect();
                    format!(
                        "id = {id:?}: does not wait; those that do: {}",
                        ids.join(", ")
                    )
                })?;
                if op == "approve" {
                    return Ok(self.judge(action, true));
                }
                Ok(self.refuse(&action, &format!("rejected: {}", text("why"))))
            }
            "kill" => {
                let by = format!("{}: {}", text("actor"), text("why"));
                self.kill(&by);
                self.event(json!({"event": "kill"}));
                Ok(self.standing())
            }
            "revive" => {
                self.revive()
                    .map_err(|error| format!("the session stays killed: state {error}"))?;
                self.event(json!({"event": "revive"}));
                Ok(json!({}))
            }
            "restore" => {
                self.restore_all("restored by hand");
                Ok(json!({}))
            }
            "set" => {
                let set = serde_json::from_value(request["set"].clone())
                    .map_err(|error| format!("set: {error}"))?;
                let id = format!("hand-{}", crate::clock::unix_s());
                let (why, actor) = (text("why"), text("actor"));
                Ok(self.judge(
                    Action {
                        version: 1,
                        id,
                        tick: self.tick(),
                        set,
                        why,
                        actor,
                        falls_back: false,
                    },
                    true,
                ))
            }
            "floor" | "ceiling" => {
                let side = match op {
                    "floor" => Side::Floor,
                    _ => Side::Ceiling,
                };
                let (_, bound) = side.keys();
                let metric = text("metric");
                if !self.metrics_now.contains_key(&metric) {
                    let names: Vec<&str> = self.metrics_now.keys().map(String::as_str).collect();
                    return Err(format!(
                        "metric = {metric:?}: allowed are {}",
                        names.join(", ")
                    ));
                }
                let value =
                    match &request[bound] {
                        Value::Null => None,
                        value => Some(value.as_f64().ok_or_else(|| {
                            format!("{bound} = {value}: must be a number or null")
                        })?),
                    };
                self.service_level.set(&metric, side, value);
                Ok(json!({}))
            }
            "workload" => self.announce(&text("phase"), &text("name"), &text("job")),
            _ => Err(format!(
                "op = {op:?}: allowed are status, mode, approve, reject, kill, revive, restore, set, floor, ceiling, workload, audit, confirmation"
            )),
        }
    }

    /// A job begins or ends: everybody hears of it, it is written down, and it may have a database of its own.
    fn announce(&mut self, phase: &str, name: &str, job: &str) -> Result<Value, String> {
        check_name("name", name).map_err(|fault| fault.0)?;
        if job.len() > 200 {
            return Err("job: allowed are 200 characters".to_owned());
        }
        let (name, job) = (name.to_owned(), job.to_owned());
        let announced = Announced { name, job };
        self.workload = match phase {
            "start" => Some(announced.clone()),
            "end" => None,
            _ => return Err(format!("phase = {phase:?}: allowed are start, end")),
        };
        let record = Job::Workload {
            tick: self.tick(),
            name: self.workload.as_ref().map(|it| it.name.clone()),
            job: announced.job.clone(),
        };
        self.writer.send(record.clone());
        let database = self.database_of(self.workload.as_ref());
        if self.config.database_per_workload {
            self.writer.send(Job::Open(database.clone()));
            self.writer.send(record);
        }
        self.remember();
        let Announced { name, job } = announced;
        self.event(json!({"event": "workload", "phase": phase, "name": name, "job": job, "database": database}));
        Ok(json!({"database": database}))
    }

    /// Where ticks of a workload are written; of none the file's.
    pub(crate) fn database_of(&self, workload: Option<&Announced>) -> PathBuf {
        let database = &self.config.database;
        let Some(named) = workload.filter(|_| self.config.database_per_workload) else {
            return database.clone();
        };
        let stem = database
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let end = database
            .extension()
            .map_or(String::new(), |it| format!(".{}", it.to_string_lossy()));
        database.with_file_name(format!("{stem}-{}{end}", named.name))
    }

    fn status(&self) -> Value {
        let tick = self.tick();
        let nodes: Vec<Value> = self
            .nodes
            .all()
            .iter()
            .take(1000)
            .map(|node| {
                json!({
                    "node": &*node.name, "here": node.here, "monitor_only": node.monitor_only, "blocked": node.blocked,
                    "silent_ticks": if node.seen_tick == i64::MIN { Value::Null } else { json!(tick - node.seen_tick) },
                    "indicators": node.layout.as_ref().map_or(0, |layout| layout.names.len()),
                })
            })
            .collect();
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
            "node_count": self.nodes.all().len(), "nodes": nodes, "knobs": knobs, "floors": limits(Side::Floor), "ceilings": limits(Side::Ceiling),
            "setting": self.setting.current(), "defaults": self.setting.initial(), "changed": self.setting.changed(),
            "metrics": self.metrics_now, "on_its_way": self.relay.status(),
            "waiting": self.waiting.values().take(100).collect::<Vec<_>>(),
            "counters": {
                "frames": counters.frames, "frame_bytes": counters.frame_bytes, "garbage": counters.garbage,
                "late": counters.late, "skewed": counters.skewed, "rows_stored": counters.rows_stored,
                "ticks_stored": counters.ticks_stored, "ticks_failed": counters.ticks_failed,
                "ticks_lost": counters.ticks_lost, "verdicts": counters.verdicts, "refusals": counters.refusals,
            },
        })
    }
}
