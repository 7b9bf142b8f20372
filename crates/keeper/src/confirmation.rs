//! Changes that stay only if somebody confirms them: the process that waits for that, and puts them back otherwise.
//!
//! The journal alone says what waits and until when ([`crate::journal::waiting`]), so that any keeper that starts
//! later does the same as this process. Two of them wait, each beside the other: one that is killed is replaced. The first
//! one begins beside the keeper, before anything is left unconfirmed, and takes its place if it dies at that moment.

use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use nix::sys::signalfd::SignalFd;
use nix::unistd::{Pid, getppid, setsid};

use crate::fault::{Doing, Fault, Result};
use crate::journal::{self, Alone, Deadline, Standing, Waiting};
use crate::program::{self, pidfd};
use crate::report::Report;
use crate::restore::{Scope, restore_stale};
use crate::reverted;
use crate::server::{block_signals, outlive_others};

/// Longest time for which a confirmation can be waited for: a week.
pub const SECONDS_MAX: f64 = 604_800.0;
/// How often the journals are looked at.
const LOOK: Duration = Duration::from_millis(500);
/// How often putting back is tried again where it fails.
const AGAIN: Duration = Duration::from_secs(10);
/// How long it is tried: a server may be starting anew.
const PATIENCE: Duration = Duration::from_secs(3600);
/// How long the first process may take to be there.
const READY: Duration = Duration::from_secs(10);

/// Starts the process that waits, beside this one. It is there when this returns.
///
/// # Errors
/// Failed when it does not start.
pub fn start(directory: &Path, user: bool) -> Result<()> {
    let doing = "start the process that waits for the confirmation";
    let mut child = spawn(directory, user, Stdio::piped())?;
    let mut stdout = child.stdout.take().expect("its output is a pipe");
    let mut watched = [PollFd::new(stdout.as_fd(), PollFlags::POLLIN)];
    let limit = PollTimeout::try_from(READY).unwrap_or(PollTimeout::MAX);
    let is_ready = poll(&mut watched, limit).doing(doing)? > 0;
    if is_ready && stdout.read(&mut [0]).doing(doing)? == 1 {
        return Ok(());
    }
    let _ = child.kill();
    let _ = child.wait();
    Err(Fault::failed(format!("cannot {doing}: it does not begin")))
}

/// Waits beside a process, until nothing waits for its confirmation any more; puts back what gets none in time, and
/// everything unconfirmed when this process is asked to end: the user's session or the machine ends.
///
/// # Errors
/// Failed when it cannot begin.
pub fn wait(directory: &Path, user: bool, beside: Pid) -> Result<Report> {
    let signals = block_signals()?;
    outlive_others();
    let _ = setsid();
    let mut partner = Partner::parent(beside);
    let _ = std::io::stdout()
        .write_all(b"\n")
        .and_then(|()| std::io::stdout().flush());
    let (mut report, mut late) = (Report::default(), Late::default());
    let mut until: Option<Deadline> = None;
    loop {
        let (waiting, is_whole) = journal::look(directory);
        until = waiting
            .iter()
            .map(|it| it.unconfirmed.until)
            .next()
            .or(until);
        let has_company = partner.as_mut().is_some_and(Partner::lives);
        if !has_company {
            partner = None; // or its end would end every wait at once
        }
        // What cannot be read now, for want of memory or descriptors, is looked at again.
        let is_unread = !is_whole && until.is_some_and(|it| !it.left().is_zero());
        if waiting.is_empty() && !is_unread {
            if !has_company {
                // The keeper died beside us and left nothing to confirm: what it had changed goes back.
                report.extend(restore_stale(directory, Scope::Left)?);
            }
            if until.is_some() || !has_company {
                return Ok(report);
            }
        } else if waiting.iter().any(is_over) {
            late.put_back(directory, &mut report);
            if late.is_hopeless() {
                return Ok(report);
            }
        } else if !has_company {
            partner = Partner::started(directory, user);
        }
        let pause = late.pause.max(LOOK).min(shortest(&waiting));
        if ends(&signals, partner.as_ref(), pause)? {
            report.extend(restore_stale(directory, Scope::Unconfirmed)?);
            return Ok(report);
        }
    }
}

