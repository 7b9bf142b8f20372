//! `ascard agent lease`: between the agent and a controller, a process that ends the controller's input in time.

use std::ffi::OsString;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::{Term, now};
use crate::LOG;

/// Between looks at the lease.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long a controller may take to put everything back before it is killed.
pub const GRACE: Duration = Duration::from_secs(20);
/// Most bytes that wait for the controller.
const PIECE_BYTES: usize = 64 * 1024;

/// Why the controller's input ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The agent has closed it, or is gone.
    Closed,
    /// The lease has run out.
    RunOut,
    /// The controller takes nothing more.
    Gone,
}

/// What a holder holds.
#[derive(Debug)]
pub struct Holder {
    /// The shared memory.
    pub memory: File,
    /// Of the lease.
    pub series: u64,
    /// The controller.
    pub command: Vec<OsString>,
}

impl Holder {
    /// Starts the controller and stays until it has ended.
    ///
    /// # Errors
    /// When it cannot be started or waited for.
    pub fn run(&self) -> std::io::Result<ExitStatus> {
        let mut child = Command::new(&self.command[0])
            .args(&self.command[1..])
            .stdin(Stdio::piped())
            .spawn()?;
        ascar_privileges::reduce(&ascar_privileges::HOLDER)?;
        let mut pipe = child.stdin.take().expect("stdin is piped");
        fcntl(&pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        let end = self.pass_on(&mut pipe)?;
        drop(pipe);
        if end == End::RunOut {
            LOG.line(format_args!(
                "the lease has run out: {} puts its knobs back without the agent",
                self.command[0].display()
            ));
        }
        wait(&mut child)
    }

    /// Passes on what comes from the agent until there is a reason to end.
    fn pass_on(&self, pipe: &mut ChildStdin) -> std::io::Result<End> {
        let mut agent = File::from(std::io::stdin().as_fd().try_clone_to_owned()?);
        let mut waiting: Vec<u8> = Vec::new();
        loop {
            let left = Term::read(&self.memory).left(self.series, now());
            if left.is_zero() {
                return Ok(End::RunOut);
            }
            let (from, to) = if waiting.is_empty() {
                (PollFlags::POLLIN, PollFlags::empty())
            } else {
                (PollFlags::empty(), PollFlags::POLLOUT)
            };
            let mut watched = [
                PollFd::new(agent.as_fd(), from),
                PollFd::new(pipe.as_fd(), to),
            ];
            let wait = left.min(LOOK_EVERY).as_millis() as u16 + 1;
            match poll(&mut watched, PollTimeout::from(wait)) {
                Ok(_) | Err(nix::Error::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
            let of = |index: usize| watched[index].revents().unwrap_or(PollFlags::empty());
            let (agent_now, pipe_now) = (of(0), of(1));
            if pipe_now.intersects(PollFlags::POLLERR | PollFlags::POLLNVAL) {
                return Ok(End::Gone);
            }
            if waiting.is_empty() && !agent_now.is_empty() {
                waiting.resize(PIECE_BYTES, 0);
                let count = agent.read(&mut waiting)?;
                waiting.truncate(count);
                if count == 0 {
                    return Ok(End::Closed);
                }
            } else if agent_now.intersects(PollFlags::POLLHUP | PollFlags::POLLERR)
                && pipe_now.is_empty()
            {
                // The controller reads nothing, and the agent is gone.
                return Ok(End::Closed);
            }
            if !waiting.is_empty() {
                match pipe.write(&waiting) {
                    Ok(count) => drop(waiting.drain(..count)),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    Err(_) => return Ok(End::Gone),
                }
            }
        }
    }
}

/// Waits for a controller whose input has ended; one that does not end by itself is killed.
fn wait(child: &mut Child) -> std::io::Result<ExitStatus> {
    let started = Instant::now();
    while started.elapsed() < GRACE {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    LOG.line("a controller does not end when its input has ended: it is killed");
    let _ = child.kill();
    child.wait()
}
