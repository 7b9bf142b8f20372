//! TLS on one side of a connection, for two threads: one that reads and one that writes. Neither waits for the socket
//! while it holds what both need.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use ascar_tls::rustls::{self, Connection};

use crate::connection::End;
use crate::socket::{Socket, Waited, wait_for};

/// What the socket is read into at once, and what is encrypted at once: about a record. More is memory of each side.
const PIECE_BYTES: usize = 16 << 10;

/// How long the other end may take until TLS is there.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(30);

/// TLS, once both ends have agreed on it.
#[derive(Debug)]
pub struct Tls {
    session: Mutex<Connection>,
    incoming: Mutex<Incoming>,
    outgoing: Mutex<Outgoing>,
}

/// What has come and was not looked at.
#[derive(Debug)]
struct Incoming {
    piece: Box<[u8]>,
    start: usize,
    end: usize,
}

/// What was encrypted and not sent.
#[derive(Debug, Default)]
struct Outgoing {
    bytes: Vec<u8>,
    sent: usize,
    /// How much of what was to be said it tells.
    told: usize,
}

impl Tls {
    /// Agrees on TLS with the other end, unless `other`, the other side of the connection, leaves meanwhile.
    ///
    /// # Errors
    /// When the other end is not whom it should be, says what is no TLS, is silent, or ends it.
    pub fn agree(
        socket: &Socket,
        session: Connection,
        other: Option<&Socket>,
    ) -> Result<Self, End> {
        let tls = Self {
            session: Mutex::new(session),
            incoming: Mutex::new(Incoming {
                piece: vec![0; PIECE_BYTES].into(),
                start: 0,
                end: 0,
            }),
            outgoing: Mutex::default(),
        };
        let until = Instant::now() + HANDSHAKE_LIMIT;
        loop {
            let shaken = tls.shake();
            // Also the last word before an end tells the other one why.
            tls.flush(socket)?;
            if shaken? {
                return Ok(tls);
            }
            let left = until.saturating_duration_since(Instant::now());
            match wait_for(socket, other, left)? {
                Waited::Readable => {}
                Waited::OtherGone => return Err(End::Closed),
                Waited::Nothing => {
                    let limit_s = HANDSHAKE_LIMIT.as_secs();
                    return Err(End::Broken(format!("TLS: not within {limit_s} s")));
                }
            }
            if tls.incoming().fill(socket)? == 0 {
                return Err(End::Broken(
                    "TLS: the other end has ended it before it was there".to_owned(),
                ));
            }
        }
    }

    /// Goes on with what has come; whether TLS is there. What comes behind that is left for the first read.
    fn shake(&self) -> io::Result<bool> {
        let mut incoming = self.incoming();
        let mut session = self.session();
        while session.is_handshaking() && incoming.start < incoming.end {
            incoming.hand_over(&mut session)?;
        }
        Ok(!session.is_handshaking())
    }

    /// Sends what the session itself has to say.
    fn flush(&self, socket: &Socket) -> io::Result<()> {
        let mut bytes = Vec::new();
        collect(&mut self.session(), &mut bytes)?;
        socket.write_all(&bytes)
    }

