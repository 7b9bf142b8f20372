//! `ascard keeper`: arguments -> serve or restore.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use ascar_arguments::{Arguments, Mistake, Word};

use crate::fault::{Fault, Kind, Result};
use crate::journal;
use crate::report::Report;
use crate::restore;
use crate::server;

/// What `ascard keeper --help` prints; its lines are the options.
pub const HELP: &str = "\
Change the machine on behalf of ascar, and put everything back.

Usage: ascard keeper [--hold] [--state-dir DIR]
       ascard keeper --restore [--all] [--state-dir DIR]

The keeper serves JSON lines on stdin and stdout until stdin is closed, and then puts everything back. It needs root.
Exit status: 0 done; 1 something could not be put back; 2 wrong arguments, or no root.

Options:
  --hold           Keep the knobs as they are after a proper shutdown; `--restore --all` undoes them.
  --restore        Put back what dead keepers left, and print {\"restored\", \"left_alone\", \"failed\"}.
  --all            With --restore: put back also what was meant to stay.
  --state-dir DIR  Keep the journal in DIR [default: /var/lib/ascar/journal].
  -h, --help       Print this help.

Examples:
  sudo ascard keeper --restore             Put back what a keeper that was killed has left changed.
  sudo ascard keeper --restore --all       Undo also what `--hold` kept.
";

#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    help: bool,
    hold: bool,
    restore: bool,
    all: bool,
    state_directory: Option<PathBuf>,
}

impl From<Mistake> for Fault {
    fn from(Mistake(text): Mistake) -> Self {
        Fault::input(text)
    }
}

fn parse(words: impl Iterator<Item = OsString>) -> Result<Options> {
    let mut parsed = Options::default();
    let mut words = Arguments::new(HELP, words);
    while let Some(word) = words.next_word()? {
        match word {
            Word::Option("--help") => parsed.help = true,
            Word::Option("--hold") => parsed.hold = true,
            Word::Option("--restore") => parsed.restore = true,
            Word::Option("--all") => parsed.all = true,
            Word::Option("--state-dir") => parsed.state_directory = Some(words.path()?),
            Word::Option(other) => return Err(words.unknown(other).into()),
            Word::Value(other) => return Err(words.unknown(other).into()),
        }
    }
    if parsed.all && !parsed.restore {
        return Err(Fault::input("--all: is only allowed with --restore"));
    }
    if parsed.hold && parsed.restore {
        return Err(Fault::input("--hold: is not allowed with --restore"));
    }
    Ok(parsed)
}

/// Runs the subcommand. Exit status: 0 done, 1 something failed, 2 bad arguments or no root.
pub fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    match parse(arguments).and_then(|arguments| execute(&arguments)) {
        Ok(report) if report.failed.is_empty() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(1),
        Err(fault) => {
            eprintln!("ascard keeper: {}", fault.message);
            ExitCode::from(if matches!(fault.kind, Kind::Input | Kind::Refused) {
                2
            } else {
                1
            })
        }
    }
}

fn execute(arguments: &Options) -> Result<Report> {
    if arguments.help {
        print!("{HELP}");
        return Ok(Report::default());
    }
    if !nix::unistd::geteuid().is_root() {
        return Err(Fault::refused("needs root: start it through sudo"));
    }
    let directory = arguments
        .state_directory
        .clone()
        .unwrap_or_else(|| journal::DIRECTORY.into());
    let directory = std::path::absolute(&directory)
        .map_err(|error| Fault::input(format!("--state-dir = {}: {error}", directory.display())))?;
    if arguments.restore {
        let report = restore::restore_stale(&directory, arguments.all)?;
        println!(
            "{}",
            serde_json::to_string(&report).expect("a report is plain data")
        );
        return Ok(report);
    }
    let report = server::serve(&directory, arguments.hold)?;
    for left in &report.left_alone {
        eprintln!(
            "ascard keeper: {} is {:?}, not {:?}: left alone",
            left.target, left.found, left.expected
        );
    }
    for failed in &report.failed {
        eprintln!("ascard keeper: {failed}");
    }
    Ok(report)
}
