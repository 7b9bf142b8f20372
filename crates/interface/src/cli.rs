//! `ascard interface`: arguments -> configuration -> session.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use ascar_arguments::{Arguments, Mistake, Word, show};
use ascar_messaging::file::ConfigFile;
use ascar_messaging::{Fault, ending};

use crate::LOG;
use crate::checker::Checker;
use crate::config::Config;
use crate::merge::merge;
use crate::session::Session;

/// What `ascard interface --help` prints; its lines are the options.
pub const HELP: &str = "\
Gather agents' frames into ticks, write the replay database, and check and relay actions.

Usage: ascard interface --config FILE [--check]
       ascard interface merge DATABASE DATABASE... --into DATABASE

The interface ends on SIGTERM or Ctrl-C. Knobs then stay as they are until the agents miss it or another interface
starts. Exit status: 0 ended as told; 1 the work failed; 2 wrong arguments, a wrong file or a wrong database.

Options:
  --config FILE  Read from FILE (TOML) the session, its database, knobs, rules and service level.
  --check        Only check the file, and end.
  -h, --help     Print this help.

Examples:
  ascard interface --config interface.toml --check
  ascard interface --config interface.toml
  ascard interface merge --help               Explain how databases are merged.
";

/// What `ascard interface merge --help` prints; its lines are the options.
pub const MERGE_HELP: &str = "\
Write several replay databases of one system into a new one, the ticks of each after those of the one before.

Usage: ascard interface merge DATABASE DATABASE... --into DATABASE

Options:
  --into DATABASE  Write the new database here; it must not exist yet.
  -h, --help       Print this help.

Examples:
  ascard interface merge monday.sqlite tuesday.sqlite --into both.sqlite
";

#[derive(Debug, Default)]
struct Options {
    help: bool,
    check: bool,
    config: Option<PathBuf>,
}

fn parse(words: impl Iterator<Item = OsString>) -> Result<Options, Mistake> {
    let mut parsed = Options::default();
    let mut words = Arguments::new(HELP, words);
    while let Some(word) = words.next_word()? {
        match word {
            Word::Option("--help") => parsed.help = true,
            Word::Option("--check") => parsed.check = true,
            Word::Option("--config") => parsed.config = Some(words.path()?),
            Word::Option(other) => return Err(words.unknown(other)),
            Word::Value(other) => return Err(words.unknown(other)),
        }
    }
    Ok(parsed)
}

#[derive(Debug, Default)]
struct MergeOptions {
    help: bool,
    sources: Vec<PathBuf>,
    into: Option<PathBuf>,
}

fn parse_merge(words: impl Iterator<Item = OsString>) -> Result<MergeOptions, Mistake> {
    let mut parsed = MergeOptions::default();
    let mut words = Arguments::new(MERGE_HELP, words);
    while let Some(word) = words.next_word()? {
        match word {
            Word::Option("--help") => parsed.help = true,
            Word::Option("--into") => parsed.into = Some(words.path()?),
            Word::Option(other) => return Err(words.unknown(other)),
            Word::Value(source) => parsed.sources.push(source.into()),
        }
    }
    Ok(parsed)
}

/// `merge DATABASE DATABASE... --into DATABASE`.
fn run_merge(words: impl Iterator<Item = OsString>) -> Result<(), Fault> {
    let MergeOptions {
        help,
        sources,
        into,
    } = parse_merge(words).map_err(|Mistake(text)| Fault(text))?;
    if help {
        return told(MERGE_HELP);
    }
    let into = into.ok_or_else(|| Fault("--into: is missing: name the new database".to_owned()))?;
    for one in merge(&sources, &into).map_err(Fault)? {
        let moved = match one.later_by {
            0 => String::new(),
            later_by => format!(", {later_by} later"),
        };
        told(&format!(
            "{}: {} ticks{moved}\n",
            one.source.display(),
            one.ticks
        ))?;
    }
    Ok(())
}

fn told(text: &str) -> Result<(), Fault> {
    show(text).map_err(|Mistake(text)| Fault(text))
}

/// Runs the subcommand. Exit status: 0 ended as told, 1 the work failed, 2 bad arguments, file or database.
pub fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let say = |fault: Fault, status: u8| {
        LOG.line(format_args!("{fault}"));
        ExitCode::from(status)
    };
    let mut arguments = arguments.peekable();
    if arguments.next_if(|it| it == "merge").is_some() {
        return match run_merge(arguments) {
            Ok(()) => ExitCode::SUCCESS,
            Err(fault) => say(fault, 2),
        };
    }
    let Options {
        help,
        check,
        config: path,
    } = match parse(arguments) {
        Ok(parsed) => parsed,
        Err(Mistake(text)) => return say(Fault(text), 2),
    };
    if help {
        return told(HELP).map_or_else(|fault| say(fault, 1), |()| ExitCode::SUCCESS);
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
    if let Err(error) = ascar_privileges::reduce(&ascar_privileges::INTERFACE) {
        return say(Fault(format!("cannot give up rights: {error}")), 1);
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
