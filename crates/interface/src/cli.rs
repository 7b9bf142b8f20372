//! `ascard interface`: arguments -> configuration -> session.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use ascar_messaging::file::ConfigFile;
use ascar_messaging::{Fault, ending};

use crate::checker::Checker;
use crate::config::Config;
use crate::merge::merge;
use crate::session::Session;

/// What `ascard interface --help` prints.
pub const HELP: &str = "\
ascard interface: gathers agents' frames into ticks, writes the replay database, checks and relays actions

Usage: ascard interface --config FILE [--check]
       ascard interface merge DATABASE DATABASE... --into DATABASE

Ends on SIGTERM or Ctrl-C. Knobs stay as they are then, until the agents miss it or another interface comes.

Options:
  --config FILE  the session, its database, knobs, rules and service level (TOML)
  --check        only say whether the file is right
  merge          write several replay databases of one system into a new one, their ticks behind each other
  --help         print this

Examples:
  ascard interface --config interface.toml --check
  ascard interface --config interface.toml
  ascard interface merge monday.sqlite tuesday.sqlite --into both.sqlite
";

fn parse(
    arguments: impl Iterator<Item = OsString>,
) -> Result<(bool, bool, Option<PathBuf>), Fault> {
    let (mut help, mut check, mut config) = (false, false, None);
    let mut arguments = arguments;
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some("--help" | "-h") => help = true,
            Some("--check") => check = true,
            Some("--config") => {
                let file = arguments
                    .next()
                    .ok_or_else(|| Fault("--config: names no file".to_owned()))?;
                config = Some(PathBuf::from(file));
            }
            _ => {
                return Err(Fault(format!(
                    "{argument:?}: unknown argument: see `ascard interface --help`"
                )));
            }
        }
    }
    Ok((help, check, config))
}

/// `merge DATABASE DATABASE... --into DATABASE`.
fn run_merge(arguments: impl Iterator<Item = OsString>) -> Result<(), Fault> {
    let (mut sources, mut into) = (Vec::new(), None);
    let mut arguments = arguments;
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some("--into") => into = arguments.next().map(PathBuf::from),
            Some(word) if word.starts_with('-') => {
                return Err(Fault(format!(
                    "{word:?}: unknown argument: see `ascard interface --help`"
                )));
            }
            _ => sources.push(PathBuf::from(argument)),
        }
    }
    let into = into.ok_or_else(|| Fault("--into: is missing: name the new database".to_owned()))?;
    for one in merge(&sources, &into).map_err(Fault)? {
        let moved = match one.later_by {
            0 => String::new(),
            later_by => format!(", {later_by} later"),
        };
        println!("{}: {} ticks{moved}", one.source.display(), one.ticks);
    }
    Ok(())
}

/// Runs the subcommand. Exit status: 0 ended as told, 1 the work failed, 2 bad arguments, file or database.
pub fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let say = |fault: Fault, status: u8| {
        eprintln!("ascard interface: {fault}");
        ExitCode::from(status)
    };
    let mut arguments = arguments.peekable();
    if arguments.next_if(|it| it == "merge").is_some() {
        return match run_merge(arguments) {
            Ok(()) => ExitCode::SUCCESS,
            Err(fault) => say(fault, 2),
        };
    }
    let (help, check, path) = match parse(arguments) {
        Ok(parsed) => parsed,
        Err(fault) => return say(fault, 2),
    };
    if help {
        print!("{HELP}");
        return ExitCode::SUCCESS;
    }
    let read = path
        .ok_or_else(|| Fault("--config: is missing: see `ascard interface --help`".to_owned()))
        .and_then(|path| Config::read(&path))
        .and_then(|config| config.options().map(|_| config));
    let config = match read {
        Ok(config) => config,
        Err(fault) => return say(fault, 2),
    };
    if check {
        return match Checker::new(&config) {
            Ok(_) => ExitCode::SUCCESS,
            Err(fault) => say(fault, 2),
        };
    }
    let stopped = match ending::on_signals() {
        Ok(stopped) => stopped,
        Err(fault) => return say(fault, 1),
    };
    let mut session = match Session::new(config, stopped) {
        Ok(session) => session,
        Err(fault) => return say(fault, 2),
    };
    match session.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => say(fault, 1),
    }
}
