//! Runs one external program: no shell, no inherited environment, bounded output, bounded time.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::libc;
use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, killpg, sigprocmask};
use nix::unistd::Pid;

use crate::fault::{Doing, Fault, Result};
use crate::interrupt::Limit;

/// Where programs are looked for; the caller's PATH is not trusted.
const DIRECTORIES: [&str; 4] = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];
/// What a program's own standard input is called.
pub const STDIN: &str = "/proc/self/fd/0";
/// Bytes of output kept: the end, where programs say what went wrong.
const TAIL_BYTES: usize = 16 * 1024;
/// How long a killed program may take to die before it is given up.
const DEATH_PATIENCE: Duration = Duration::from_millis(500);

/// A program that has ended.
#[derive(Debug)]
pub struct Finished {
    /// Its exit status.
    pub status: ExitStatus,
    /// The end of what it wrote.
    pub stdout: String,
    /// The end of what it complained.
    pub stderr: String,
}

/// The full path of an installed program; a path is one already.
pub fn find(program: &str) -> Option<PathBuf> {
    if program.starts_with('/') {
        return Some(PathBuf::from(program)).filter(|path| path.is_file());
    }
    DIRECTORIES
        .iter()
        .map(|directory| PathBuf::from(directory).join(program))
        .find(|path| path.is_file())
}

/// Where programs are, as a variable of the environment says it.
pub fn search_path() -> String {
    DIRECTORIES.join(":")
}

/// Runs `program` to its end.
///
/// # Errors
/// Input when it is not installed, timeout when it was killed at its deadline, failed when it could not be
/// started or the session ended. A non-zero exit status is not an error here: see [`Finished::success`].
pub fn run<A: AsRef<OsStr>>(program: &str, arguments: &[A], limit: &Limit) -> Result<Finished> {
    start(Stdio::null(), program, arguments, limit)
}

/// The same for a program that looks at a file which is open here: [`STDIN`] is its name among the arguments.
///
/// # Errors
/// Those of [`run`].
pub fn run_on<A: AsRef<OsStr>>(
    opened: &File,
    program: &str,
    arguments: &[A],
    limit: &Limit,
) -> Result<Finished> {
    let stdin = opened.try_clone().doing("hand a file on")?;
    start(stdin.into(), program, arguments, limit)
}

fn start<A: AsRef<OsStr>>(
    stdin: Stdio,
    program: &str,
    arguments: &[A],
    limit: &Limit,
) -> Result<Finished> {
    let path = find(program).ok_or_else(|| not_installed(program))?;
    limit.check(program)?;
    let mut command = Command::new(path);
    command
        .args(arguments)
        .env_clear()
        .env("PATH", search_path())
        .env("LC_ALL", "C")
        .current_dir("/")
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    // SAFETY: only async-signal-safe calls between fork and exec.
    unsafe {
        command.pre_exec(|| {
            sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)?;
            // A keeper killed with SIGKILL takes its mkfs along.
            nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
            be_ordinary_when_memory_is_short();
            Ok(())
        });
    }
    let child = command.spawn().doing(format!("start {program}"))?;
    follow(program, child, limit)
}

/// The fault of a missing program, with the package that has it.
pub fn not_installed(program: &str) -> Fault {
    let package = match program {
        "mkfs.xfs" => "xfsprogs",
        "mkfs.btrfs" => "btrfs-progs",
        "mke2fs" | "mkfs.ext4" => "e2fsprogs",
        "mkfs.nilfs2" | "nilfs-tune" => "nilfs-tools",
        "mkreiserfs" => "reiserfsprogs",
        _ => "util-linux",
    };
    Fault::input(format!(
        "{program} is not installed in {}: install {package}",
        DIRECTORIES.join(":")
    ))
}

