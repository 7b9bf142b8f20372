//! One client: negotiation, then requests until it leaves.

use std::fmt;
use std::io::{self, BufReader, Read};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use ascar_nbd::numbers::command_flag;
use ascar_nbd::{
    Command, ErrorCode, Export, Malformed, Negotiated, Parsed, Request, ServerHandshake, Step,
};

use crate::drive::{Job, Wish};
use crate::lease::Amount;
use crate::replies::{Answer, Replies, Said, Ticket};
use crate::server::Server;
use crate::socket::{Half, Socket};
use crate::store::{Change, Data};
use crate::zeroes::Zeroes;

/// A client that says nothing for so long in the middle of a message, or does not come to an end of its negotiation, is
/// gone.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Data of a write that comes in more slowly than this, and later than [`PATIENCE`], is not waited for.
const SLOWEST_BYTES_PER_S: u32 = 256 << 10;

/// Requests of one connection that are under way; the next is read when one is answered.
const REQUESTS_MAX: u64 = 1024;

/// Headers are read so many bytes at a time.
const BUFFER_BYTES: usize = 16 << 10;

/// The stack of a connection's threads; their buffers lie elsewhere.
pub(crate) const STACK_BYTES: usize = 256 << 10;

/// Why a connection ends before its client wants it.
#[derive(Debug)]
pub(crate) enum Broken {
    /// What came makes no sense.
    Malformed(Malformed),
    /// The network's, or the machine's.
    Failed(io::Error),
}

impl From<Malformed> for Broken {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed)
    }
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(malformed) => malformed.fmt(formatter),
            Self::Failed(error) => error.fmt(formatter),
        }
    }
}

/// What was negotiated.
struct Chosen {
    export: usize,
    structured: bool,
}

/// Serves a client until it leaves.
///
/// # Errors
/// What ended the connection otherwise.
pub(crate) fn serve(server: &Arc<Server>, socket: &Arc<Socket>, cuts: u64) -> Result<(), Broken> {
    socket.set_read_limit(Some(PATIENCE))?;
    socket.set_write_limit(Some(PATIENCE))?;
    let Some(chosen) = negotiate(&server.exports, socket)? else {
        return Ok(());
    };
    // A client may leave its replies unread: it only holds up itself.
    socket.set_write_limit(None)?;
    let (answers, answered) = channel();
    let writer = std::thread::Builder::new()
        .name("replies".to_owned())
        .stack_size(STACK_BYTES)
        .spawn({
            let (server, socket) = (server.clone(), socket.clone());
            move || {
                let replies = Replies {
                    socket: &socket,
                    store: &server.store,
                    drive: &server.drive,
                    structured: chosen.structured,
                };
                replies.run(answered);
            }
        })?;
    let begin = server.size_bytes * chosen.export as u64;
    let export = &server.exports[chosen.export];
    let mut reader = Requests {
        server,
        input: BufReader::with_capacity(BUFFER_BYTES, &**socket),
        answers,
        room: Amount::new(REQUESTS_MAX),
        begin,
        size_bytes: export.size_bytes,
        flags: export.told_flags(chosen.structured),
        cuts,
    };
    let ended = reader.run();
    drop(reader);
    if ended.is_err() {
        socket.close(Half::Both);
    }
    // What is under way is still done, and answered where somebody listens.
    let _ = writer.join();
    ended
}

