//! A connection by either kind of socket.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{MsgFlags, getsockopt, send, setsockopt, sockopt};

/// The other end has ended its sending; the poll flag has no name in `nix`.
const HUNG_UP: PollFlags = PollFlags::from_bits_retain(libc::POLLRDHUP);

/// A connection.
#[derive(Debug)]
pub enum Socket {
    /// On this machine.
    Unix(UnixStream),
    /// Over the network.
    Tcp(TcpStream),
}

impl Socket {
    /// A connection over the network: small requests leave at once, and a host that is gone is noticed.
    ///
    /// # Errors
    /// When an option is refused.
    pub fn of_tcp(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        setsockopt(&stream, sockopt::KeepAlive, &true)?;
        Ok(Self::Tcp(stream))
    }

    /// Who is at the other end: a process of this machine, or a host.
    ///
    /// # Errors
    /// When the other end is gone.
    pub fn peer(&self) -> io::Result<String> {
        match self {
            Self::Unix(stream) => {
                let peer = getsockopt(stream, sockopt::PeerCredentials)?;
                Ok(format!("pid:{}", peer.pid()))
            }
            Self::Tcp(stream) => Ok(format!("ip:{}", stream.peer_addr()?.ip())),
        }
    }

    /// Reads what has come; 0 at the end.
    ///
    /// # Errors
    /// When the connection is broken.
    pub fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = match self {
                Self::Unix(stream) => (&mut &*stream).read(into),
                Self::Tcp(stream) => (&mut &*stream).read(into),
            };
            match count {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    /// Writes all of it.
    ///
    /// # Errors
    /// When the connection is broken.
    pub fn write_all(&self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Unix(stream) => (&mut &*stream).write_all(bytes),
            Self::Tcp(stream) => (&mut &*stream).write_all(bytes),
        }
    }

    /// From now on, what is written waits for no longer than this before [`Socket::write_some`] says so; None: for ever.
    ///
    /// # Errors
    /// When an option is refused.
    pub fn limit_writes(&self, limit: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.set_write_timeout(limit),
            Self::Tcp(stream) => stream.set_write_timeout(limit),
        }
    }

    /// From now on, reads wait for no longer than this, and then fail with [`io::ErrorKind::WouldBlock`].
    ///
    /// # Errors
    /// When an option is refused.
    pub fn limit_reads(&self, limit: Duration) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.set_read_timeout(Some(limit)),
            Self::Tcp(stream) => stream.set_read_timeout(Some(limit)),
        }
    }

    /// Sends a last word if that needs no waiting.
    pub fn send_now(&self, bytes: &[u8]) {
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        // Who is gone needs no word.
        let _ = send(self.as_fd().as_raw_fd(), bytes, flags);
    }

    /// Writes some of it; 0 where nothing was taken within the limit.
    ///
    /// # Errors
    /// When the connection is broken.
    pub fn write_some(&self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            let count = match self {
                Self::Unix(stream) => (&mut &*stream).write(bytes),
                Self::Tcp(stream) => (&mut &*stream).write(bytes),
            };
            match count {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(0),
                other => return other,
            }
        }
    }

    /// Ends one or both directions; what was written before is still delivered.
    pub fn shutdown(&self, how: Shutdown) {
        // It may have ended already.
        let _ = match self {
            Self::Unix(stream) => stream.shutdown(how),
            Self::Tcp(stream) => stream.shutdown(how),
        };
    }

    /// Whether the other end takes more within this time, or is gone.
    ///
    /// # Errors
    /// When it cannot be waited.
    pub fn takes_more_within(&self, limit: Duration) -> io::Result<bool> {
        Ok(wait_for_either(None, self, limit)? == Some(Either::TakesMore))
    }

    /// Ends reading, and has the other end told, once this is dropped, that it was cut and has not ended.
    pub fn cut(&self) {
        if let Self::Tcp(stream) = self {
            let at_once = libc::linger {
                l_onoff: 1,
                l_linger: 0,
            };
            // Where it is refused, an end is all that can be said.
            let _ = setsockopt(stream, sockopt::Linger, &at_once);
        }
        self.shutdown(Shutdown::Read);
    }

    /// Whether the other end has ended its sending, or is gone.
    #[must_use]
    pub fn has_hung_up(&self) -> bool {
        let mut looked = [PollFd::new(self.as_fd(), HUNG_UP)];
        matches!(poll(&mut looked, PollTimeout::ZERO), Ok(count) if count > 0)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(stream) => stream.as_fd(),
            Self::Tcp(stream) => stream.as_fd(),
        }
    }
}

/// What came of waiting for one side while the other may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// The one can be read: it has sent something, or ended.
    Readable,
    /// The other has hung up first.
    OtherGone,
    /// Neither, for all that time.
    Nothing,
}

/// Waits until `from` can be read, or `other` hangs up where there is one.
///
/// # Errors
/// When it cannot be waited.
pub fn wait_for(from: &Socket, other: Option<&Socket>, limit: Duration) -> io::Result<Waited> {
    let timeout = PollTimeout::try_from(limit).unwrap_or(PollTimeout::MAX);
    let mut looked = vec![PollFd::new(from.as_fd(), PollFlags::POLLIN)];
    looked.extend(other.map(|other| PollFd::new(other.as_fd(), HUNG_UP)));
    loop {
        match poll(&mut looked, timeout) {
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
            Ok(0) => return Ok(Waited::Nothing),
            Ok(_) if looked[0].any() == Some(true) => return Ok(Waited::Readable),
            Ok(_) => return Ok(Waited::OtherGone),
        }
    }
}

/// Which of two came first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Either {
    /// The one has said something, or ended.
    SaysMore,
    /// The other takes more, or is gone.
    TakesMore,
}

/// Waits until `from` can be read, where there is one, or `to` written; None where neither can within the limit.
///
/// # Errors
/// When it cannot be waited.
pub fn wait_for_either(
    from: Option<&Socket>,
    to: &Socket,
    limit: Duration,
) -> io::Result<Option<Either>> {
    let timeout = PollTimeout::try_from(limit).unwrap_or(PollTimeout::MAX);
    let mut looked = vec![PollFd::new(to.as_fd(), PollFlags::POLLOUT)];
    looked.extend(from.map(|from| PollFd::new(from.as_fd(), PollFlags::POLLIN)));
    loop {
        match poll(&mut looked, timeout) {
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
            Ok(0) => return Ok(None),
            Ok(_) if looked[0].any() == Some(true) => return Ok(Some(Either::TakesMore)),
            Ok(_) => return Ok(Some(Either::SaysMore)),
        }
    }
}

/// What clients connect to.
#[derive(Debug)]
pub enum Listener {
    /// On this machine.
    Unix(UnixListener),
    /// Over the network.
    Tcp(TcpListener),
}

impl Listener {
    /// The next client.
    ///
    /// # Errors
    /// When none can be taken in.
    pub fn accept(&self) -> io::Result<Socket> {
        match self {
            Self::Unix(listener) => Ok(Socket::Unix(listener.accept()?.0)),
            Self::Tcp(listener) => Socket::of_tcp(listener.accept()?.0),
        }
    }
}
