//! HTTP/1.1, and so S3: responses come in the order of requests. Each client's connection has one of its own to the
//! server, so what is said of one holds for the other, and no client's bytes are ever beside another's.
//!
//! Heads pass as they came, but for what is of one connection alone; a client's signature of them holds. What could be
//! read in two ways is refused (`ascar-http`).

mod opening;
mod rest;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use ascar_http::{Body, Refusal, Request, Response, Status, Target};
use ascar_plane::RecordedKind;

use crate::connection::{End, Opened};
use crate::protocol::{Access, Answer, Ask, Dialogue, LastWord, Next, Part, Piece, Sent, Tell};
use crate::socket::Socket;
use crate::terms::Terms;

use rest::{Found, Rest};

/// How long a client may take for the head of a request it has begun, and how long it may pause amid a body.
pub const CLIENT_LIMIT: Duration = Duration::from_secs(30);

/// A connection of HTTP.
#[derive(Debug, Default)]
pub struct Exchanges {
    /// What was asked and not answered, the oldest first.
    asked: VecDeque<Asked>,
    /// What of the latest request is to come.
    sending: Rest,
    /// What of the response to the oldest has come.
    response: Option<Begun>,
    /// Whether all of that has come once the last piece has passed.
    is_answered: bool,
    /// Whether any response has begun.
    has_answered: bool,
    /// Whether the proxy has answered itself, which is the last thing that the client hears.
    is_told: bool,
    /// Data that was read and written since that was asked for.
    moved_bytes: (u64, u64),
}

/// A request that waits for its response.
#[derive(Clone, Copy, Debug)]
struct Asked {
    sent: Sent,
    is_head: bool,
    reads: bool,
    written_bytes: u64,
}

/// A response that has begun.
#[derive(Clone, Copy, Debug)]
struct Begun {
    rest: Rest,
    read_bytes: u64,
    is_overload: bool,
}

/// What is known of a part of a client's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Said {
    /// Where it begins with a head: whether a head alone is asked for, and whether it only reads.
    head: Option<(bool, bool)>,
    data_bytes: u64,
    rest: Rest,
}

impl Dialogue for Exchanges {
    type Request = Said;

    const CLIENT_LIMIT: Option<Duration> = Some(CLIENT_LIMIT);

    /// One that ends its sending has given up what it waits for: its kind of client does not end one half alone, and a
    /// server is not to work for nobody.
    const ENDS_WITH_CLIENT: bool = true;

    fn open(client: Socket, terms: &Terms, _say: &dyn Fn(&str)) -> Result<Opened<Self>, End> {
        opening::open(client, terms)
    }

    fn next_request(&self, bytes: &[u8]) -> Result<Next<Part<Said>>, End> {
        if self.sending.is_over() {
            return next_head(bytes);
        }
        let Some(found) = self.sending.next(bytes).map_err(refused)? else {
            return Ok(Next::Needs);
        };
        Ok(Next::Found(Part {
            piece: found.piece,
            ask: None,
            has_more: !found.rest.is_over(),
            request: Said {
                head: None,
                data_bytes: found.data_bytes,
                rest: found.rest,
            },
        }))
    }

