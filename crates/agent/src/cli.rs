//! `ascard agent`: arguments -> configuration -> session.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use ascar_arguments::{Arguments, Mistake, Word, show};
use ascar_messaging::file::ConfigFile;
use ascar_messaging::{Fault, ending};
use serde_json::json;

use crate::LOG;
use crate::collectors::CollectorOptions;
use crate::config::Config;
use crate::controllers::{Controllers, keepers_command};
use crate::footprint;
use crate::lease::{self, Lease};
use crate::relay;
use crate::sampler::Sampler;
use crate::session::Session;
use crate::starter::{Words, fork_starter};
use crate::windows::Windows;

/// What `ascard agent --help` prints; its lines are the options.
pub const HELP: &str = "\
Sample this node's indicators once a tick, and set its knobs when told.

Usage: ascard agent --config FILE [--check | --once]

The agent connects to the message server and listens nowhere. It ends on SIGTERM or Ctrl-C and then puts every
knob back. Its controllers work under `ascard agent lease`. Exit status: 0 ended as told; 1 a knob could not be put back; 2 wrong arguments or a wrong file.

Options:
  --config FILE  Read from FILE (TOML) what to sample and what may be set.
  --check        Only check the file, and end.
  --once         Print one sample as JSON, and end; nothing is sent to anybody.
  -h, --help     Print this help.

Examples:
  ascard agent --config agent.toml --check
  ascard agent --config agent.toml --once     Show which indicators this node has.
  ascard agent --config agent.toml
";

#[derive(Debug, Default)]
struct Options {
    help: bool,
    check: bool,
    once: bool,
    config: Option<PathBuf>,
}

fn parse(words: impl Iterator<Item = OsString>) -> Result<Options, Mistake> {
    let mut parsed = Options::default();
    let mut words = Arguments::new(HELP, words);
    while let Some(word) = words.next_word()? {
        match word {
            Word::Option("--help") => parsed.help = true,
            Word::Option("--check") => parsed.check = true,
            Word::Option("--once") => parsed.once = true,
            Word::Option("--config") => parsed.config = Some(words.path()?),
            Word::Option(other) => return Err(words.unknown(other)),
            Word::Value(other) => return Err(words.unknown(other)),
        }
    }
    Ok(parsed)
}

/// Runs the subcommand. Exit status: 0 ended as told, 1 a knob could not be put back, 2 bad arguments or file.
pub fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let say = |fault: Fault, status: u8| {
        LOG.line(format_args!("{fault}"));
        ExitCode::from(status)
    };
    let mut arguments = arguments.peekable();
    if arguments.next_if(|it| it == "lease").is_some() {
        return match lease::cli::run(arguments) {
            Ok(status) => status,
            Err(fault) => say(fault, 2),
        };
    }
    let arguments = match parse(arguments) {
        Ok(arguments) => arguments,
        Err(Mistake(text)) => return say(Fault(text), 2),
    };
    if arguments.help {
        return told(HELP).map_or_else(|fault| say(fault, 1), |()| ExitCode::SUCCESS);
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
        return once(&config).map_or_else(|fault| say(fault, 1), |()| ExitCode::SUCCESS);
    }
    if let Err(fault) = config.options() {
        return say(fault, 2);
    }
    if arguments.check {
        return ExitCode::SUCCESS;
    }
    let parted = fork_starter(programs_of(&config))
        .and_then(|()| ascar_privileges::reduce(&ascar_privileges::AGENT));
    if let Err(error) = parted {
        return say(Fault(format!("cannot give up rights: {error}")), 1);
    }
    footprint::share_heap();
    let stopped = match ending::on_signals() {
        Ok(stopped) => stopped,
        Err(fault) => return say(fault, 1),
    };
    match work(config, stopped) {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => say(fault, 1),
    }
}

/// Works until told to stop, then puts everything back.
fn work(config: Config, stopped: fn() -> bool) -> Result<(), Fault> {
    relay::start(&config)?;
    let windows = Windows::start(&config)?;
    let worked = Session::new(config, stopped).and_then(|mut session| session.run());
    if let Some(windows) = windows {
        windows.end();
    }
    worked
}

/// All that this agent may start.
fn programs_of(config: &Config) -> Vec<Words> {
    let listened_to = config.collectors.iter().filter_map(|it| match it {
        CollectorOptions::Program { command, .. } => Some(Words {
            command: command.clone(),
            is_asked: false,
        }),
        _ => None,
    });
    let commands = config.programs.iter().map(|it| it.command.clone());
    let keeper = keepers_command(config.state_directory.as_deref());
    let keeper = Some(keeper).filter(|_| !config.knobs.is_empty() || config.windows.is_some());
    let asked = commands.chain(keeper).filter(|_| !config.monitor_only);
    let asked = asked.map(|command| Words {
        command,
        is_asked: true,
    });
    listened_to.chain(asked).collect()
}

/// Two samples, an interval apart, for rates need two.
fn once(config: &Config) -> Result<(), Fault> {
    let lease = Lease::new().map_err(|error| Fault(format!("memory to share: {error}")))?;
    let controllers = Controllers::new(config.knobs.clone(), Vec::new(), None, &Arc::new(lease));
    let mut sampler = Sampler::new(config);
    sampler.begin();
    std::thread::sleep(config.interval());
    sampler.begin();
    sampler.finish(&controllers.levels());
    let sample = &sampler.sample;
    let values: serde_json::Map<String, serde_json::Value> = sample
        .names()
        .iter()
        .zip(sample.values())
        .map(|(name, value)| (name.clone(), json!(value)))
        .collect();
    told(&format!(
        "{}\n",
        json!({"node": config.node, "indicators": values})
    ))
}

pub(crate) fn told(text: &str) -> Result<(), Fault> {
    show(text).map_err(|Mistake(text)| Fault(text))
}
