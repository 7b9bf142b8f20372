//! Knobs of the machine, through `ascard keeper`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ascar_keeper::catalogue::{self, RULES};
use ascar_keeper::knob::Knob;
use ascar_keeper::protocol::{Scalar, VERSION};
use ascar_messaging::{Fault, Parameter, ParameterState};
use serde_json::{Value, json};

use super::pipe::Pipe;
use crate::collectors::short_of_lustre;
use crate::lease::Lease;

/// How long a knob may take to be set; the kernel is at work.
const PATIENCE: Duration = Duration::from_secs(20);
/// Where `make install-keeper` puts the keeper that sudo starts.
const INSTALLED: &str = "/usr/libexec/ascar/ascard";
/// How often we look for devices that came or went.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// The keeper's client.
#[derive(Debug)]
pub struct Keeper {
    knobs: Vec<Parameter>,
    state_directory: Option<PathBuf>,
    lease: Arc<Lease>,
    pipe: Option<Pipe>,
    /// A keeper is gone that may have left knobs changed, until the next one has put them back.
    is_lost: bool,
    requests: u64,
    instances: std::cell::RefCell<Instances>,
}

#[derive(Debug, Default)]
struct Instances {
    looked: Option<Instant>,
    /// By the knob's place: streams and full names.
    found: Vec<Vec<(String, String)>>,
}

/// # Errors
/// When the keeper has no such knob.
pub fn check_name(name: &str) -> Result<(), Fault> {
    let sample = name.replacen('*', "x", 1);
    match catalogue::resolve(&sample) {
        Ok(_) => Ok(()),
        Err(fault) => Err(Fault(fault.message)),
    }
}

impl Keeper {
    /// Not started yet.
    pub fn new(knobs: Vec<Parameter>, state_directory: Option<PathBuf>, lease: Arc<Lease>) -> Self {
        Self {
            knobs,
            state_directory,
            lease,
            pipe: None,
            is_lost: false,
            requests: 0,
            instances: Default::default(),
        }
    }

    /// Whether the name may be set here.
    pub fn has(&self, name: &str) -> bool {
        self.knobs.iter().any(|knob| knob.name == name)
    }

    /// Every knob that this machine has.
    pub fn states(&self) -> Vec<ParameterState> {
        self.refresh();
        let instances = self.instances.borrow();
        let mut states = Vec::new();
        for (options, found) in self.knobs.iter().zip(&instances.found) {
            let mut streams = BTreeMap::new();
            let mut first = None;
            for (stream, full) in found {
                let Ok(knob) = catalogue::resolve(full) else {
                    continue;
                };
                let Some(text) = knob.read() else {
                    continue;
                };
                let value = json!(knob.scalar(&text));
                if !stream.is_empty() {
                    streams.insert(stream.clone(), value.clone());
                }
                first.get_or_insert((knob, value));
            }
            if let Some((knob, value)) = first {
                let bounds = knob.bounds();
                states.push(ParameterState {
                    name: options.name.clone(),
                    value,
                    minimum: bounds.map(|it| options.minimum.unwrap_or(f64::MIN).max(it.0 as f64)),
                    maximum: bounds.map(|it| options.maximum.unwrap_or(f64::MAX).min(it.1 as f64)),
                    choices: choices_of(options, &knob),
                    streams,
                });
            }
        }
        states
    }

    fn refresh(&self) {
        let mut instances = self.instances.borrow_mut();
        if instances.looked.is_some_and(|at| at.elapsed() < LOOK_EVERY) {
            return;
        }
        instances.looked = Some(Instant::now());
        instances.found = self.knobs.iter().map(|knob| find(&knob.name)).collect();
    }

    /// Sets a knob, or all that `*` stands for. Returns what is in force.
    pub fn set(
        &mut self,
        name: &str,
        stream: Option<&str>,
        value: &Value,
    ) -> Result<Value, String> {
        let options = self.knobs.iter().find(|it| it.name == name).cloned();
        let options = options.ok_or_else(|| format!("{name}: is not a knob of this node"))?;
        let scalar: Scalar = whole(value)
            .and_then(|value| serde_json::from_value(value).ok())
            .ok_or_else(|| {
                format!("{name} = {value}: expected a whole number, a word or a boolean")
            })?;
        if value.is_number() || !options.choices.is_empty() {
            options
                .allows(value)
                .map_err(|allowed| format!("{name} = {value}: this node allows {allowed}"))?;
        }
        let targets: Vec<String> = find(name)
            .into_iter()
            .filter(|(found, _)| stream.is_none_or(|stream| found == stream))
            .map(|(_, full)| full)
            .collect();
        if targets.is_empty() {
            return Err(format!(
                "{name}: this machine has no {}",
                stream.unwrap_or("such device")
            ));
        }
        // Refused before the first of several is touched.
        for full in &targets {
            let knob = catalogue::resolve(full).map_err(|fault| fault.message)?;
            knob.present().map_err(|fault| fault.message)?;
            knob.check(&scalar).map_err(|fault| fault.message)?;
        }
        let mut effective = Value::Null;
        for full in targets {
            let written = self.ask(json!({"op": "knob_write", "knob": full, "value": scalar}))?;
            effective = written["effective"].clone();
        }
        Ok(effective)
    }