    /// Objects are told apart by their paths. A head alone moves nothing, nor does what has no body and does not only read.
    fn access<'a>(&self, said: &Said, bytes: &'a [u8]) -> Option<Access<'a>> {
        let kind = match said.head? {
            (true, _) => return None,
            (false, true) => RecordedKind::Read,
            (false, false) if said.data_bytes == 0 && said.rest.is_over() => return None,
            (false, false) => RecordedKind::Write,
        };
        let target = Target::of(bytes)?;
        Some(Access {
            kind,
            name: target.path,
            offset_bytes: target.first_byte,
        })
    }

    fn on_send(&mut self, said: Said, sent: Option<Sent>) -> Result<(), End> {
        self.sending = said.rest;
        self.moved_bytes.1 += said.data_bytes;
        match (said.head, sent) {
            (Some((is_head, reads)), Some(sent)) => self.asked.push_back(Asked {
                sent,
                is_head,
                reads,
                written_bytes: said.data_bytes,
            }),
            // It may have been answered before all of it was said.
            _ => {
                if let Some(latest) = self.asked.back_mut() {
                    latest.written_bytes += said.data_bytes;
                }
            }
        }
        Ok(())
    }

    fn next_reply(&mut self, bytes: &[u8]) -> Result<Next<Piece>, End> {
        if self.is_told {
            return Err(End::Closed);
        }
        let Some(begun) = &mut self.response else {
            return self.next_response(bytes);
        };
        let Some(found) = begun.rest.next(bytes).map_err(wrong_response)? else {
            return Ok(Next::Needs);
        };
        begun.rest = found.rest;
        begun.read_bytes += found.data_bytes;
        self.moved_bytes.0 += found.data_bytes;
        self.is_answered = found.rest.is_over();
        Ok(Next::Found(found.piece))
    }

    fn take_answer(&mut self) -> Option<Answer> {
        if !std::mem::take(&mut self.is_answered) {
            return None;
        }
        let begun = self.response.take()?;
        let asked = self.asked.pop_front()?;
        Some(Answer {
            sent: Some(asked.sent),
            read_bytes: begun.read_bytes,
            written_bytes: asked.written_bytes,
            is_counted: true,
            writes: !asked.reads && asked.written_bytes > 0,
            is_overload: begun.is_overload,
        })
    }

    fn take_moved(&mut self) -> (u64, u64) {
        std::mem::take(&mut self.moved_bytes)
    }

    fn on_server_end(&mut self) -> Option<Answer> {
        let rest = self.response.as_ref().map(|begun| begun.rest);
        self.is_answered = rest == Some(Rest::UntilClose);
        self.take_answer()
    }

    fn count(&self) -> usize {
        self.asked.len()
    }

    fn owed_since_us(&self, is_partial: bool) -> Option<u64> {
        let owed = self.asked.len() - usize::from(is_partial).min(self.asked.len());
        let oldest = self.asked.front().filter(|_| owed > 0);
        oldest.map(|asked| asked.sent.at_us)
    }

    fn held(&self) -> (u32, u64) {
        let bytes = self.asked.iter().map(|it| u64::from(it.sent.bytes)).sum();
        (self.asked.len() as u32, bytes)
    }

    fn forget(&mut self) {
        self.asked.clear();
        self.response = None;
    }

    fn late(&self) -> End {
        let limit_s = CLIENT_LIMIT.as_secs();
        refused(Refusal::new(
            Status::RequestTimeout,
            format!("a request: its rest did not come within {limit_s} s"),
        ))
    }

    fn tell(&mut self, is_amid: bool) -> Tell {
        // Of a request whose answer has begun, or is over, the client hears nothing else.
        let is_answered = match self.asked.len() {
            0 => true,
            1 => self.response.is_some(),
            _ => false,
        };
        if self.is_told || is_amid && is_answered {
            return Tell::Never;
        }
        if self.asked.len() > usize::from(is_amid) {
            return Tell::Later;
        }
        self.is_told = true;
        Tell::Now
    }

    fn last_word(&mut self, ended: &Result<(), End>) -> LastWord {
        if self.is_told {
            return LastWord::Told;
        }
        let begun = self.response.map(|begun| begun.rest);
        match (begun, ended) {
            // Without an end of its own, the client would take what it has for all of it.
            (Some(Rest::UntilClose), Err(_)) => return LastWord::Cut,
            (Some(_), _) => return LastWord::Part(Vec::new()),
            (None, _) => {}
        }
        let Some(oldest) = self.asked.front() else {
            return LastWord::Part(Vec::new());
        };
        let refusal = match ended {
            Err(End::Silent(why)) => Refusal::new(Status::GatewayTimeout, why),
            Err(End::Broken(why) | End::Refused { why, .. }) => {
                Refusal::new(Status::BadGateway, why)
            }
            // A server ends connections that are idle for long; its client knows that, and asks again on another.
            Ok(()) | Err(End::Closed) if self.has_answered => return LastWord::Part(Vec::new()),
            Ok(()) | Err(End::Closed) => {
                let why = "the server has ended the connection without an answer";
                Refusal::new(Status::BadGateway, why)
            }
        };
        self.is_told = true;
        LastWord::Part(refusal.response(oldest.is_head))
    }
}

impl Exchanges {
    /// The head of a response.
    fn next_response(&mut self, bytes: &[u8]) -> Result<Next<Piece>, End> {
        let Some(asked) = self.asked.front() else {
            return Err(End::Broken(
                "a response: the server says something, and nothing was asked".to_owned(),
            ));
        };
        let read = Response::parse(bytes, asked.is_head).map_err(wrong_response)?;
        let Some(response) = read else {
            return Ok(Next::Needs);
        };
        if let Some(cut) = response.cuts.last() {
            return Ok(Next::Cut(cut.clone()));
        }
        if !response.is_final() {
            return Ok(Next::Found(Piece {
                head_bytes: response.head_bytes,
                body_bytes: 0,
            }));
        }
        let found = Found::begun(response.head_bytes, response.body);
        self.moved_bytes.0 += found.data_bytes;
        self.is_answered = found.rest.is_over();
        self.has_answered = true;
        self.response = Some(Begun {
            rest: found.rest,
            read_bytes: found.data_bytes,
            is_overload: response.is_overload(),
        });
        Ok(Next::Found(found.piece))
    }
}

/// The head of a request.
fn next_head(bytes: &[u8]) -> Result<Next<Part<Said>>, End> {
    match bytes {
        // An empty line before a request is nothing (RFC 9112, section 2.2).
        [b'\r', b'\n', ..] => return Ok(Next::Cut(0..2)),
        [b'\r'] => return Ok(Next::Needs),
        _ => {}
    }
    let Some(request) = Request::parse(bytes).map_err(refused)? else {
        return Ok(Next::Needs);
    };
    if let Some(cut) = request.cuts.last() {
        return Ok(Next::Cut(cut.clone()));
    }
    let told_bytes = match request.body {
        Body::Bytes(count) => count,
        Body::Chunked | Body::UntilClose => 0,
    };
    let found = Found::begun(request.head_bytes, request.body);
    Ok(Next::Found(Part {
        piece: found.piece,
        ask: Some(Ask {
            bytes: u32::try_from(told_bytes).unwrap_or(u32::MAX),
            offset_bytes: None,
            is_held: true,
            is_answered: true,
        }),
        has_more: !found.rest.is_over(),
        request: Said {
            head: Some((request.is_head, request.reads)),
            data_bytes: found.data_bytes,
            rest: found.rest,
        },
    }))
}

/// A client is refused, and told why.
fn refused(refusal: Refusal) -> End {
    End::Refused {
        answer: refusal.response(false),
        why: format!("the client: {refusal}"),
    }
}

fn wrong_response(refusal: Refusal) -> End {
    End::Broken(format!("the server: {}", refusal.why))
}
