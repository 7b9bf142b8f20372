//! Network block devices: requests and replies find each other by cookies.

pub mod negotiation;
pub mod opening;
pub mod pending;

use ascar_nbd::{Command, Parsed, ReplyHeader, Request};
use ascar_plane::RecordedKind;

use crate::connection::{End, Opened};
use crate::protocol::{Access, Answer, Ask, Dialogue, Next, Part, Piece, Sent};
use crate::socket::Socket;
use crate::terms::Terms;

use negotiation::{Negotiated, negotiate};
use opening::{open_client, open_server};
use pending::{Pending, Waiting};

/// A connection to a network block device, after its negotiation.
#[derive(Debug, Default)]
pub struct Blocks {
    negotiated: Negotiated,
    pending: Pending,
    /// The request that is answered once the data behind the last header is there.
    answered: Option<u64>,
}

impl Dialogue for Blocks {
    type Request = Request;

    fn open(client: Socket, terms: &Terms, say: &dyn Fn(&str)) -> Result<Opened<Self>, End> {
        let client = open_client(client, terms.listen_tls.as_ref(), say)?;
        let server = open_server(terms.connect()?, terms.server_tls.as_ref(), &client.side)?;
        let negotiated = negotiate(&client, &server, say)?;
        Ok(Opened {
            client: client.side,
            server: server.side,
            dialogue: Self::after(negotiated),
        })
    }

    #[inline]
    fn next_request(&self, bytes: &[u8]) -> Result<Next<Part<Request>>, End> {
        let Parsed::Found { value: request, .. } = Request::parse(bytes)? else {
            return Ok(Next::Needs);
        };
        let ask = Ask {
            bytes: moved_bytes(&request),
            offset_bytes: Some(request.offset_bytes),
            is_held: true,
            is_answered: true,
        };
        Ok(Next::Found(Part {
            piece: Piece {
                head_bytes: Request::BYTES,
                body_bytes: request.payload_bytes() as usize,
            },
            // Nobody answers a disconnect.
            ask: (request.command != Command::Disconnect).then_some(ask),
            has_more: false,
            request,
        }))
    }

    fn access<'a>(&self, request: &Request, _: &'a [u8]) -> Option<Access<'a>> {
        let kind = match request.command {
            Command::Read => RecordedKind::Read,
            Command::Write => RecordedKind::Write,
            Command::Flush => RecordedKind::Sync,
            _ => return None,
        };
        Some(Access {
            kind,
            name: b"",
            offset_bytes: request.offset_bytes,
        })
    }

    #[inline]
    fn on_send(&mut self, request: Request, sent: Option<Sent>) -> Result<(), End> {
        let Some(sent) = sent else { return Ok(()) };
        let waiting = Waiting {
            sent,
            reads: request.command == Command::Read,
            has_failed: false,
        };
        if self.pending.add(request.cookie, waiting) {
            return Ok(());
        }
        Err(End::Broken(format!(
            "a request: its cookie {:#x} is that of another in flight",
            request.cookie
        )))
    }

    #[inline]
    fn next_reply(&mut self, bytes: &[u8]) -> Result<Next<Piece>, End> {
        let Parsed::Found {
            value: header,
            consumed_bytes,
        } = ReplyHeader::parse(bytes)?
        else {
            return Ok(Next::Needs);
        };
        let cookie = header.cookie();
        let Some(waiting) = self.pending.get(cookie) else {
            return Err(End::Broken(format!(
                "a reply: its cookie {cookie:#x} is that of no request in flight"
            )));
        };
        let body_bytes = self.payload_bytes(&header, &waiting)?;
        if tells_error(&header) {
            self.pending.fail(cookie);
        }
        self.answered = header.is_last().then_some(cookie);
        Ok(Next::Found(Piece {
            head_bytes: consumed_bytes,
            body_bytes,
        }))
    }

    #[inline]
    fn take_answer(&mut self) -> Option<Answer> {
        let waiting = self.pending.take(self.answered.take()?)?;
        let Waiting { sent, reads, .. } = waiting;
        let moved = if waiting.has_failed { 0 } else { sent.bytes }.into();
        Some(Answer {
            sent: Some(sent),
            read_bytes: if reads { moved } else { 0 },
            written_bytes: if reads { 0 } else { moved },
            is_counted: false,
            writes: sent.bytes > 0 && !reads,
            is_overload: false,
        })
    }

    #[inline]
    fn count(&self) -> usize {
        self.pending.count()
    }

    fn owed_since_us(&self, is_partial: bool) -> Option<u64> {
        self.pending.oldest_us(is_partial)
    }

    fn held(&self) -> (u32, u64) {
        self.pending.total()
    }

    fn forget(&mut self) {
        (self.pending, self.answered) = Default::default();
    }
}

impl Blocks {
    /// A connection on which this was agreed.
    #[must_use]
    pub fn after(negotiated: Negotiated) -> Self {
        Self {
            negotiated,
            ..Self::default()
        }
    }

    /// How much data follows a header.
    fn payload_bytes(&self, header: &ReplyHeader, waiting: &Waiting) -> Result<usize, End> {
        let is_structured = self.negotiated.structured_replies;
        match header {
            ReplyHeader::Simple(reply) if reply.error != 0 || !waiting.reads => Ok(0),
            ReplyHeader::Simple(_) if !is_structured => Ok(waiting.sent.bytes as usize),
            ReplyHeader::Chunk(chunk) if is_structured => Ok(chunk.payload_bytes as usize),
            ReplyHeader::Simple(_) => Err(End::Broken(
                "a reply to a read: is simple, where structured ones were agreed on".to_owned(),
            )),
            ReplyHeader::Chunk(_) => Err(End::Broken(
                "a reply: is structured, which was not agreed on".to_owned(),
            )),
        }
    }
}

/// How much a request reads or writes.
#[inline]
fn moved_bytes(request: &Request) -> u32 {
    match request.command {
        Command::Read | Command::Write => request.length_bytes,
        _ => 0,
    }
}

fn tells_error(header: &ReplyHeader) -> bool {
    match header {
        ReplyHeader::Simple(reply) => reply.error != 0,
        ReplyHeader::Chunk(chunk) => chunk.is_error(),
    }
}
