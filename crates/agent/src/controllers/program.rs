//! Knobs of a program that speaks JSON lines. It answers `{"get": true}` and `{"set": {NAME: VALUE}}` with
//! `{"ok": {NAME: VALUE, ...}}` or `{"error": "..."}`, and puts everything back for `{"restore": true}` and when its
//! input ends.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ascar_messaging::{Parameter, ParameterState};
use serde_json::{Map, Value, json};

use super::ProgramOptions;
use super::pipe::Pipe;
use crate::lease::Lease;

const PATIENCE: Duration = Duration::from_secs(10);

/// The program's client.
#[derive(Debug)]
pub struct Program {
    options: ProgramOptions,
    lease: Arc<Lease>,
    pipe: Option<Pipe>,
    /// It ended, and nobody knows whether it put everything back.
    is_lost: bool,
    /// What it said is in force.
    values: Map<String, Value>,
}

impl Program {
    pub fn new(options: ProgramOptions, lease: Arc<Lease>) -> Self {
        Self {
            options,
            lease,
            pipe: None,
            is_lost: false,
            values: Map::new(),
        }
    }

    pub fn has(&self, name: &str) -> bool {
        self.options.knobs.iter().any(|knob| knob.name == name)
    }

    /// Its knobs with the last values that it told.
    pub fn known(&self) -> impl Iterator<Item = (&Parameter, &Value)> {
        self.options
            .knobs
            .iter()
            .filter_map(|knob| Some((knob, self.values.get(&knob.name)?)))
    }

    pub fn states(&mut self) -> Vec<ParameterState> {
        if let Ok(Value::Object(values)) = self.ask(&json!({"get": true})) {
            self.values = values;
        }
        self.known()
            .map(|(knob, value)| ParameterState {
                name: knob.name.clone(),
                value: value.clone(),
                minimum: knob.minimum,
                maximum: knob.maximum,
                choices: knob.choices.clone(),
                streams: BTreeMap::new(),
            })
            .collect()
    }

    pub fn set(&mut self, name: &str, value: &Value) -> Result<Value, String> {
        let knob = self.options.knobs.iter().find(|knob| knob.name == name);
        let knob = knob.ok_or_else(|| format!("{name}: is not a knob of this node"))?;
        knob.allows(value)
            .map_err(|allowed| format!("{name} = {value}: this node allows {allowed}"))?;
        let answer = self.ask(&json!({"set": {name: value}}))?;
        let effective = answer.get(name).cloned().unwrap_or_else(|| value.clone());
        self.values.insert(name.to_owned(), effective.clone());
        Ok(effective)
    }

    pub fn restore(&mut self) -> Result<(), String> {
        if self.pipe.is_none() && !self.is_lost {
            return Ok(());
        }
        self.ask(&json!({"restore": true}))?;
        self.is_lost = false;
        Ok(())
    }

    /// A program that died is started again when it is next needed.
    pub fn watch(&mut self) -> Option<String> {
        let pipe = self.pipe.as_mut()?;
        if pipe.alive() {
            return None;
        }
        self.lose();
        Some(format!("program {} has ended", self.options.command[0]))
    }

    fn lose(&mut self) {
        self.pipe = None;
        self.is_lost = true;
    }

    fn ask(&mut self, request: &Value) -> Result<Value, String> {
        let name = self.options.command[0].clone();
        if self.pipe.is_none() {
            let pipe = Pipe::start(&self.options.command, &self.lease)
                .map_err(|error| format!("program {name}: {error}"))?;
            self.pipe = Some(pipe);
        }
        let pipe = self.pipe.as_mut().ok_or("is gone")?;
        let answer = pipe.ask(request, PATIENCE).map_err(|fault| {
            self.lose();
            format!("program {name} {fault}")
        })?;
        match (answer.get("ok"), answer["error"].as_str()) {
            (Some(found), _) => Ok(found.clone()),
            (None, Some(error)) => Err(format!("program {name}: {error}")),
            (None, None) => Err(format!("program {name} answers neither ok nor error")),
        }
    }
}
