//! One side of a connection: a socket, and TLS on it where there is some.

use std::io;
use std::net::Shutdown;
use std::time::Duration;

use crate::socket::Socket;
use crate::tls::Tls;

/// The client or the server. Each direction has one thread at most.
#[derive(Debug)]
pub struct Side {
    socket: Socket,
    tls: Option<Box<Tls>>,
}

impl Side {
    /// A side in the clear.
    #[must_use]
    pub fn plain(socket: Socket) -> Self {
        Self { socket, tls: None }
    }

    /// A side inside TLS.
    #[must_use]
    pub fn inside(socket: Socket, tls: Tls) -> Self {
        let tls = Some(Box::new(tls));
        Self { socket, tls }
    }

    /// Its socket, for waiting and for limits.
    #[must_use]
    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Its socket where what passes there is what the other side is told; None inside TLS.
    #[must_use]
    #[inline]
    pub fn clear(&self) -> Option<&Socket> {
        self.tls.is_none().then_some(&self.socket)
    }

    /// Reads what has come; 0 at the end.
    ///
    /// # Errors
    /// When the connection is broken, what came is no TLS, or nothing came for as long as reads may wait.
    #[inline]
    pub fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = &self.tls else {
            return self.socket.read(into);
        };
        loop {
            if let Some(count) = tls.read(&self.socket, into)? {
                return Ok(count);
            }
        }
    }

    /// Reads what has come before; None where the socket has to be waited for.
    ///
    /// # Errors
    /// As [`Side::read`].
    pub fn take(&self, into: &mut [u8]) -> io::Result<Option<usize>> {
        match &self.tls {
            None => Ok(None),
            Some(tls) => tls.take(into),
        }
    }

    /// Reads once what the socket has; None where that is nothing yet that could be told.
    ///
    /// # Errors
    /// As [`Side::read`].
    pub fn read_once(&self, into: &mut [u8]) -> io::Result<Option<usize>> {
        match &self.tls {
            None => self.socket.read(into).map(Some),
            Some(tls) => tls.read(&self.socket, into),
        }
    }

    /// Whether something has come before that reading would give without waiting for the socket.
    #[must_use]
    pub fn has_more(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.has_more())
    }

    /// Writes all of it.
    ///
    /// # Errors
    /// When the connection is broken, or takes nothing for as long as writes may wait.
    #[inline]
    pub fn write_all(&self, bytes: &[u8]) -> io::Result<()> {
        let Some(tls) = &self.tls else {
            return self.socket.write_all(bytes);
        };
        let mut at = 0;
        while at < bytes.len() {
            match tls.write(&self.socket, &bytes[at..])? {
                0 => return Err(io::ErrorKind::TimedOut.into()),
                count => at += count,
            }
        }
        Ok(())
    }

    /// Writes some of it; 0 where nothing was taken for as long as writes may wait. Then the same bytes come next.
    ///
    /// # Errors
    /// When the connection is broken.
    #[inline]
    pub fn write_some(&self, bytes: &[u8]) -> io::Result<usize> {
        match &self.tls {
            None => self.socket.write_some(bytes),
            Some(tls) => tls.write(&self.socket, bytes),
        }
    }

    /// Writes wait for no longer than this; None: for ever.
    ///
    /// # Errors
    /// When an option is refused.
    pub fn limit_writes(&self, limit: Option<Duration>) -> io::Result<()> {
        self.socket.limit_writes(limit)
    }

    /// Ends reading, and has the other end know that what it has was cut: by TLS, or once the socket is dropped.
    pub fn cut(&self) {
        self.socket.cut();
    }

    /// Ends one or both directions; what was written before is still delivered.
    pub fn shutdown(&self, how: Shutdown) {
        if let Some(tls) = &self.tls
            && how != Shutdown::Read
        {
            tls.say_goodbye(&self.socket);
        }
        self.socket.shutdown(how);
    }
}