    /// Reads what has come before; None where the socket has to be waited for, 0 at the end.
    ///
    /// # Errors
    /// When what came is no TLS, or its end was not announced.
    pub fn take(&self, into: &mut [u8]) -> io::Result<Option<usize>> {
        let mut incoming = self.incoming();
        let mut session = self.session();
        let mut count = 0;
        loop {
            match io::Read::read(&mut session.reader(), &mut into[count..]) {
                Ok(0) => return Ok(Some(count)),
                Ok(more) => {
                    count += more;
                    if count == into.len() {
                        return Ok(Some(count));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if incoming.start == incoming.end {
                        return Ok((count > 0).then_some(count));
                    }
                    incoming.hand_over(&mut session)?;
                }
                // What was right before a broken end is told first.
                Err(_) if count > 0 => return Ok(Some(count)),
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether something has come before that was not taken.
    pub fn has_more(&self) -> bool {
        let incoming = self.incoming();
        incoming.start < incoming.end || !self.session().wants_read()
    }

    /// The same, after the socket was read once.
    ///
    /// # Errors
    /// When the connection is broken, what came is no TLS, or nothing came for as long as reads may wait.
    pub fn read(&self, socket: &Socket, into: &mut [u8]) -> io::Result<Option<usize>> {
        if let Some(count) = self.take(into)? {
            return Ok(Some(count));
        }
        // The session is free meanwhile for the thread that writes.
        let count = self.incoming().fill(socket)?;
        if count == 0 {
            let end: &[u8] = &[];
            self.session().read_tls(&mut &*end)?;
        }
        let taken = self.take(into);
        if taken.is_err() {
            self.say_last(socket);
        }
        taken
    }

    /// Writes some of it; 0 where not all that was encrypted is sent within the limit of the socket: the same bytes come
    /// again, and are told as written once they are.
    ///
    /// # Errors
    /// When the connection is broken.
    pub fn write(&self, socket: &Socket, bytes: &[u8]) -> io::Result<usize> {
        let mut outgoing = self.outgoing();
        if outgoing.bytes.is_empty() {
            let mut session = self.session();
            let piece = &bytes[..bytes.len().min(PIECE_BYTES)];
            outgoing.told = io::Write::write(&mut session.writer(), piece)?;
            collect(&mut session, &mut outgoing.bytes)?;
        }
        while outgoing.sent < outgoing.bytes.len() {
            match socket.write_some(&outgoing.bytes[outgoing.sent..])? {
                0 => return Ok(0),
                count => outgoing.sent += count,
            }
        }
        Ok(outgoing.clear())
    }

    /// Tells the other end that this was the end, if that needs no waiting.
    pub fn say_goodbye(&self, socket: &Socket) {
        self.session().send_close_notify();
        self.say_last(socket);
    }

    /// Sends a last word, unless another thread is sending, or half of something was sent.
    fn say_last(&self, socket: &Socket) {
        let mut outgoing = match self.outgoing.try_lock() {
            Ok(outgoing) => outgoing,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        if outgoing.bytes.is_empty() && collect(&mut self.session(), &mut outgoing.bytes).is_ok() {
            socket.send_now(&outgoing.bytes);
            outgoing.clear();
        }
    }

    fn session(&self) -> MutexGuard<'_, Connection> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn incoming(&self) -> MutexGuard<'_, Incoming> {
        self.incoming.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn outgoing(&self) -> MutexGuard<'_, Outgoing> {
        self.outgoing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Incoming {
    /// Reads what the socket has; 0 at the end.
    fn fill(&mut self, socket: &Socket) -> io::Result<usize> {
        let count = socket.read(&mut self.piece)?;
        (self.start, self.end) = (0, count);
        Ok(count)
    }

    /// Hands as much as it takes over to the session.
    fn hand_over(&mut self, session: &mut Connection) -> io::Result<()> {
        let mut rest = &self.piece[self.start..self.end];
        let taken = session.read_tls(&mut rest)?;
        // Behind its announced end nothing counts.
        self.start = if taken == 0 {
            self.end
        } else {
            self.start + taken
        };
        session
            .process_new_packets()
            .map(drop)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }
}

impl Outgoing {
    /// All of it was sent; how much that told.
    fn clear(&mut self) -> usize {
        self.bytes.clear();
        self.sent = 0;
        std::mem::take(&mut self.told)
    }
}

/// Takes out what a session wants to send.
fn collect(session: &mut Connection, into: &mut Vec<u8>) -> io::Result<()> {
    while session.wants_write() {
        session.write_tls(into)?;
    }
    Ok(())
}

/// What TLS itself has to say of an error, in a line; None of any other.
pub fn told_by(error: &io::Error) -> Option<String> {
    let inner = error.get_ref()?.downcast_ref::<rustls::Error>()?;
    Some(format!("TLS: {inner}"))
}
