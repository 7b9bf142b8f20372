//! What sets knobs. Each controller is the pipe to a process that puts everything back when the pipe closes, so that
//! nothing of ours has to run for that.

mod keeper;
mod pipe;
mod program;
pub mod worker;

use std::path::PathBuf;
use std::sync::Arc;

use ascar_messaging::{Fault, Parameter, ParameterState};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use self::keeper::Keeper;
use self::program::Program;
use crate::lease::Lease;

/// A `[[knob]]` in the file: a knob of the keeper's, no more of which may be set here than both allow.
///
/// # Errors
/// When there is no such knob.
pub fn check_kept(knob: &Parameter) -> Result<(), Fault> {
    keeper::check_name(&knob.name)?;
    knob.check()
}

/// What starts the keeper of an agent.
pub fn keepers_command(state_directory: Option<&std::path::Path>) -> Vec<String> {
    keeper::command(state_directory)
}

/// `[[program]]` in the file: a program that sets knobs of its own.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramOptions {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Its knobs.
    #[serde(rename = "knob")]
    pub knobs: Vec<Parameter>,
}

impl ProgramOptions {
    /// # Errors
    /// When a key is wrong.
    pub fn check(&self) -> Result<(), Fault> {
        if self.command.is_empty() {
            return Err(Fault("program.command = []: name a program".to_owned()));
        }
        for knob in &self.knobs {
            knob.check()?;
            if knob.choices.is_empty() && (knob.minimum.is_none() || knob.maximum.is_none()) {
                return Err(Fault(format!(
                    "program.knob {:?}: give minimum and maximum, or choices",
                    knob.name
                )));
            }
        }
        Ok(())
    }
}

/// The queue depth of the device whose scheduler this key is.
fn depth_of(key: &str) -> Option<String> {
    let (name, stream) = split(key);
    let device = name.strip_suffix(".scheduler")?;
    Some(match stream {
        None => format!("{device}.nr_requests"),
        Some(stream) => format!("{device}.nr_requests/{stream}"),
    })
}

/// All controllers of a node.
#[derive(Debug)]
pub struct Controllers {
    keeper: Option<Keeper>,
    programs: Vec<Program>,
    touched: bool,
}

impl Controllers {
    /// Starts nothing yet: a keeper is started when the first knob is set.
    pub fn new(
        knobs: Vec<Parameter>,
        programs: Vec<ProgramOptions>,
        state_directory: Option<PathBuf>,
        lease: &Arc<Lease>,
    ) -> Self {
        let keeper = |knobs| Keeper::new(knobs, state_directory, Arc::clone(lease));
        let program = |options| Program::new(options, Arc::clone(lease));
        Self {
            keeper: (!knobs.is_empty()).then(|| keeper(knobs)),
            programs: programs.into_iter().map(program).collect(),
            touched: false,
        }
    }

    /// Whether anything may be different from what it was.
    pub fn touched(&self) -> bool {
        self.touched
    }

    /// Every knob and what is in force.
    pub fn states(&mut self) -> Vec<ParameterState> {
        let mut states: Vec<ParameterState> = self.keeper.iter().flat_map(Keeper::states).collect();
        for program in &mut self.programs {
            states.extend(program.states());
        }
        states
    }

