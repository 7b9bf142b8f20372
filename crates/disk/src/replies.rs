//! What a connection is told, by a thread of its own, which moves the data of reads. It waits where the client does not
//! take what it is told, and so nobody waits for it.

use std::io;
use std::sync::mpsc::{Receiver, Sender};

use ascar_nbd::{Chunk, Command, ErrorCode, Request, SimpleReply};

use crate::LOG;
use crate::drive::Drive;
use crate::lease::Lease;
use crate::socket::{Half, Socket};
use crate::store::Store;
use crate::zeroes::Zeroes;

/// So much of a read is in memory at a time.
const PIECE_BYTES: u64 = 256 << 10;

/// The right of a request to one answer.
#[derive(Debug)]
pub(crate) struct Ticket {
    /// The request.
    pub(crate) request: Request,
    /// Where the answer goes.
    pub(crate) answers: Sender<Answer>,
    /// One of the requests that a connection may have under way.
    pub(crate) _room: Lease,
    /// What is still to be asked of the disk before it is answered.
    pub(crate) rest: Option<Zeroes>,
}

/// An answer to a request.
#[derive(Debug)]
pub(crate) struct Answer {
    ticket: Ticket,
    said: Said,
}

/// What is said.
#[derive(Debug)]
pub(crate) enum Said {
    /// The data there, where the request is for data.
    Data {
        /// Where, on the disk.
        position: u64,
        /// How much.
        count: u32,
    },
    /// It is done.
    Done,
    /// It is not, and why.
    Refused(ErrorCode),
}

impl Ticket {
    /// Gives the answer. A connection that is gone needs none.
    pub(crate) fn answer(self, said: Said) {
        let answers = self.answers.clone();
        let _ = answers.send(Answer { ticket: self, said });
    }
}

/// The side of a connection that writes.
#[derive(Debug)]
pub(crate) struct Replies<'a> {
    /// The connection.
    pub(crate) socket: &'a Socket,
    /// The data.
    pub(crate) store: &'a Store,
    /// The way to the model.
    pub(crate) drive: &'a Drive,
    /// Whether replies to reads are structured.
    pub(crate) structured: bool,
}

impl Replies<'_> {
    /// Answers until no request is under way and none can come.
    pub(crate) fn run(&self, answers: Receiver<Answer>) {
        let mut buffer = Vec::new();
        let mut is_gone = false;
        for Answer { mut ticket, said } in answers {
            if matches!(said, Said::Done)
                && let Some(rest) = ticket.rest.take()
            {
                self.drive.submit(rest.job(ticket));
                continue;
            }
            if is_gone {
                continue;
            }
            let request = &ticket.request;
            let told = match said {
                Said::Data { position, count } if request.command == Command::Read => {
                    self.tell_data(request, position, count, &mut buffer)
                }
                Said::Refused(code) => self.tell(request, Some(code)),
                Said::Data { .. } | Said::Done => self.tell(request, None),
            };
            if told.is_err() {
                is_gone = true;
                self.socket.close(Half::Both);
            }
        }
    }

    fn tell(&self, request: &Request, refusal: Option<ErrorCode>) -> io::Result<()> {
        match refusal {
            Some(code) if self.structured && request.command == Command::Read => self
                .socket
                .write_all(&Chunk::refusal(request.cookie, code, "")),
            None if self.structured && request.command == Command::Read => {
                self.socket.write_all(&Chunk::none(request.cookie))
            }
            _ => self
                .socket
                .write_all(&SimpleReply::new(request.cookie, refusal).encode()),
        }
    }

    /// Header and data, piece by piece. An error in a later piece can only be told by ending the connection.
    fn tell_data(
        &self,
        request: &Request,
        position: u64,
        count: u32,
        buffer: &mut Vec<u8>,
    ) -> io::Result<()> {
        buffer.clear();
        if self.structured {
            buffer.extend_from_slice(&Chunk::data(request));
        } else {
            buffer.extend_from_slice(&SimpleReply::new(request.cookie, None).encode());
        }
        let (mut at, end) = (position, position + u64::from(count));
        while at < end {
            let begin = buffer.len();
            let next = end.min(at + PIECE_BYTES);
            buffer.resize(begin + (next - at) as usize, 0);
            if let Err(error) = self.store.read(at, &mut buffer[begin..]) {
                LOG.line(format_args!("a read fails: {error}"));
                if at == position {
                    return self.tell(request, Some(ErrorCode::InputOutput));
                }
                return Err(error);
            }
            self.socket.write_all(buffer)?;
            buffer.clear();
            at = next;
        }
        Ok(())
    }
}