fn follow(program: &str, mut child: Child, limit: &Limit) -> Result<Finished> {
    let mut stdout = Tail::new(child.stdout.take().expect("stdout is piped").into())?;
    let mut stderr = Tail::new(child.stderr.take().expect("stderr is piped").into())?;
    let exited = pidfd(child.id()).doing(format!("watch {program}"))?;
    let ended = loop {
        let mut watched = [
            PollFd::new(exited.as_fd(), PollFlags::POLLIN),
            PollFd::new(limit.descriptor(), PollFlags::POLLIN),
            PollFd::new(stdout.descriptor(&exited), PollFlags::POLLIN),
            PollFd::new(stderr.descriptor(&exited), PollFlags::POLLIN),
        ];
        let _ = poll(&mut watched, limit.poll_timeout());
        let gone = watched[0].any().unwrap_or(false);
        stdout.drain();
        stderr.drain();
        if gone {
            break Ok(());
        }
        if let Err(fault) = limit.check(program) {
            break Err(fault);
        }
    };
    match ended {
        Ok(()) => {
            let status = child.wait().doing(format!("wait for {program}"))?;
            Ok(Finished {
                status,
                stdout: stdout.text(),
                stderr: stderr.text(),
            })
        }
        Err(fault) => {
            kill(&mut child);
            stdout.drain();
            stderr.drain();
            Err(fault.with_stderr(stderr.text()))
        }
    }
}

/// The keeper itself is the last to be killed when memory is short; what it starts is not.
fn be_ordinary_when_memory_is_short() {
    // SAFETY: system calls with constant, zero-terminated arguments.
    unsafe {
        let file = libc::open(
            c"/proc/self/oom_score_adj".as_ptr(),
            libc::O_WRONLY | libc::O_CLOEXEC,
        );
        libc::write(file, c"0".as_ptr().cast(), 1);
        libc::close(file);
    }
}

/// Kills a program with all it started. One stuck in the kernel is left to die on its own.
fn kill(child: &mut Child) {
    let _ = killpg(Pid::from_raw(child.id() as i32), Signal::SIGKILL);
    let started = Instant::now();
    while started.elapsed() < DEATH_PATIENCE {
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A descriptor that becomes readable when the process ends; it cannot mean another process later.
pub fn pidfd(pid: u32) -> nix::Result<OwnedFd> {
    // SAFETY: pidfd_open takes two integers and returns a new descriptor, which nobody else owns.
    unsafe {
        let descriptor =
            nix::errno::Errno::result(libc::syscall(libc::SYS_pidfd_open, pid as libc::pid_t, 0))?;
        Ok(OwnedFd::from_raw_fd(descriptor as i32))
    }
}

/// The last bytes of a pipe.
struct Tail {
    pipe: Option<File>,
    bytes: Vec<u8>,
}

impl Tail {
    fn new(pipe: OwnedFd) -> Result<Self> {
        fcntl(&pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).doing("make a pipe non-blocking")?;
        Ok(Self {
            pipe: Some(pipe.into()),
            bytes: Vec::new(),
        })
    }

    /// The pipe, or `instead` once it is closed.
    fn descriptor<'a>(&'a self, instead: &'a OwnedFd) -> std::os::fd::BorrowedFd<'a> {
        self.pipe
            .as_ref()
            .map_or(instead.as_fd(), |pipe| pipe.as_fd())
    }

    fn drain(&mut self) {
        let mut chunk = [0; 4096];
        while let Some(pipe) = &mut self.pipe {
            match pipe.read(&mut chunk) {
                Ok(0) => self.pipe = None,
                Ok(count) => {
                    self.bytes.extend_from_slice(&chunk[..count]);
                    let excess = self.bytes.len().saturating_sub(TAIL_BYTES);
                    self.bytes.drain(..excess);
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return,
                Err(_) => self.pipe = None,
            }
        }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).trim().to_owned()
    }
}

/// The last line that is not part of a description of the program's usage.
fn last_words(stderr: &str) -> Option<&str> {
    let is_usage = |line: &&str| line.to_lowercase().starts_with("usage");
    stderr
        .lines()
        .take_while(|line| !is_usage(line))
        .filter(|line| !line.trim().is_empty())
        .last()
}

impl Finished {
    /// Fails unless the exit status is zero.
    pub fn success(self, program: &str) -> Result<Self> {
        if self.status.success() {
            return Ok(self);
        }
        let how = match (self.status.code(), self.status.signal()) {
            (Some(code), _) => format!("exit status {code}"),
            (None, Some(signal)) => format!("killed by signal {signal}"),
            (None, None) => "ended".to_owned(),
        };
        let last = last_words(&self.stderr).unwrap_or("no message");
        Err(Fault::failed(format!("{program}: {how}: {last}")).with_stderr(self.stderr))
    }
}
