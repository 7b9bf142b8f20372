//! A process of its own that starts programs: what the agent's file names, and the keeper. The agent, which reads what
//! others send, gives up its rights; the starter keeps them, reads nothing but numbers, and knows every command
//! beforehand. It ends with the agent.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use nix::unistd::{ForkResult, fork};

use crate::descriptors::{receive, send};
use crate::lease::Lease;
use crate::running::Running;

/// Longest reason for a program that does not start.
const REASON_BYTES_MAX: usize = 256;
const STARTED: u8 = 0;

/// A program and its arguments, and whether it is spoken to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Whether it reads its input, out of reach of the terminal's signals: it ends when its input does.
    pub is_asked: bool,
}

/// The way to this process's starter.
struct Starter {
    socket: Mutex<OwnedFd>,
    allowed: Vec<Words>,
}

static STARTER: OnceLock<Starter> = OnceLock::new();

/// Makes the starter, which from then on starts nothing but these. Before any thread is started.
///
/// # Errors
/// What the kernel refuses.
pub fn fork_starter(allowed: Vec<Words>) -> io::Result<()> {
    let (ours, its) = socketpair(
        AddressFamily::Unix,
        SockType::SeqPacket,
        None,
        SockFlag::SOCK_CLOEXEC,
    )?;
    // SAFETY: there is one thread, so that the child may do anything.
    match unsafe { fork() }? {
        ForkResult::Child => {
            drop(ours);
            if ascar_privileges::reduce(&ascar_privileges::STARTER).is_ok() {
                serve(&its, &allowed);
            }
            std::process::exit(0)
        }
        ForkResult::Parent { .. } => {
            let socket = Mutex::new(ours);
            let _ = STARTER.set(Starter { socket, allowed });
            Ok(())
        }
    }
}

/// Starts a program: by the starter, where there is one.
///
/// # Arguments
/// `lease`: under which the program works, behind a process that holds it.
///
/// # Errors
/// Why it does not start.
pub fn start(words: &Words, lease: Option<&Lease>) -> io::Result<Running> {
    let Some(starter) = STARTER.get() else {
        let held = lease.map(|lease| (lease.memory(), lease.series()));
        return spawn(words, held).map(|(running, _)| running);
    };
    let place = starter.allowed.iter().position(|it| it == words);
    let place = place.ok_or_else(|| io::Error::other("is not among the programs of this agent"))?;
    let socket = starter
        .socket
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let series = lease.map_or(0, Lease::series);
    let request = u128::from(series) << 32 | place as u128;
    let memory = lease.map(|lease| lease.memory().as_raw_fd());
    send(&socket, &request.to_le_bytes(), memory.as_slice())?;
    let mut answer = [0; REASON_BYTES_MAX];
    let (count, descriptors) = receive(&socket, &mut answer)?;
    match (
        answer[..count].split_first(),
        Running::of(descriptors, words.is_asked),
    ) {
        (Some((&STARTED, _)), Some(running)) => Ok(running),
        (Some((_, reason)), _) => Err(io::Error::other(
            String::from_utf8_lossy(reason).into_owned(),
        )),
        (None, _) => Err(io::Error::other(
            "the starter is gone: start the agent again",
        )),
    }
}

/// The starter's life.
fn serve(socket: &OwnedFd, allowed: &[Words]) {
    let mut ending = SigSet::empty();
    for signal in [
        Signal::SIGTERM,
        Signal::SIGINT,
        Signal::SIGHUP,
        Signal::SIGQUIT,
    ] {
        ending.add(signal);
    }
    // The agent decides when all of it ends.
    let _ = ending.thread_block();
    let mut children: Vec<(Child, OwnedFd)> = Vec::new();
    loop {
        let mut watched = vec![PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
        watched.extend(
            children
                .iter()
                .map(|(_, ended)| PollFd::new(ended.as_fd(), PollFlags::POLLIN)),
        );
        match poll(&mut watched, PollTimeout::NONE) {
            Ok(_) => {}
            Err(Errno::EINTR) => continue,
            Err(_) => return,
        }
        let is_asked = watched[0].any().unwrap_or(true);
        children.retain_mut(|(child, _)| matches!(child.try_wait(), Ok(None)));
        if is_asked && !serve_one(socket, allowed, &mut children) {
            return;
        }
    }
}

/// Starts one program. Returns whether the agent still lives.
fn serve_one(socket: &OwnedFd, allowed: &[Words], children: &mut Vec<(Child, OwnedFd)>) -> bool {
    let mut request = [0; 16];
    let Ok((16, descriptors)) = receive(socket, &mut request) else {
        return false;
    };
    let request = u128::from_le_bytes(request);
    let words = allowed.get(request as u32 as usize);
    let series = (request >> 32) as u64;
    let held = descriptors.first().map(|memory| (memory.as_fd(), series));
    let spawned = words
        .ok_or_else(|| io::Error::other("is not among the programs of this agent"))
        .and_then(|words| spawn(words, held))
        .and_then(|(running, child)| Ok((running.ended.try_clone()?, running, child)));
    match spawned {
        Ok((ended, running, child)) => {
            children.push((child, ended));
            send(socket, &[STARTED], &running.descriptors()).is_ok()
        }
        Err(error) => {
            let mut reason = vec![STARTED + 1];
            reason.extend(error.to_string().bytes().take(REASON_BYTES_MAX - 1));
            send(socket, &reason, &[]).is_ok()
        }
    }
}

/// `held`: the memory and the series of the lease that the program works under.
fn spawn(words: &Words, held: Option<(BorrowedFd, u64)>) -> io::Result<(Running, Child)> {
    let mut command = match held {
        None => Command::new(&words.command[0]),
        Some((memory, series)) => {
            // Also where the file of this program was replaced meanwhile.
            let mut holder = Command::new("/proc/self/exe");
            holder
                .arg0("ascard")
                .args([
                    "agent",
                    "lease",
                    "--memory",
                    &memory.as_raw_fd().to_string(),
                ])
                .args(["--series", &series.to_string(), "--", &words.command[0]]);
            holder
        }
    };
    let memory = held.map(|(memory, _)| memory.as_raw_fd());
    command.args(&words.command[1..]).stdout(Stdio::piped());
    if words.is_asked {
        command.stdin(Stdio::piped()).process_group(0);
    } else {
        command.stdin(Stdio::null());
    }
    // SAFETY: only async-signal-safe calls between fork and exec.
    unsafe {
        command.pre_exec(move || {
            if let Some(memory) = memory {
                // The descriptor is open as long as the caller borrows it.
                let memory = BorrowedFd::borrow_raw(memory);
                fcntl(memory, FcntlArg::F_SETFD(FdFlag::empty()))?;
            }
            // The starter is deaf to what ends it; what it starts is not.
            Ok(sigprocmask(
                SigmaskHow::SIG_SETMASK,
                Some(&SigSet::empty()),
                None,
            )?)
        });
    }
    let mut child = command.spawn()?;
    let ended = ascar_keeper::program::pidfd(child.id())?;
    let stdin = child.stdin.take().map(|it| File::from(OwnedFd::from(it)));
    let stdout = child.stdout.take().expect("stdout is piped");
    let stdout = File::from(OwnedFd::from(stdout));
    Ok((
        Running {
            stdin,
            stdout,
            ended,
        },
        child,
    ))
}
