//! `ascard keeper`: arguments -> serve or restore.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::fault::{Fault, Kind, Result};
use crate::journal;
use crate::report::Report;
use crate::restore;
use crate::server;

/// What `ascard keeper --help` prints.
pub const HELP: &str = "\
ascard keeper: changes the machine on behalf of ascar, and puts everything back

Usage: ascard keeper [--hold] [--state-dir DIR]
       ascard keeper --restore [--all] [--state-dir DIR]

Serves JSON lines on stdin and stdout until stdin is closed, then puts everything back. Needs root.

Options:
  --hold           keep the knobs as they are after a proper shutdown; --restore --all undoes them
  --restore        put back what dead keepers left; prints {\"restored\", \"left_alone\", \"failed\"}
  --all            with --restore: also what was meant to stay
  --state-dir DIR  where the journal is [default: /var/lib/ascar/journal]
  --help           print this
";

#[derive(Debug, Default, PartialEq, Eq)]
struct Arguments {
    help: bool,
    hold: bool,
    restore: bool,
    all: bool,
    state_directory: Option<PathBuf>,
}

fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Arguments> {
    let mut parsed = Arguments::default();
    let mut arguments = arguments;
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some("--help" | "-h") => parsed.help = true,
            Some("--hold") => parsed.hold = true,
            Some("--restore") => parsed.restore = true,
            Some("--all") => parsed.all = true,
            Some("--state-dir") => {
                let directory = arguments
                    .next()
                    .ok_or_else(|| Fault::input("--state-dir: names no directory"))?;
                parsed.state_directory = Some(directory.into());
            }
            _ => {
                return Err(Fault::input(format!(
                    "{argument:?}: unknown argument: see `ascard keeper --help`"
                )));
            }
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

fn execute(arguments: &Arguments) -> Result<Report> {
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
