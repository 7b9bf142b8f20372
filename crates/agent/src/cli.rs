//! `ascard agent`: arguments -> configuration -> session.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use ascar_messaging::file::ConfigFile;
use ascar_messaging::{Fault, ending};
use serde_json::json;

use crate::config::Config;
use crate::controllers::Controllers;
use crate::session::{Sampler, Session};

/// What `ascard agent --help` prints.
pub const HELP: &str = "\
ascard agent: samples this node's indicators once a tick, and sets its knobs when told

Usage: ascard agent --config FILE [--check | --once]

Dials out to the message server and listens nowhere. Ends on SIGTERM or Ctrl-C, with every knob put back.

Options:
  --config FILE  what to read and what may be set (TOML)
  --check        only say whether the file is right
  --once         print one sample as JSON, and end; speaks to nobody
  --help         print this

Examples:
  ascard agent --config agent.toml --check
  ascard agent --config agent.toml --once     which indicators are there?
  ascard agent --config agent.toml
";

#[derive(Debug, Default)]
struct Arguments {
    help: bool,
    check: bool,
    once: bool,
    config: Option<PathBuf>,
}

fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Arguments, Fault> {
    let mut parsed = Arguments::default();
    let mut arguments = arguments;
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some("--help" | "-h") => parsed.help = true,
            Some("--check") => parsed.check = true,
            Some("--once") => parsed.once = true,
            Some("--config") => {
                let file = arguments
                    .next()
                    .ok_or_else(|| Fault("--config: names no file".to_owned()))?;
                parsed.config = Some(file.into());
            }
            _ => {
                return Err(Fault(format!(
                    "{argument:?}: unknown argument: see `ascard agent --help`"
                )));
            }
        }
    }
    Ok(parsed)
}

/// Runs the subcommand. Exit status: 0 ended as told, 1 a knob could not be put back, 2 bad arguments or file.
pub fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let say = |fault: Fault, status: u8| {
        eprintln!("ascard agent: {fault}");
        ExitCode::from(status)
    };
    let arguments = match parse(arguments) {
        Ok(arguments) => arguments,
        Err(fault) => return say(fault, 2),
    };
    if arguments.help {
        print!("{HELP}");
        return ExitCode::SUCCESS;
    }
    let read = arguments
        .config
        .as_ref()
        .ok_or_else(|| Fault("--config: is missing: see `ascard agent --help`".to_owned()))
        .and_then(|path| Config::read(path));
    let config = match read {
        Ok(config) => config,
        Err(fault) => return say(fault, 2),
    };
    if arguments.once {
        // Nobody is spoken to.
        once(&config);
        return ExitCode::SUCCESS;
    }
    if let Err(fault) = config.options() {
        return say(fault, 2);
    }
    if arguments.check {
        return ExitCode::SUCCESS;
    }
    let stopped = match ending::on_signals() {
        Ok(stopped) => stopped,
        Err(fault) => return say(fault, 1),
    };
    match Session::new(config, stopped).run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => say(fault, 1),
    }
}

/// Two samples, an interval apart, for rates need two.
fn once(config: &Config) {
    let mut controllers = Controllers::new(config.knobs.clone(), Vec::new(), None);
    let mut sampler = Sampler::new(config);
    sampler.take(&mut controllers);
    std::thread::sleep(config.interval());
    sampler.take(&mut controllers);
    let sample = &sampler.sample;
    let values: serde_json::Map<String, serde_json::Value> = sample
        .names()
        .iter()
        .zip(sample.values())
        .map(|(name, value)| (name.clone(), json!(value)))
        .collect();
    println!("{}", json!({"node": config.node, "indicators": values}));
}
