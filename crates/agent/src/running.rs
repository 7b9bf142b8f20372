//! A program that runs, whoever has started it: its pipes, and a descriptor that is it.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// A program that was started.
#[derive(Debug)]
pub struct Running {
    /// Its input; None for one that is not spoken to, or whose input was closed.
    pub stdin: Option<File>,
    /// Its output.
    pub stdout: File,
    /// Readable when it has ended.
    pub ended: OwnedFd,
}

impl Running {
    /// The program of these descriptors, as [`Running::descriptors`] lists them.
    pub fn of(descriptors: Vec<OwnedFd>, is_asked: bool) -> Option<Self> {
        let mut descriptors = descriptors.into_iter();
        let (ended, stdout) = (descriptors.next()?, descriptors.next()?.into());
        let stdin = descriptors.next().map(File::from);
        (stdin.is_some() == is_asked).then_some(Self {
            stdin,
            stdout,
            ended,
        })
    }

    /// What stands for it in another process.
    pub fn descriptors(&self) -> Vec<RawFd> {
        let stdin = self.stdin.as_ref().map(AsRawFd::as_raw_fd);
        let others = [self.ended.as_raw_fd(), self.stdout.as_raw_fd()];
        others.into_iter().chain(stdin).collect()
    }

    /// Whether it still runs.
    pub fn alive(&self) -> bool {
        let mut watched = [PollFd::new(self.ended.as_fd(), PollFlags::POLLIN)];
        poll(&mut watched, PollTimeout::ZERO) == Ok(0)
    }

    /// Kills it; one of another user, such as sudo, ends when its input does.
    pub fn kill(&self) {
        let (nothing, flags) = (std::ptr::null::<libc::siginfo_t>(), 0);
        // SAFETY: takes a descriptor that lives through the call, integers, and no structure.
        unsafe {
            libc::syscall(
                libc::SYS_pidfd_send_signal,
                self.ended.as_raw_fd(),
                libc::SIGKILL,
                nothing,
                flags,
            )
        };
    }
}
