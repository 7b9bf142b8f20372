//! `ascard agent lease`: arguments -> holder.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitCode;

use ascar_arguments::{Arguments, Mistake, Word};
use ascar_messaging::Fault;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};

use super::holder::Holder;
use crate::cli::told;

/// What `ascard agent lease --help` prints; its lines are the options.
pub const HELP: &str = "\
Run a controller of an agent, and end its input when the agent is gone or its lease has run out.

Usage: ascard agent lease --memory N --series N -- COMMAND [ARGUMENT]...

The agent starts this for the keeper and for each program that sets knobs, so that knobs go back although the agent is
stopped or waits for a file that never answers. Exit status: that of COMMAND; 2 wrong arguments.

Options:
  --memory N  Read the lease from the open file with this descriptor.
  --series N  Hold the lease only as long as it is of this series.
  -h, --help  Print this help.

Examples:
  ascard agent lease --memory 5 --series 0 -- ascard keeper
";

/// Lowest descriptor of a lease: those below are the standard streams.
const DESCRIPTOR_MIN: f64 = 3.0;
const DESCRIPTOR_MAX: f64 = 1_000_000.0;

#[derive(Debug, Default)]
struct Options {
    help: bool,
    memory: Option<i32>,
    series: u64,
    command: Vec<OsString>,
}

fn parse(words: impl Iterator<Item = OsString>) -> Result<Options, Mistake> {
    let mut parsed = Options::default();
    let mut words = Arguments::new(HELP, words);
    while let Some(word) = words.next_word()? {
        match word {
            Word::Option("--help") => parsed.help = true,
            Word::Option("--memory") => {
                parsed.memory = Some(words.number(DESCRIPTOR_MIN, DESCRIPTOR_MAX)? as i32);
            }
            Word::Option("--series") => parsed.series = words.number(0.0, 1e15)? as u64,
            Word::Option(other) => return Err(words.unknown(other)),
            Word::Value(first) => {
                parsed.command = vec![first];
                parsed.command.extend(words.rest());
                return Ok(parsed);
            }
        }
    }
    Ok(parsed)
}

/// Runs the subcommand.
///
/// # Errors
/// What is wrong with the arguments, or why the controller cannot be started.
pub fn run(words: impl Iterator<Item = OsString>) -> Result<ExitCode, Fault> {
    let options = parse(words).map_err(|Mistake(text)| Fault(text))?;
    if options.help {
        return told(HELP).map(|()| ExitCode::SUCCESS);
    }
    let memory = options
        .memory
        .ok_or_else(|| Fault("--memory: is missing: the agent gives it".to_owned()))?;
    if options.command.is_empty() {
        return Err(Fault("COMMAND: is missing".to_owned()));
    }
    let name = options.command[0].to_string_lossy().into_owned();
    // SAFETY: nothing in this process but this owns a descriptor above the standard streams yet; one that is not open
    // is noticed with its first use.
    let memory = unsafe { OwnedFd::from_raw_fd(memory) };
    // The controller does not need it.
    fcntl(&memory, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))
        .map_err(|error| Fault(format!("--memory: {error}")))?;
    let holder = Holder {
        memory: File::from(memory),
        series: options.series,
        command: options.command,
    };
    let status = holder
        .run()
        .map_err(|error| Fault(format!("{name}: {error}")))?;
    let code = status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    Ok(ExitCode::from(code as u8))
}
