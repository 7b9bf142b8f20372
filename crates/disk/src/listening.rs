//! Where clients connect: a Unix socket, or a port.

use std::fmt;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ascar_log::Fault;
use ascar_service::connect_within;

/// How long a socket that was found is tried out.
const TRIAL_LIMIT: Duration = Duration::from_secs(1);

/// Where clients are going to connect.
#[derive(Debug)]
pub(crate) enum Place {
    /// A path.
    Path(PathBuf),
    /// A port, and the text that names it.
    Port(String, SocketAddr),
}

impl Place {
    /// Looks an address up, which may take as long as a name server does.
    ///
    /// # Errors
    /// A name that is not known.
    pub(crate) fn at_address(text: &str) -> Result<Self, Fault> {
        let wrong = |what: &dyn fmt::Display| wrong_port(text, what);
        let mut addresses = text.to_socket_addrs().map_err(|error| wrong(&error))?;
        let address = addresses.next().ok_or_else(|| wrong(&"has no address"))?;
        Ok(Self::Port(text.to_owned(), address))
    }

    /// Opens it.
    ///
    /// # Errors
    /// A place that is in use, or where nothing can be opened.
    pub(crate) fn open(&self) -> Result<Listening, Fault> {
        match self {
            Self::Path(path) => Listening::at_path(path),
            Self::Port(text, address) => Listening::at_port(text, *address),
        }
    }
}

fn wrong_port(text: &str, what: &dyn fmt::Display) -> Fault {
    Fault(format!(
        "--listen = {text:?}: {what}; such as 127.0.0.1:10809"
    ))
}

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
    fn at_path(path: &Path) -> Result<Self, Fault> {
        let wrong = |what: &dyn fmt::Display| Fault(format!("--socket {}: {what}", path.display()));
        if let Ok(metadata) = std::fs::symlink_metadata(path) {
            if !metadata.file_type().is_socket() {
                return Err(wrong(&"exists, and is not a socket"));
            }
            let found = connect_within(path, TRIAL_LIMIT).map_err(|error| (error.kind(), error));
            match found {
                Err((ErrorKind::ConnectionRefused, _)) => {
                    std::fs::remove_file(path).map_err(|error| wrong(&error))?;
                }
                // One that is too busy to accept anybody is there, too.
                Ok(_) | Err((ErrorKind::TimedOut, _)) => {
                    return Err(wrong(&"is in use by another process"));
                }
                Err((_, error)) => return Err(wrong(&error)),
            }
        }
        let listener = UnixListener::bind(path).map_err(|error| wrong(&error))?;
        Ok(Self::Unix(listener, path.to_owned()))
    }

    /// Opens a port.
    ///
    /// # Errors
    /// An address that does not exist here, or is in use.
    fn at_port(text: &str, address: SocketAddr) -> Result<Self, Fault> {
        let listener = TcpListener::bind(address).map_err(|error| wrong_port(text, &error))?;
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