/// Lets what an owner has in force stay.
///
/// # Errors
/// Refused when nothing of that owner waits, or its time is over.
pub fn confirm(directory: &Path, owner: &str) -> Result<usize> {
    let nothing = || Fault::refused(format!("{owner:?}: nothing of it waits for a confirmation"));
    if !directory.exists() {
        return Err(nothing());
    }
    let alone = Alone::wait(directory)?;
    for stale in journal::stale(directory, &alone, false)?
        .into_iter()
        .flatten()
    {
        let mut journal = stale.journal;
        let Standing::Unconfirmed(unconfirmed) = stale.standing else {
            continue;
        };
        if journal.header().owner == owner && unconfirmed.left(journal.header()).is_some() {
            journal.hold()?;
            reverted::forget(directory);
            return Ok(journal.entries().len());
        }
    }
    Err(nothing())
}

fn is_over(waiting: &Waiting) -> bool {
    waiting.unconfirmed.left(&waiting.header).is_none()
}

fn shortest(waiting: &[Waiting]) -> Duration {
    let left = waiting
        .iter()
        .filter_map(|it| it.unconfirmed.left(&it.header));
    // A moment later it is surely over.
    left.min()
        .map_or(Duration::MAX, |it| it + Duration::from_millis(1))
}

/// Attempts to put back what nobody has confirmed.
#[derive(Default)]
struct Late {
    since: Option<Instant>,
    pause: Duration,
}

impl Late {
    fn put_back(&mut self, directory: &Path, report: &mut Report) {
        self.since.get_or_insert_with(Instant::now);
        match restore_stale(directory, Scope::Left) {
            Ok(restored) => report.extend(restored),
            Err(fault) => report.failed.push(fault.message),
        }
        self.pause = (2 * self.pause).clamp(LOOK, AGAIN);
    }

    fn is_hopeless(&self) -> bool {
        self.since.is_some_and(|it| it.elapsed() > PATIENCE)
    }
}

/// Whether a signal asks for the end within this time; the end of the partner ends the wait earlier. A terminal that is
/// closed (SIGHUP) changes nothing.
fn ends(signals: &SignalFd, partner: Option<&Partner>, pause: Duration) -> Result<bool> {
    let mut watched = vec![PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
    if let Some(partner) = partner {
        watched.push(PollFd::new(partner.ended.as_fd(), PollFlags::POLLIN));
    }
    let limit = PollTimeout::try_from(pause).unwrap_or(PollTimeout::MAX);
    match poll(&mut watched, limit) {
        Err(nix::Error::EINTR) => return Ok(false),
        found => found.doing("wait for a confirmation")?,
    };
    if !watched[0].any().unwrap_or(true) {
        return Ok(false);
    }
    let signal = signals.read_signal().doing("read a signal")?;
    Ok(signal.is_some_and(|it| it.ssi_signo != Signal::SIGHUP as u32))
}

/// The other process that waits.
struct Partner {
    ended: OwnedFd,
    child: Option<Child>,
}

impl Partner {
    /// The process that has started this one; None when it is gone.
    fn parent(pid: Pid) -> Option<Self> {
        let ended = pidfd(pid.as_raw() as u32).ok()?;
        // Before that, another process could have got the number of a parent that was gone.
        (getppid() == pid).then_some(Self { ended, child: None })
    }

    /// A new one; None where it cannot be started now.
    fn started(directory: &Path, user: bool) -> Option<Self> {
        let child = spawn(directory, user, Stdio::null()).ok()?;
        let ended = pidfd(child.id()).ok()?;
        Some(Self {
            ended,
            child: Some(child),
        })
    }

    fn lives(&mut self) -> bool {
        let mut watched = [PollFd::new(self.ended.as_fd(), PollFlags::POLLIN)];
        let has_ended = poll(&mut watched, PollTimeout::ZERO).is_ok_and(|count| count > 0);
        if has_ended && let Some(child) = &mut self.child {
            let _ = child.wait();
        }
        !has_ended
    }
}

/// The same program as this one, even if its file was replaced meanwhile. It has no part of the environment: who asked
/// for the changes, through sudo or not, is not who asks it to wait.
fn spawn(directory: &Path, user: bool, stdout: Stdio) -> Result<Child> {
    let mut command = Command::new("/proc/self/exe");
    command.arg0("ascard").arg("keeper");
    if user {
        command.arg("--user");
    }
    command
        .args(["--wait", &std::process::id().to_string()])
        .arg("--state-dir")
        .arg(directory)
        .env_clear()
        .env("PATH", program::search_path())
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(stdout)
        .stderr(Stdio::null());
    command
        .spawn()
        .doing("start the process that waits for the confirmation")
}