/// None where the client ends it. Only what is needed is read: the rest belongs to the requests.
fn negotiate(exports: &[Export], socket: &Socket) -> Result<Option<Chosen>, Broken> {
    let begun = Instant::now();
    let mut handshake = ServerHandshake::new();
    let (mut bytes, mut out) = (Vec::new(), Vec::new());
    socket.write_all(&ServerHandshake::greeting())?;
    loop {
        let step = handshake.take(exports, &bytes, &mut out)?;
        socket.write_all(&out)?;
        out.clear();
        match step {
            Step::Needs { more_bytes } => {
                if begun.elapsed() > PATIENCE {
                    return Err(io::Error::from(io::ErrorKind::TimedOut).into());
                }
                let at_hand = bytes.len();
                bytes.resize(at_hand + more_bytes, 0);
                match (&*socket).read(&mut bytes[at_hand..]) {
                    Ok(0) => return Ok(None),
                    Ok(count) => bytes.truncate(at_hand + count),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                        bytes.truncate(at_hand);
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            Step::Took { consumed_bytes } => drop(bytes.drain(..consumed_bytes)),
            Step::Done { outcome, .. } => {
                return Ok(match outcome {
                    // TLS is never accepted here.
                    Negotiated::Aborted | Negotiated::StartTls => None,
                    Negotiated::Transmission {
                        export,
                        structured_replies,
                    } => Some(Chosen {
                        export,
                        structured: structured_replies,
                    }),
                });
            }
        }
    }
}

/// The side of a connection that reads.
struct Requests<'a> {
    server: &'a Server,
    input: BufReader<&'a Socket>,
    answers: Sender<Answer>,
    room: Arc<Amount>,
    /// Where the export begins on the disk.
    begin: u64,
    size_bytes: u64,
    flags: u16,
    cuts: u64,
}

impl Requests<'_> {
    fn run(&mut self) -> Result<(), Broken> {
        let mut header = [0; Request::BYTES];
        while self.fill_or_end(&mut header)? {
            let Parsed::Found { value: request, .. } = Request::parse(&header)? else {
                break;
            };
            if request.command == Command::Disconnect {
                break;
            }
            let ticket = Ticket {
                request,
                answers: self.answers.clone(),
                _room: self.room.take(1),
                rest: None,
            };
            match request.refusal(self.size_bytes, self.flags) {
                Some(code) => {
                    self.skip(request.payload_bytes())?;
                    ticket.answer(Said::Refused(code));
                }
                None => self.pass_on(ticket)?,
            }
        }
        Ok(())
    }

    fn pass_on(&mut self, ticket: Ticket) -> Result<(), Broken> {
        let request = ticket.request;
        let position = self.begin + request.offset_bytes;
        let cuts = self.cuts;
        let wish = match request.command {
            Command::Flush => Wish::Flush { cuts },
            _ if request.length_bytes == 0 => {
                ticket.answer(Said::Done);
                return Ok(());
            }
            Command::Read | Command::Cache => Wish::Read {
                position,
                count: request.length_bytes,
            },
            Command::Trim => {
                let end = position + u64::from(request.length_bytes);
                self.server.store.trim(&(position..end), cuts);
                ticket.answer(Said::Done);
                return Ok(());
            }
            Command::Write => self.change(&request, position).map(Wish::Write)?,
            Command::WriteZeroes => {
                let range = position..position + u64::from(request.length_bytes);
                let zeroes = Zeroes { range, cuts };
                self.server.drive.submit(zeroes.job(ticket));
                return Ok(());
            }
            Command::Disconnect | Command::BlockStatus | Command::Other(_) => {
                ticket.answer(Said::Refused(ErrorCode::Invalid));
                return Ok(());
            }
        };
        self.server.drive.submit(Job { wish, ticket });
        Ok(())
    }

    fn change(&mut self, request: &Request, position: u64) -> Result<Arc<Change>, Broken> {
        let patience =
            PATIENCE + Duration::from_secs(u64::from(request.length_bytes / SLOWEST_BYTES_PER_S));
        let count = request.length_bytes as usize;
        let received = self.server.memory.receive(&mut self.input, count, patience);
        let (bytes, share) = received?;
        let data = Data::Bytes { bytes, share };
        Ok(Arc::new(Change {
            position,
            data,
            cuts: self.cuts,
            fua: request.has(command_flag::FUA),
        }))
    }

    /// Reads all of a buffer, however long the client takes for its first byte. False where it leaves before that.
    fn fill_or_end(&mut self, buffer: &mut [u8]) -> Result<bool, Broken> {
        let begun = loop {
            match self.input.read(buffer) {
                Ok(0) => return Ok(false),
                Ok(count) => break count,
                Err(error) => match error.kind() {
                    io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock => {}
                    _ => return Err(error.into()),
                },
            }
        };
        self.fill(&mut buffer[begun..])?;
        Ok(true)
    }

    fn fill(&mut self, buffer: &mut [u8]) -> Result<(), Broken> {
        Ok(self.input.read_exact(buffer)?)
    }

    fn skip(&mut self, count: u32) -> Result<(), Broken> {
        let mut rest = (&mut self.input).take(count.into());
        let skipped = io::copy(&mut rest, &mut io::sink())?;
        if skipped < count.into() {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        Ok(())
    }
}
