//! `ascard keeper`: arguments -> serve or restore.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use ascar_arguments::{Arguments, Mistake, Word};
use ascar_privileges as privileges;
use nix::unistd::Pid;

use crate::LOG;
use crate::confirmation;
use crate::fault::{Doing, Fault, Kind, Result};
use crate::invoker::Invoker;
use crate::journal;
use crate::report::Report;
use crate::restore::{self, Scope};
use crate::server;
use crate::started::{GRACE_S_MAX, Started};
use crate::sudo;

const GRACE_S: f64 = 10.0;

/// What `ascard keeper --help` prints; its lines are the options.
pub const HELP: &str = "\
Change the machine on behalf of ascar, and put everything back.

Usage: ascard keeper [--user] [--hold] [--state-dir DIR]
       ascard keeper [--user] --restore [--all] [--state-dir DIR]
       ascard keeper [--user] --wait PID [--state-dir DIR]
       ascard keeper --end PROCESS [--grace S]

The keeper serves JSON lines on stdin and stdout until stdin is closed, and then puts everything back. It needs root,
unless it is started with --user: then it changes the user's files, and nothing else, and keeps its journal in
~/.local/state/ascar/journal. Through sudo it takes no options but --hold, --restore and --all, and refuses to run from a
file that others than root may write; `sudo make install-keeper` installs one that only root may.
Exit status: 0 done; 1 something could not be put back; 2 wrong arguments, or no root.

Options:
  --user           Change files of the user who starts it, without root.
  --hold           Keep the changes as they are after a proper shutdown; `--restore --all` undoes them.
  --restore        Put back what dead keepers left, and print {\"restored\", \"left_alone\", \"failed\", \"unconfirmed\"}.
  --all            With --restore: put back also what was meant to stay, and what waits for its confirmation.
  --wait PID       Put back what is not confirmed in time, beside the keeper PID, which starts this itself.
  --end PROCESS    End a program that ascar started, PID:START:MARK, and all that the program started.
  --grace S        With --end: kill what has not ended S seconds after SIGTERM [default: 10].
  --state-dir DIR  Keep the journal in DIR [default: /var/lib/ascar/journal].
  -h, --help       Print this help.

Examples:
  sudo /usr/libexec/ascar/ascard keeper --restore          Put back what a killed keeper has left changed.
  sudo /usr/libexec/ascar/ascard keeper --restore --all    Undo also what `--hold` kept.
  ascard keeper --user --restore                           Put back the user's files, without root.
";

#[derive(Debug, Default, PartialEq)]
struct Options {
    help: bool,
    user: bool,
    hold: bool,
    restore: bool,
    all: bool,
    wait: Option<Pid>,
    end: Option<Started>,
    grace_s: Option<f64>,
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
            Word::Option("--user") => parsed.user = true,
            Word::Option("--hold") => parsed.hold = true,
            Word::Option("--restore") => parsed.restore = true,
            Word::Option("--all") => parsed.all = true,
            Word::Option("--wait") => parsed.wait = Some(process(&words.text()?)?),
            Word::Option("--end") => parsed.end = Some(Started::parse(&words.text()?)?),
            Word::Option("--grace") => parsed.grace_s = Some(words.number(0.0, GRACE_S_MAX)?),
            Word::Option("--state-dir") => parsed.state_directory = Some(words.path()?),
            Word::Option(other) => return Err(words.unknown(other).into()),
            Word::Value(other) => return Err(words.unknown(other).into()),
        }
    }
    if parsed.all && !parsed.restore {
        return Err(Fault::input("--all: is only allowed with --restore"));
    }
    if parsed.grace_s.is_some() && parsed.end.is_none() {
        return Err(Fault::input("--grace: is only allowed with --end"));
    }
    if parsed.wait.is_some() && (parsed.restore || parsed.hold || parsed.end.is_some()) {
        return Err(Fault::input(
            "--wait: is not allowed with --restore, --hold or --end",
        ));
    }
    if parsed.end.is_some() && (parsed.restore || parsed.hold) {
        return Err(Fault::input(
            "--end: is not allowed with --restore or --hold",
        ));
    }
    if parsed.hold && parsed.restore {
        return Err(Fault::input("--hold: is not allowed with --restore"));
    }
    Ok(parsed)
}

fn process(text: &str) -> Result<Pid> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.map(Pid::from_raw).ok_or_else(|| {
        Fault::input(format!(
            "--wait = {text:?}: must be the number of a process"
        ))
    })
}

/// Runs the subcommand. Exit status: 0 done, 1 something failed, 2 bad arguments or no root.
pub fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    match parse(arguments).and_then(|arguments| execute(&arguments)) {
        Ok(report) if report.failed.is_empty() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(1),
        Err(fault) => {
            LOG.line(&fault.message);
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
        write!(std::io::stdout(), "{HELP}").doing("tell the options")?;
        return Ok(Report::default());
    }
    let role = if arguments.user || arguments.end.is_some() {
        privileges::USERS_KEEPER
    } else {
        privileges::KEEPER
    };
    privileges::reduce(&role).doing("give up rights")?;
    if Invoker::discover().through_sudo {
        sudo::check(&[
            ("--user", arguments.user),
            ("--end", arguments.end.is_some()),
            ("--wait", arguments.wait.is_some()),
            ("--state-dir", arguments.state_directory.is_some()),
        ])?;
    }
    if let Some(program) = &arguments.end {
        let grace = Duration::from_secs_f64(arguments.grace_s.unwrap_or(GRACE_S));
        program.end(grace)?;
        return Ok(Report::default());
    }
    if !arguments.user && !nix::unistd::geteuid().is_root() {
        return Err(Fault::refused("needs root: start it through sudo"));
    }
    let directory = match &arguments.state_directory {
        Some(directory) => directory.clone(),
        None if arguments.user => users_journal()?,
        None => journal::DIRECTORY.into(),
    };
    let directory = std::path::absolute(&directory)
        .map_err(|error| Fault::input(format!("--state-dir = {}: {error}", directory.display())))?;
    if let Some(keeper) = arguments.wait {
        return confirmation::wait(&directory, arguments.user, keeper);
    }
    if arguments.restore {
        let scope = if arguments.all {
            Scope::Everything
        } else {
            Scope::Left
        };
        let report = restore::restore_stale(&directory, scope)?;
        let told = serde_json::to_string(&report).expect("a report is plain data");
        writeln!(std::io::stdout(), "{told}").doing("tell what was put back")?;
        return Ok(report);
    }
    let report = server::serve(&directory, arguments.hold, arguments.user)?;
    for left in &report.left_alone {
        LOG.line(format_args!(
            "{} is {:?}, not {:?}: left alone",
            left.target, left.found, left.expected
        ));
    }
    for failed in &report.failed {
        LOG.line(failed);
    }
    Ok(report)
}

/// The journal of the user who runs this.
fn users_journal() -> Result<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let state = variable("XDG_STATE_HOME").map(PathBuf::from);
    let state = state.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".local/state")));
    state
        .filter(|path| path.is_absolute())
        .map(|path| path.join("ascar/journal"))
        .ok_or_else(|| Fault::input("HOME: is not an absolute path: name a place with --state-dir"))
}