    /// Has everything put back.
    pub fn restore(&mut self) -> Result<Value, String> {
        if self.pipe.is_none() && !self.is_lost {
            return Ok(json!({}));
        }
        let report = self.ask(json!({"op": "restore"}))?;
        match report["failed"].as_array() {
            Some(failed) if !failed.is_empty() => Err(format!("could not be put back: {failed:?}")),
            _ => Ok(report),
        }
    }

    /// A keeper that died has left a journal, which the next one puts back.
    pub fn watch(&mut self) -> Option<String> {
        let pipe = self.pipe.as_mut()?;
        if pipe.alive() {
            return None;
        }
        self.lose();
        Some(match self.start() {
            Ok(()) => "the keeper has ended: another one has put back its knobs".to_owned(),
            Err(fault) => format!("the keeper has ended, and no other starts: {fault}"),
        })
    }

    fn ask(&mut self, mut request: Value) -> Result<Value, String> {
        if self.pipe.is_none() {
            self.start()?;
        }
        self.requests += 1;
        request["id"] = json!(self.requests);
        let pipe = self.pipe.as_mut().ok_or("the keeper is gone")?;
        let answer = pipe.ask(&request, PATIENCE).map_err(|fault| {
            self.lose();
            format!("the keeper {fault}")
        })?;
        match (answer.get("ok"), answer["error"]["message"].as_str()) {
            (Some(found), _) => Ok(found.clone()),
            (None, Some(message)) => Err(message.to_owned()),
            (None, None) => Err(format!("the keeper answers {answer}")),
        }
    }

    fn lose(&mut self) {
        self.pipe = None;
        self.is_lost = true;
    }

    fn start(&mut self) -> Result<(), String> {
        let command = command(self.state_directory.as_deref());
        let mut pipe = Pipe::start(&command, &self.lease)
            .map_err(|error| format!("the keeper does not start: {error}"))?;
        let hello = json!({"id": 0, "op": "hello", "version": VERSION, "owner": "ascard agent"});
        let answer = pipe
            .ask(&hello, PATIENCE)
            .map_err(|fault| format!("the keeper {fault}: it needs root"))?;
        if let Some(message) = answer["error"]["message"].as_str() {
            return Err(message.to_owned());
        }
        self.pipe = Some(pipe);
        self.is_lost = false;
        Ok(())
    }
}

/// What starts a keeper: this binary as root, else, through sudo, the one that only root may write.
pub fn command(state_directory: Option<&Path>) -> Vec<String> {
    let own = std::env::current_exe().map(|path| path.to_string_lossy().into_owned());
    let own = own.unwrap_or_else(|_| "ascard".to_owned());
    let mut command = if nix::unistd::geteuid().is_root() {
        vec![own]
    } else {
        let is_installed = Path::new(INSTALLED).exists();
        let keeper = if is_installed {
            INSTALLED.to_owned()
        } else {
            own
        };
        ["sudo", "-n", "--"]
            .map(str::to_owned)
            .into_iter()
            .chain([keeper])
            .collect()
    };
    command.push("keeper".to_owned());
    if let Some(directory) = state_directory {
        command.push("--state-dir".to_owned());
        command.push(directory.to_string_lossy().into_owned());
    }
    command
}

/// The values of a knob, where not a range says them: those of the node's choices that the knob has, or its own.
fn choices_of(options: &Parameter, knob: &Knob) -> Vec<Value> {
    if options.choices.is_empty() {
        return knob.choices().into_iter().map(Value::from).collect();
    }
    let has = |choice: &Value| {
        let scalar = whole(choice).and_then(|it| serde_json::from_value(it).ok());
        scalar.is_some_and(|it: Scalar| knob.check(&it).is_ok())
    };
    options
        .choices
        .iter()
        .filter(|it| has(it))
        .cloned()
        .collect()
}

/// A whole number may come as 20.0.
fn whole(value: &Value) -> Option<Value> {
    match value {
        Value::Number(number) => match number.as_i64() {
            Some(number) => Some(json!(number)),
            None => number
                .as_f64()
                .filter(|it| it.fract() == 0.0 && it.abs() < 9e15)
                .map(|it| json!(it as i64)),
        },
        Value::String(_) | Value::Bool(_) => Some(value.clone()),
        _ => None,
    }
}

/// What a name stands for here: streams and full names. Without a `*` it is itself, and no stream.
fn find(name: &str) -> Vec<(String, String)> {
    if !name.contains('*') {
        return vec![(String::new(), name.to_owned())];
    }
    let pattern = name.replacen('*', "<dev>", 1);
    let Some(rule) = RULES.iter().find(|rule| rule.pattern == pattern) else {
        return Vec::new();
    };
    let Some((folder, _)) = rule.path.split_once("<dev>") else {
        return Vec::new();
    };
    let old = folder.replacen("/sys/fs/lustre", "/proc/fs/lustre", 1);
    let mut devices: Vec<String> = [folder, old.as_str()]
        .iter()
        .flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten().flatten())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    devices.sort();
    devices.dedup();
    devices
        .into_iter()
        .map(|device| {
            (
                short_of_lustre(&device).to_owned(),
                name.replacen('*', &device, 1),
            )
        })
        .filter(|(_, full)| catalogue::resolve(full).is_ok_and(|knob| knob.read().is_some()))
        .collect()
}
