//! Programs that a client started itself, ended with all that they started.
//!
//! The client starts a program as the leader of a session of its own, with a mark in its environment. A program may
//! overwrite its environment (nginx and Redis do, for their titles) or leave the session (a daemon does); what does
//! neither or one of them is found.

use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::fault::{Fault, Result};
use crate::processes;

/// The variable that carries the mark.
pub const VARIABLE: &str = "ASCAR_PROGRAM";
/// Longest time that a program has to end by itself.
pub const GRACE_S_MAX: f64 = 50.0;
const LOOK: Duration = Duration::from_millis(5);
/// How long killed processes may take to be gone.
const DEATH_PATIENCE: Duration = Duration::from_secs(5);

/// A program that was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    /// The leader of its session.
    leader: i32,
    /// When the leader began, in the kernel's ticks since the boot: another process of the same number began later.
    began: u64,
    mark: String,
}

impl Started {
    /// Reads `PID:START:MARK`.
    ///
    /// # Errors
    /// Input when it is something else.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = || {
            Fault::input(format!(
                "--end = {text:?}: must be PID:START:MARK, as ascar writes it"
            ))
        };
        let mut parts = text.splitn(3, ':');
        let mut next = || parts.next().ok_or_else(wrong);
        let leader = next()?.parse().map_err(|_| wrong())?;
        let began = next()?.parse().map_err(|_| wrong())?;
        let mark = next()?.to_owned();
        let is_mark = mark.len() == 32 && mark.bytes().all(|it| it.is_ascii_hexdigit());
        if leader <= 1 || !is_mark {
            return Err(wrong());
        }
        Ok(Self {
            leader,
            began,
            mark,
        })
    }

    /// Asks all of it to end (SIGTERM), and kills what is left after `grace`.
    ///
    /// # Errors
    /// Failed when something of it does not die.
    pub fn end(&self, grace: Duration) -> Result<()> {
        let started = Instant::now();
        self.signal(Signal::SIGTERM);
        while started.elapsed() < grace {
            if self.processes().is_empty() {
                return Ok(());
            }
            std::thread::sleep(LOOK);
        }
        loop {
            let left = self.signal(Signal::SIGKILL);
            if left.is_empty() {
                return Ok(());
            }
            if started.elapsed() > grace + DEATH_PATIENCE {
                return Err(Fault::failed(format!("processes {left:?} do not die")));
            }
            std::thread::sleep(LOOK);
        }
    }

    fn signal(&self, signal: Signal) -> Vec<i32> {
        let mut left = self.processes();
        left.retain(|pid| kill(Pid::from_raw(*pid), signal) != Err(Errno::ESRCH));
        left
    }

    /// The processes of it that have not ended.
    pub fn processes(&self) -> Vec<i32> {
        let is_leaders_session = Stat::of(self.leader).is_none_or(|it| it.began == self.began);
        let own = std::process::id() as i32;
        processes::all()
            .into_iter()
            .filter(|pid| *pid != own && self.is_part(*pid, is_leaders_session))
            .collect()
    }

    fn is_part(&self, pid: i32, is_leaders_session: bool) -> bool {
        let Some(stat) = Stat::of(pid).filter(|it| !it.ended && it.began >= self.began) else {
            return false;
        };
        if is_leaders_session && stat.session == self.leader {
            return true;
        }
        let wanted = format!("{VARIABLE}={}", self.mark);
        processes::has_variable(pid, |it| it == wanted.as_bytes())
    }
}

/// What the kernel says of a process (proc(5), stat).
struct Stat {
    ended: bool,
    session: i32,
    began: u64,
}

impl Stat {
    fn of(pid: i32) -> Option<Self> {
        let text = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
        let text = String::from_utf8_lossy(&text);
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        Some(Self {
            ended: matches!(*fields.first()?, "Z" | "X"),
            session: fields.get(3)?.parse().ok()?,
            began: fields.get(19)?.parse().ok()?,
        })
    }
}
