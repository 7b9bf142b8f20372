//! What the server says, cut into pieces of bounded length.

use crate::Fault;

/// Longest line of the protocol.
const LINE_BYTES_MAX: usize = 64 * 1024;
/// Longest payload that is taken.
pub const PAYLOAD_BYTES_MAX: usize = 64 << 20;

/// A message on a subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Where it was published.
    pub subject: String,
    /// Where the sender wants the reply.
    pub reply: Option<String>,
    /// What it says.
    pub payload: Vec<u8>,
}

/// One thing that the server says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// About itself, as JSON.
    Info(String),
    /// A message.
    Message(Message),
    /// Are you there?
    Ping,
    /// I am.
    Pong,
    /// What is wrong.
    Error(String),
}

/// Collects bytes and cuts events off.
#[derive(Debug, Default)]
pub struct Parser {
    buffer: Vec<u8>,
    start: usize,
}

impl Parser {
    /// Where the next bytes go.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.start > 0 && self.start == self.buffer.len() {
            self.buffer.clear();
            self.start = 0;
            if self.buffer.capacity() > 1 << 20 {
                self.buffer.shrink_to(64 * 1024);
            }
        } else if self.start > 256 * 1024 {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Whether every byte was taken.
    pub fn is_empty(&self) -> bool {
        self.start == self.buffer.len()
    }

    /// The next event, if it is complete.
    ///
    /// # Errors
    /// When the other side does not speak NATS.
    pub fn event(&mut self) -> Result<Option<Event>, Fault> {
        loop {
            let rest = &self.buffer[self.start..];
            let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
                if rest.len() > LINE_BYTES_MAX {
                    return Err(Fault(
                        "the server sends an endless line: is it NATS?".to_owned(),
                    ));
                }
                return Ok(None);
            };
            let line = std::str::from_utf8(&rest[..end])
                .map_err(|_| {
                    Fault("the server sends bytes that are no text: is it NATS?".to_owned())
                })?
                .trim_end();
            let (word, tail) = line.split_once([' ', '\t']).unwrap_or((line, ""));
            let event = match word {
                "MSG" => {
                    let (subject, reply, length) = message_head(tail).ok_or_else(|| {
                        Fault(format!(
                            "the server sends a message without a length: {line:?}"
                        ))
                    })?;
                    if length > PAYLOAD_BYTES_MAX {
                        return Err(Fault(format!(
                            "the server sends a message of {length} bytes"
                        )));
                    }
                    let body = end + 1;
                    if rest.len() < body + length + 2 {
                        return Ok(None);
                    }
                    let message = Message {
                        subject: subject.to_owned(),
                        reply: reply.map(str::to_owned),
                        payload: rest[body..body + length].to_vec(),
                    };
                    self.start += body + length + 2;
                    return Ok(Some(Event::Message(message)));
                }
                "INFO" => Some(Event::Info(tail.to_owned())),
                "PING" => Some(Event::Ping),
                "PONG" => Some(Event::Pong),
                "-ERR" => Some(Event::Error(tail.trim_matches(['\'', ' ']).to_owned())),
                "+OK" | "" => None,
                _ => {
                    let shown: String = line.chars().take(80).collect();
                    return Err(Fault(format!("the server says {shown:?}: is it NATS?")));
                }
            };
            self.start += end + 1;
            if event.is_some() {
                return Ok(event);
            }
        }
    }
}

/// `<subject> <sid> [reply] <bytes>`
fn message_head(text: &str) -> Option<(&str, Option<&str>, usize)> {
    let mut words = text.split_ascii_whitespace();
    let (subject, _, third) = (words.next()?, words.next()?, words.next()?);
    match words.next() {
        None => Some((subject, None, third.parse().ok()?)),
        Some(length) => Some((subject, Some(third), length.parse().ok()?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(bytes: &[u8], piece: usize) -> Result<Vec<Event>, Fault> {
        let mut parser = Parser::default();
        let mut events = Vec::new();
        for piece in bytes.chunks(piece) {
            parser.feed(piece);
            while let Some(event) = parser.event()? {
                events.push(event);
            }
        }
        Ok(events)
    }

    #[test]
    fn pieces_of_any_length_make_the_same_events() {
        let text = b"INFO {\"a\":1}\r\nMSG s.t 1 3\r\nab\n\r\nPING\r\nMSG s 2 _INBOX.x 0\r\n\r\n+OK\r\n-ERR 'no'\r\n";
        let whole = events(text, text.len()).unwrap();
        assert_eq!(whole.len(), 5);
        for piece in 1..text.len() {
            assert_eq!(events(text, piece).unwrap(), whole, "{piece}");
        }
        let Event::Message(message) = &whole[3] else {
            panic!()
        };
        assert_eq!(message.reply.as_deref(), Some("_INBOX.x"));
    }

    #[test]
    fn what_is_not_nats_is_refused() {
        assert!(events(b"HTTP/1.1 400 Bad Request\r\n", 9).is_err());
        assert!(events(b"MSG a 1 99999999999\r\n", 9).is_err());
        assert!(events(b"MSG a\r\n", 9).is_err());
        assert!(events(&[b'x'; 100_000], 4096).is_err());
        assert!(events(b"\xff\xfe\r\n", 9).is_err());
    }
}
