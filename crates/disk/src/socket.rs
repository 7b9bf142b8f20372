//! A connection's socket, whatever its family.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

/// Which half of a socket is closed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Half {
    /// Nothing more is read.
    Read,
    /// Both.
    Both,
}

/// A socket that several threads use.
#[derive(Debug)]
pub(crate) struct Socket(File);

impl Socket {
    pub(crate) fn new(socket: OwnedFd) -> Self {
        Self(File::from(socket))
    }

    /// How long a read waits; it fails with `WouldBlock` then. None: for ever.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn set_read_limit(&self, limit: Option<Duration>) -> io::Result<()> {
        self.set_limit(libc::SO_RCVTIMEO, limit)
    }

    /// How long a write waits. None: for ever.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn set_write_limit(&self, limit: Option<Duration>) -> io::Result<()> {
        self.set_limit(libc::SO_SNDTIMEO, limit)
    }

    fn set_limit(&self, option: libc::c_int, limit: Option<Duration>) -> io::Result<()> {
        let limit = limit.unwrap_or_default();
        let time = libc::timeval {
            tv_sec: limit.as_secs() as libc::time_t,
            tv_usec: limit.subsec_micros().into(),
        };
        // SAFETY: the descriptor is open, and the structure lives through the call, with its length.
        let set = unsafe {
            libc::setsockopt(
                self.0.as_raw_fd(),
                libc::SOL_SOCKET,
                option,
                (&raw const time).cast(),
                size_of::<libc::timeval>() as libc::socklen_t,
            )
        };
        if set < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// Closes it for all threads; those that wait on it go on.
    pub(crate) fn close(&self, half: Half) {
        let how = match half {
            Half::Read => libc::SHUT_RD,
            Half::Both => libc::SHUT_RDWR,
        };
        // SAFETY: the descriptor is open. One that is not connected any more needs no closing.
        unsafe { libc::shutdown(self.0.as_raw_fd(), how) };
    }

    /// Writes all of it.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn write_all(&self, bytes: &[u8]) -> io::Result<()> {
        (&self.0).write_all(bytes)
    }
}

impl Read for &Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&self.0).read(buffer)
    }
}