    /// Sets all of `settings`, or none: what was set before one was refused is set back.
    ///
    /// # Errors
    /// The name, the value and what is allowed.
    pub fn set(&mut self, settings: &Map<String, Value>) -> Result<Map<String, Value>, String> {
        let mut done: Vec<(String, Value)> = Vec::new();
        let mut effective = Map::new();
        let mut in_order: Vec<(&String, &Value)> = settings.iter().collect();
        // A scheduler brings its own queue depth, which is set after it.
        in_order.sort_by_key(|(key, _)| depth_of(key).is_none());
        for (key, value) in in_order {
            let before = self.value(key);
            let depth = depth_of(key).filter(|depth| !settings.contains_key(depth));
            let depth = depth.and_then(|depth| Some((self.value(&depth)?, depth)));
            match self.set_one(key, value) {
                Ok(found) => {
                    if let Some((value, depth)) = depth
                        && self.value(&depth).as_ref() != Some(&value)
                    {
                        // Where it cannot be had under this scheduler, the scheduler's own stays.
                        let _ = self.set_one(&depth, &value);
                    }
                    effective.insert(key.clone(), found);
                    done.extend(before.map(|before| (key.clone(), before)));
                }
                Err(fault) => {
                    let mut message = fault;
                    for (key, before) in done.into_iter().rev() {
                        if let Err(again) = self.set_one(&key, &before) {
                            message.push_str(&format!("; and setting back {key}: {again}"));
                        }
                    }
                    return Err(message);
                }
            }
        }
        Ok(effective)
    }

    fn value(&mut self, key: &str) -> Option<Value> {
        let (name, stream) = split(key);
        let state = self.states().into_iter().find(|it| it.name == name)?;
        match stream {
            Some(stream) => state.streams.get(stream).cloned(),
            None => Some(state.value),
        }
    }

    fn set_one(&mut self, key: &str, value: &Value) -> Result<Value, String> {
        let (name, stream) = split(key);
        if let Some(keeper) = self.keeper.as_mut().filter(|keeper| keeper.has(name)) {
            self.touched = true;
            return keeper.set(name, stream, value);
        }
        if let Some(program) = self.programs.iter_mut().find(|it| it.has(name)) {
            self.touched = true;
            return program.set(name, value);
        }
        let names: Vec<String> = self.states().into_iter().map(|it| it.name).collect();
        Err(format!(
            "{key} = {value}: is not a knob of this node; allowed are {}",
            names.join(", ")
        ))
    }

    /// Puts everything back.
    ///
    /// # Errors
    /// What could not be put back.
    pub fn restore(&mut self) -> Result<Value, String> {
        let mut report = json!({});
        let mut faults = Vec::new();
        if let Some(keeper) = &mut self.keeper {
            match keeper.restore() {
                Ok(found) => report = found,
                Err(fault) => faults.push(fault),
            }
        }
        for program in &mut self.programs {
            if let Err(fault) = program.restore() {
                faults.push(fault);
            }
        }
        if faults.is_empty() {
            self.touched = false;
            Ok(report)
        } else {
            Err(faults.join("; "))
        }
    }

    /// Notices processes that have died, and has put back what they had changed. Returns what happened.
    pub fn watch(&mut self) -> Option<String> {
        let mut news: Vec<String> = self.keeper.iter_mut().filter_map(Keeper::watch).collect();
        news.extend(self.programs.iter_mut().filter_map(Program::watch));
        (!news.is_empty()).then(|| news.join("; "))
    }

    /// What is in force, as indicators: `knob.NAME`; a word's place among the choices is its number.
    pub fn levels(&self) -> Vec<(String, f64)> {
        let mut levels = Vec::new();
        let mut level = |name: String, value: &Value, choices: &[Value]| {
            levels.extend(number(value, choices).map(|number| (name, number)));
        };
        // Programs are not asked every tick: what they set they said.
        for state in self.keeper.iter().flat_map(Keeper::states) {
            if state.streams.is_empty() {
                level(format!("knob.{}", state.name), &state.value, &state.choices);
            }
            for (stream, value) in &state.streams {
                let name = format!("knob.{}", state.name.replacen('*', stream, 1));
                level(name, value, &state.choices);
            }
        }
        for program in &self.programs {
            for (knob, value) in program.known() {
                level(format!("knob.{}", knob.name), value, &knob.choices);
            }
        }
        levels
    }
}

