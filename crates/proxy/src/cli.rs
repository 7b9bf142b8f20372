//! `ascard proxy`: arguments -> configuration -> the daemon.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use ascar_arguments::{Arguments, Mistake, Word, show};
use ascar_log::Fault;

use crate::LOG;
use crate::config::Config;
use crate::ending::Ending;
use crate::running::Proxy;
use crate::watching::{reach, watch};

/// What `ascard proxy --help` prints; its lines are the options.
pub const HELP: &str = "\
Hold clients of NBD, HTTP (S3) and Redis on this node to a window and a pace, which rules may change while they work.

Usage: ascard proxy --config FILE [--check | --watch]

The proxy stands between unchanged clients and unchanged servers, and passes their bytes on as they are. It ends on
SIGTERM, SIGHUP or Ctrl-C, and closes what it has connected. Exit status: 0 ended as told; 1 the work failed; 2 wrong arguments or a wrong file.

Options:
  --config FILE  Read from FILE (TOML) who is connected to whom, and where rules come from.
  --check        Only check the file, and end.
  --watch        Print what the streams of the running proxy show, one JSON object a second.
  -h, --help     Print this help.

Examples:
  ascard proxy --config proxy.toml --check
  ascard proxy --config proxy.toml
  ascard proxy --config proxy.toml --watch    Show windows, requests in flight and bytes.
";

#[derive(Debug, Default)]
struct Options {
    help: bool,
    check: bool,
    watch: bool,
    config: Option<PathBuf>,
}

fn parse(words: impl Iterator<Item = OsString>) -> Result<Options, Mistake> {
    let mut parsed = Options::default();
    let mut words = Arguments::new(HELP, words);
    while let Some(word) = words.next_word()? {
        match word {
            Word::Option("--help") => parsed.help = true,
            Word::Option("--check") => parsed.check = true,
            Word::Option("--watch") => parsed.watch = true,
            Word::Option("--config") => parsed.config = Some(words.path()?),
            Word::Option(other) => return Err(words.unknown(other)),
            Word::Value(other) => return Err(words.unknown(other)),
        }
    }
    Ok(parsed)
}

/// Runs the subcommand. Exit status: 0 ended as told, 1 the work failed, 2 bad arguments or file.
pub fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let say = |fault: Fault, status: u8| {
        LOG.line(fault);
        ExitCode::from(status)
    };
    let options = match parse(arguments) {
        Ok(options) => options,
        Err(Mistake(text)) => return say(Fault(text), 2),
    };
    if options.help {
        return match show(HELP) {
            Ok(()) => ExitCode::SUCCESS,
            Err(Mistake(text)) => say(Fault(text), 1),
        };
    }
    let read = options
        .config
        .ok_or_else(|| Fault("--config: is missing: see `ascard proxy --help`".to_owned()))
        .and_then(|path| Config::read(&path));
    let config = match read {
        Ok(config) => config,
        Err(fault) => return say(fault, 2),
    };
    if options.check {
        return ExitCode::SUCCESS;
    }
    // Before rights are given up: root may watch the proxy of another user.
    let watched = match options.watch.then(|| reach(&config)).transpose() {
        Ok(watched) => watched,
        Err(fault) => return say(fault, 1),
    };
    if let Err(error) = ascar_privileges::reduce(&ascar_privileges::PROXY) {
        return say(Fault(format!("cannot give up rights: {error}")), 1);
    }
    let worked = match watched {
        Some(socket) => watch(&config, &socket),
        None => work(&config),
    };
    match worked {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => say(fault, 1),
    }
}

fn work(config: &Config) -> Result<(), Fault> {
    // Before the first thread, which takes it over.
    let ending = Ending::of_this_process()?;
    let proxy = Proxy::start(config)?;
    proxy.run(&ending);
    Ok(())
}
