//! Where clients connect: a Unix socket, or a port.

use std::fmt;
use std::io;
use std::net::{TcpListener, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use crate::Fault;

/// An address that clients find.
#[derive(Debug)]
pub(crate) enum Listening {
    /// A socket in the file system.
    Unix(UnixListener, PathBuf),
    /// A port.
    Tcp(TcpListener),
}

impl Listening {
    /// Opens a Unix socket. One that was left behind is replaced.
    ///
    /// # Errors
    /// A path that is in use, or where no socket can be made.
    pub(crate) fn at_path(path: &Path) -> Result<Self, Fault> {
        let wrong = |what: &dyn fmt::Display| Fault(format!("--socket {}: {what}", path.display()));
        if let Ok(metadata) = std::fs::symlink_metadata(path) {
            if !metadata.file_type().is_socket() {
                return Err(wrong(&"exists, and is not a socket"));
            }
            match UnixStream::connect(path) {
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    std::fs::remove_file(path).map_err(|error| wrong(&error))?;
                }
                Ok(_) => return Err(wrong(&"is in use by another process")),
                Err(error) => return Err(wrong(&error)),
            }
        }
        let listener = UnixListener::bind(path).map_err(|error| wrong(&error))?;
        Ok(Self::Unix(listener, path.to_owned()))
    }

    /// Opens a port.
    ///
    /// # Errors
    /// An address that does not exist here, or is in use.
    pub(crate) fn at_address(text: &str) -> Result<Self, Fault> {
        let wrong = |what: &dyn fmt::Display| {
            Fault(format!(
                "--listen = {text:?}: {what}; such as 127.0.0.1:10809"
            ))
        };
        let mut addresses = text.to_socket_addrs().map_err(|error| wrong(&error))?;
        let address = addresses.next().ok_or_else(|| wrong(&"has no address"))?;
        let listener = TcpListener::bind(address).map_err(|error| wrong(&error))?;
        Ok(Self::Tcp(listener))
    }

    /// Waits for the next client.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn accept(&self) -> io::Result<OwnedFd> {
        match self {
            Self::Unix(listener, _) => listener.accept().map(|(stream, _)| stream.into()),
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                // Replies are small, and each is waited for.
                stream.set_nodelay(true)?;
                Ok(stream.into())
            }
        }
    }

    /// Nobody finds the path any more.
    pub(crate) fn remove(&self) {
        if let Self::Unix(_, path) = self {
            let _ = std::fs::remove_file(path);
        }
    }
}

impl fmt::Display for Listening {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(_, path) => write!(formatter, "{}", path.display()),
            Self::Tcp(listener) => match listener.local_addr() {
                Ok(address) => address.fmt(formatter),
                Err(error) => error.fmt(formatter),
            },
        }
    }
}