fn number(value: &Value, choices: &[Value]) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::Bool(value) => Some(f64::from(u8::from(*value))),
        Value::String(_) => choices
            .iter()
            .position(|it| it == value)
            .map(|it| it as f64),
        _ => None,
    }
}

/// `KNOB` or `KNOB/STREAM`: behind the last slash of a knob that has a `*`, for names of the scheduler's have one too.
fn split(key: &str) -> (&str, Option<&str>) {
    match key.rsplit_once('/') {
        Some((name, stream)) if name.contains('*') && !stream.contains('*') => {
            // `block.*.iosched/read_expire` is a name.
            if name.ends_with(".iosched") {
                (key, None)
            } else {
                (name, Some(stream))
            }
        }
        _ => (key, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease() -> Arc<Lease> {
        Arc::new(Lease::new().unwrap())
    }

    #[test]
    fn keys_name_a_stream_or_none() {
        for (key, expected) in [
            ("vm.dirty_ratio", ("vm.dirty_ratio", None)),
            (
                "block.vda.iosched/read_expire",
                ("block.vda.iosched/read_expire", None),
            ),
            (
                "block.*.iosched/read_expire",
                ("block.*.iosched/read_expire", None),
            ),
            (
                "block.*.iosched/read_expire/vda",
                ("block.*.iosched/read_expire", Some("vda")),
            ),
            (
                "lustre.osc.*.max_dirty_mb/fs-OST0000",
                ("lustre.osc.*.max_dirty_mb", Some("fs-OST0000")),
            ),
        ] {
            assert_eq!(split(key), expected, "{key}");
        }
    }

    #[test]
    fn a_scheduler_has_a_queue_depth_beside_it() {
        assert_eq!(
            depth_of("block.vda.scheduler").as_deref(),
            Some("block.vda.nr_requests")
        );
        assert_eq!(
            depth_of("block.*.scheduler/vda").as_deref(),
            Some("block.*.nr_requests/vda")
        );
        assert_eq!(depth_of("block.vda.nr_requests"), None);
    }

    #[test]
    fn unknown_knobs_are_refused_with_the_known_ones() {
        let options = Parameter {
            name: "vm.swappiness".to_owned(),
            ..Parameter::default()
        };
        let mut controllers = Controllers::new(vec![options], vec![], None, &lease());
        let settings = Map::from_iter([("vm.swappines".to_owned(), json!(1))]);
        let fault = controllers.set(&settings).unwrap_err();
        assert!(
            fault.contains("vm.swappines") && fault.contains("allowed are vm.swappiness"),
            "{fault}"
        );
        assert!(!controllers.touched());
    }

    #[test]
    fn a_value_out_of_the_nodes_own_bounds_starts_no_keeper() {
        let options = Parameter {
            name: "vm.swappiness".to_owned(),
            minimum: Some(10.0),
            maximum: Some(90.0),
            choices: vec![],
        };
        let mut controllers = Controllers::new(vec![options], vec![], None, &lease());
        for wrong in [
            json!(9),
            json!(91),
            json!("x"),
            json!(1.5),
            json!(null),
            json!([]),
        ] {
            let settings = Map::from_iter([("vm.swappiness".to_owned(), wrong)]);
            let fault = controllers.set(&settings).unwrap_err();
            assert!(fault.contains("vm.swappiness"), "{fault}");
        }
    }

    #[test]
    fn of_a_kept_knob_no_more_is_allowed_than_the_choices_of_the_node() {
        let options = Parameter {
            name: "vm.swappiness".to_owned(),
            choices: vec![json!(10), json!(60)],
            ..Parameter::default()
        };
        let mut controllers = Controllers::new(vec![options], vec![], None, &lease());
        for wrong in [json!(11), json!("x"), json!(true)] {
            let settings = Map::from_iter([("vm.swappiness".to_owned(), wrong)]);
            let fault = controllers.set(&settings).unwrap_err();
            assert!(fault.contains("this node allows 10, 60"), "{fault}");
        }
    }
}
