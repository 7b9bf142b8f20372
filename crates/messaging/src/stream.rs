//! The socket: plain, or inside TLS. Never blocks.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use ascar_tls::rustls::{ClientConfig, ClientConnection};
use ascar_tls::{client_configuration, server_name};

use crate::{Fault, Options};

/// A connected socket.
#[derive(Debug)]
pub struct Stream {
    socket: TcpStream,
    tls: Option<Box<ClientConnection>>,
}

impl Stream {
    /// Connects, without TLS at first: the server greets in the clear.
    pub fn connect(host: &str, port: u16, patience: Duration) -> Result<Self, Fault> {
        let failed = |error: std::io::Error| Fault(format!("{host}:{port}: {error}"));
        let mut last = Fault(format!("{host}:{port}: has no address"));
        for address in (host, port).to_socket_addrs().map_err(failed)? {
            match TcpStream::connect_timeout(&address, patience) {
                Ok(socket) => {
                    socket.set_nodelay(true).map_err(failed)?;
                    socket.set_nonblocking(true).map_err(failed)?;
                    return Ok(Self { socket, tls: None });
                }
                Err(error) => last = failed(error),
            }
        }
        Err(last)
    }

    /// Goes on inside TLS; the handshake happens with what is read and written next.
    pub fn encrypt(&mut self, options: &Options, host: &str) -> Result<(), Fault> {
        let name = server_name(host).map_err(|why| Fault(format!("url: {why}")))?;
        let connection = ClientConnection::new(Arc::new(configuration(options)?), name)
            .map_err(|error| Fault(format!("TLS: {error}")))?;
        self.tls = Some(Box::new(connection));
        Ok(())
    }

    /// For poll.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Whether there is something that only TLS knows of to be written.
    pub fn wants_write(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// Reads what has come. Returns false when nothing had.
    pub fn read(&mut self, mut take: impl FnMut(&[u8])) -> Result<bool, Fault> {
        let mut piece = [0; 16 * 1024];
        let Some(tls) = &mut self.tls else {
            return match self.socket.read(&mut piece) {
                Ok(0) => Err(gone()),
                Ok(count) => {
                    take(&piece[..count]);
                    Ok(true)
                }
                Err(error) if is_later(&error) => Ok(false),
                Err(error) => Err(broken(&error)),
            };
        };
        match tls.read_tls(&mut self.socket) {
            Ok(0) => return Err(gone()),
            Ok(_) => {}
            Err(error) if is_later(&error) => return Ok(false),
            Err(error) => return Err(broken(&error)),
        }
        tls.process_new_packets().map_err(|error| {
            Fault(format!(
                "TLS: {error}: check tls.ca and the server's certificate"
            ))
        })?;
        loop {
            match tls.reader().read(&mut piece) {
                Ok(0) => return Err(gone()),
                Ok(count) => take(&piece[..count]),
                Err(error) if is_later(&error) => return Ok(true),
                Err(error) => return Err(broken(&error)),
            }
        }
    }

    /// Writes the beginning of `bytes`, as much as goes. Returns how much was taken.
    pub fn write(&mut self, bytes: &[u8]) -> Result<usize, Fault> {
        let Some(tls) = &mut self.tls else {
            return match self.socket.write(bytes) {
                Ok(count) => Ok(count),
                Err(error) if is_later(&error) => Ok(0),
                Err(error) => Err(broken(&error)),
            };
        };
        let taken = if bytes.is_empty() {
            0
        } else {
            tls.writer().write(bytes).map_err(|error| broken(&error))?
        };
        while tls.wants_write() {
            match tls.write_tls(&mut self.socket) {
                Ok(_) => {}
                Err(error) if is_later(&error) => break,
                Err(error) => return Err(broken(&error)),
            }
        }
        Ok(taken)
    }
}

fn is_later(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

fn gone() -> Fault {
    Fault("the server has closed the connection".to_owned())
}

fn broken(error: &std::io::Error) -> Fault {
    Fault(format!("the connection to the server is broken: {error}"))
}

fn configuration(options: &Options) -> Result<ClientConfig, Fault> {
    if options.tls.ca.is_none() {
        return Err(Fault(
            "the server asks for TLS: write tls:// in url and name its CA in tls.ca".to_owned(),
        ));
    }
    client_configuration(&options.tls).map_err(|why| Fault(format!("tls.{why}")))
}
