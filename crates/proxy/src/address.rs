//! Where clients are listened for, and where servers are: `unix:PATH` or `tcp:HOST:PORT`.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ascar_service::{connect_within, listen_at};

use crate::socket::{Listener, Socket};

/// How long a server may take to be reached.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// An address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A socket of this machine.
    Unix(PathBuf),
    /// A host's name or number, and a port.
    Tcp(String),
}

impl Address {
    /// Reads an address.
    ///
    /// # Errors
    /// For another form, with what is allowed.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?}: must be unix:PATH or tcp:HOST:PORT");
        match text.split_once(':') {
            Some(("unix", path)) if !path.is_empty() && !path.contains('\0') => {
                Ok(Self::Unix(path.into()))
            }
            Some(("tcp", place)) => {
                let (host, port) = place.rsplit_once(':').ok_or_else(wrong)?;
                let is_port = port.parse::<u16>().is_ok_and(|port| port > 0);
                if host.is_empty() || !is_port {
                    return Err(wrong());
                }
                Ok(Self::Tcp(place.to_owned()))
            }
            _ => Err(wrong()),
        }
    }

    /// The same, where a path that is not absolute is one of `folder`.
    #[must_use]
    pub fn within(self, folder: &Path) -> Self {
        match self {
            Self::Unix(path) => Self::Unix(folder.join(path)),
            tcp @ Self::Tcp(_) => tcp,
        }
    }

    /// Whether who connects here reaches what listens there, as far as the texts tell.
    #[must_use]
    pub fn leads_to(&self, listens: &Self) -> bool {
        let (Self::Tcp(here), Self::Tcp(there)) = (self, listens) else {
            return self == listens;
        };
        let is_any = |at: &SocketAddr| at.ip().is_unspecified();
        let is_own = |at: &SocketAddr| at.ip().is_loopback() || is_any(at);
        match (numbers(here), numbers(there)) {
            (Some(here), Some(there)) if here.port() == there.port() => {
                here.ip() == there.ip()
                    || is_any(&there) && is_own(&here)
                    || is_any(&here) && is_own(&there)
            }
            _ => here == there,
        }
    }

    /// Connects to a server.
    ///
    /// # Errors
    /// When nobody is reached.
    pub fn connect(&self) -> io::Result<Socket> {
        match self {
            Self::Unix(path) => Ok(Socket::Unix(connect_within(path, CONNECT_LIMIT)?)),
            Self::Tcp(place) => {
                let mut last = io::Error::other("has no address");
                for one in place.to_socket_addrs()? {
                    match TcpStream::connect_timeout(&one, CONNECT_LIMIT) {
                        Ok(stream) => return Socket::of_tcp(stream),
                        Err(error) => last = error,
                    }
                }
                Err(last)
            }
        }
    }

    /// Listens for clients; `mode` is who may use a socket of this machine.
    ///
    /// # Errors
    /// When somebody else listens there, or it is not allowed.
    pub fn listen(&self, mode: u32) -> io::Result<Listener> {
        match self {
            Self::Unix(path) => Ok(Listener::Unix(listen_at(path, mode)?)),
            Self::Tcp(place) => Ok(Listener::Tcp(TcpListener::bind(place)?)),
        }
    }
}

/// The numbers of a host and its port; None where its name would have to be looked up.
fn numbers(place: &str) -> Option<SocketAddr> {
    match place.rsplit_once(':') {
        Some(("localhost", port)) => Some((Ipv4Addr::LOCALHOST, port.parse().ok()?).into()),
        _ => place.parse().ok(),
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(formatter, "unix:{}", path.display()),
            Self::Tcp(place) => write!(formatter, "tcp:{place}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_shown_alike() {
        for text in [
            "unix:/run/disk0.sock",
            "tcp:storage1:10809",
            "tcp:[::1]:10809",
        ] {
            assert_eq!(Address::parse(text).unwrap().to_string(), text);
        }
        let relative = Address::parse("unix:disk0.sock").unwrap();
        let absolute = relative.within(Path::new("/etc/ascar"));
        assert_eq!(absolute.to_string(), "unix:/etc/ascar/disk0.sock");
    }

    #[test]
    fn what_leads_to_itself_is_told() {
        for (server, listens, is_led) in [
            ("unix:/a", "unix:/a", true),
            ("unix:/a", "unix:/b", false),
            ("tcp:127.0.0.1:9", "tcp:0.0.0.0:9", true),
            ("tcp:localhost:9", "tcp:127.0.0.1:9", true),
            ("tcp:[::1]:9", "tcp:[::]:9", true),
            ("tcp:0.0.0.0:9", "tcp:127.0.0.1:9", true),
            ("tcp:storage1:9", "tcp:storage1:9", true),
            ("tcp:192.0.2.1:9", "tcp:0.0.0.0:9", false),
            ("tcp:127.0.0.1:9", "tcp:127.0.0.1:8", false),
            ("tcp:storage1:9", "unix:/a", false),
        ] {
            let (server, there) = (Address::parse(server), Address::parse(listens));
            let found = server.clone().unwrap().leads_to(&there.unwrap());
            assert_eq!(found, is_led, "{server:?} to {listens}");
        }
    }

    #[test]
    fn other_forms_are_refused() {
        for text in [
            "",
            "unix:",
            "unix:a\0b",
            "tcp:",
            "tcp:host",
            "tcp:host:",
            "tcp:host:0",
            "tcp::10809",
            "tcp:host:70000",
            "nbd://host",
            "/run/disk0.sock",
        ] {
            let said = Address::parse(text).unwrap_err();
            assert!(said.contains("tcp:HOST:PORT"), "{said}");
        }
    }
}
