//! `P.control.USER.OP`: for people and job schedulers.

use std::path::PathBuf;

use ascar_guard::Side;
use ascar_messaging::Message;
use ascar_messaging::options::check_name;
use serde_json::{Value, json};

use crate::history::Request;
use crate::relay::Action;
use crate::replay::Job;
use crate::session::{Announced, Session};

/// Longest request.
const REQUEST_BYTES_MAX: usize = 64 * 1024;

impl Session {
    /// The message server decides which users may publish which operations; the user is the actor of the audit log.
    pub(crate) fn take_control(&mut self, user: &str, op: &str, message: &Message) {
        let parsed = (message.payload.len() <= REQUEST_BYTES_MAX)
            .then(|| serde_json::from_slice::<Value>(&message.payload))
            .and_then(Result::ok)
            .filter(Value::is_object);
        let outcome = match parsed {
            None => {
                self.counters.garbage += 1;
                Err("a request is a JSON object of at most 64 KiB".to_owned())
            }
            Some(request) if request["op"] != op => Err(format!(
                "op = {}: must be {op:?}, as in the subject control.{user}.{op}",
                request["op"]
            )),
            Some(request) if op == "audit" => {
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
            Some(_) if op == "status" => return self.reply_with_status(message),
            Some(request) if ["mode", "revive"].contains(&op) => {
                match self.ask_switch(user, &request, message.reply.as_ref()) {
                    // It answers when the disk has it.
                    Ok(()) => return,
                    Err(error) => Err(error),
                }
            }
            Some(request) => self.control(user, op, &request),
        };
        let answer = match outcome {
            Ok(value) => json!({"ok": value}),
            Err(error) => json!({"error": error}),
        };
        self.reply(message, &answer);
    }

    fn control(&mut self, user: &str, op: &str, request: &Value) -> Result<Value, String> {
        if op == "confirmation" {
            return Ok(json!({"killed": self.switch.fallback.killed(), "kill": self.standing()}));
        }
        let outcome = self.deed(user, op, request)?;
        let mut detail = request.clone();
        if let Some(fields) = detail.as_object_mut() {
            for key in ["op", "actor", "why"] {
                fields.remove(key);
            }
        }
        let why = request["why"].as_str().unwrap_or_default();
        self.audit(user, op, why, detail);
        Ok(outcome)
    }

    fn deed(&mut self, user: &str, op: &str, request: &Value) -> Result<Value, String> {
        let text = |key: &str| request[key].as_str().unwrap_or_default().to_owned();
        match op {
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
                self.kill(&format!("{user}: {}", text("why")));
                self.event(json!({"event": "kill"}));
                Ok(self.standing())
            }
            "restore" => {
                self.restore_all("restored by hand");
                Ok(json!({}))
            }
            "set" => {
                let set = serde_json::from_value(request["set"].clone())
                    .map_err(|error| format!("set: {error}"))?;
                let id = format!("hand-{}", crate::clock::unix_s());
                Ok(self.judge(
                    Action {
                        version: 1,
                        id,
                        tick: self.tick(),
                        set,
                        why: text("why"),
                        actor: user.to_owned(),
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
}
