//! Redis and what speaks as it does: replies come in the order of their commands.
//!
//! What is no reply is told apart from them: pushes of RESP3, and the messages of a connection of RESP2 that has
//! subscribed. Commands that wait for somebody else leave without a place in the window, and so do those behind them
//! on the same connection, which the server does not look at before. Where neither side can be followed any more
//! (MONITOR, replication, what is no RESP), the connection passes unheld.

use std::collections::VecDeque;

use ascar_plane::RecordedKind;
use ascar_resp::{Access as Does, Answers, Channels, Commands, Kind, Part as Told, Replies, Reply};

use crate::connection::{End, Opened};
use crate::opening::open_both;
use crate::protocol::{Access, Answer, Ask, Dialogue, Next, Part, Piece, Sent};
use crate::socket::Socket;
use crate::terms::Terms;

/// The messages of RESP2, by their first words.
const MESSAGES: [&[u8]; 3] = [b"message", b"pmessage", b"smessage"];

/// A connection to a server of values by keys.
#[derive(Debug, Default)]
pub struct Values {
    commands: Commands,
    replies: Replies,
    waiting: VecDeque<Waiting>,
    /// How many of those that wait for replies may do so for ever.
    blocking: usize,
    answers: Expected,
    is_in_transaction: bool,
    has_pushes: bool,
    subscribed: Subscribed,
    /// Why nothing can be told any more.
    lost: Option<String>,
}

/// A command that waits for its reply.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    sent: Sent,
    kind: Kind,
    /// Whether it waits for somebody else.
    blocks: bool,
    /// Confirmations that are still to come; None: not one has.
    confirmations: Option<u64>,
}

/// Which commands the server answers from now on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Expected {
    #[default]
    All,
    /// Not the next one.
    NotNext,
    Nothing,
}

/// How many subscriptions there are, as the server has confirmed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Subscribed {
    named: u64,
    patterns: u64,
    sharded: u64,
}

impl Subscribed {
    fn is_any(self) -> bool {
        self.named + self.patterns + self.sharded > 0
    }

    fn of(&mut self, channels: Channels) -> &mut u64 {
        match channels {
            Channels::Named => &mut self.named,
            Channels::Patterns => &mut self.patterns,
            Channels::Sharded => &mut self.sharded,
        }
    }

    /// The server has said how many there are now; channels by names and by patterns are counted together.
    fn note(&mut self, channels: Channels, count: i64) {
        let count = u64::try_from(count).unwrap_or(0);
        let others = match channels {
            Channels::Named => self.patterns,
            Channels::Patterns => self.named,
            Channels::Sharded => 0,
        };
        *self.of(channels) = count.saturating_sub(others);
    }
}

/// A part of a command that leaves.
#[derive(Clone, Copy, Debug)]
pub struct Leaving {
    told: Told,
    blocks: bool,
    is_answered: bool,
}

impl Dialogue for Values {
    type Request = Leaving;

    const KEPT_BYTES_MAX: usize = 4 << 20;

    fn open(client: Socket, terms: &Terms, _: &dyn Fn(&str)) -> Result<Opened<Self>, End> {
        let (client, server) = open_both(client, terms)?;
        Ok(Opened {
            client,
            server,
            dialogue: Self::default(),
        })
    }

    fn next_request(&self, bytes: &[u8]) -> Result<Next<Part<Leaving>>, End> {
        if let Some(why) = &self.lost {
            return Ok(Next::Passes(why.clone()));
        }
        let told = match self.commands.next(bytes) {
            Ok(Some(told)) => told,
            Ok(None) => return Ok(Next::Needs),
            Err(malformed) => return Ok(Next::Passes(malformed.0)),
        };
        let mut leaving = Leaving {
            told,
            blocks: false,
            is_answered: false,
        };
        let mut ask = None;
        if let Some(command) = told.begins {
            if let Some(why) = self.takes_over(command.kind) {
                return Ok(Next::Passes(why));
            }
            leaving.blocks = command.kind == Kind::Blocking && !self.is_in_transaction;
            leaving.is_answered = self.answers(command.kind);
            ask = Some(Ask {
                bytes: u32::try_from(command.bytes).unwrap_or(u32::MAX),
                offset_bytes: None,
                // The server looks at nothing behind one that waits.
                is_held: !leaving.blocks && self.blocking == 0,
                is_answered: leaving.is_answered,
            });
        }
        Ok(Next::Found(Part {
            piece: piece(told.piece),
            ask,
            has_more: told.values_left > 0,
            request: leaving,
        }))
    }

    /// Values are told apart by their keys, and read and written as wholes.
    fn access<'a>(&self, request: &Leaving, bytes: &'a [u8]) -> Option<Access<'a>> {
        request.told.begins.filter(|_| request.is_answered)?;
        let (does, key) = Does::of(bytes)?;
        let kind = match does {
            Does::Reads => RecordedKind::Read,
            Does::Writes => RecordedKind::Write,
        };
        Some(Access {
            kind,
            name: key,
            offset_bytes: 0,
        })
    }

    fn on_send(&mut self, request: Leaving, sent: Option<Sent>) -> Result<(), End> {
        self.commands.pass(&request.told);
        let (Some(command), Some(sent)) = (request.told.begins, sent) else {
            return Ok(());
        };
        self.follow(command.kind);
        if request.is_answered {
            self.blocking += usize::from(request.blocks);
            self.waiting.push_back(Waiting {
                sent,
                kind: command.kind,
                blocks: request.blocks,
                confirmations: None,
            });
        }
        Ok(())
    }

    fn next_reply(&mut self, bytes: &[u8]) -> Result<Next<Piece>, End> {
        if let Some(why) = &self.lost {
            return Ok(Next::Passes(why.clone()));
        }
        Ok(match self.replies.next(bytes) {
            Ok(Some(found)) => Next::Found(piece(found)),
            Ok(None) => Next::Needs,
            Err(malformed) => Next::Passes(malformed.0),
        })
    }

    fn take_answer(&mut self) -> Option<Answer> {
        let reply = self.replies.take_ended()?;
        let sent = self.answered(&reply);
        let written_bytes = sent.map_or(0, |sent| sent.bytes.into());
        Some(Answer {
            sent,
            read_bytes: reply.bytes,
            written_bytes,
            is_counted: false,
            writes: written_bytes > reply.bytes,
            is_overload: false,
        })
    }

    fn count(&self) -> usize {
        self.waiting.len()
    }

    fn owed_since_us(&self, is_partial: bool) -> Option<u64> {
        let oldest = self.waiting.front().filter(|it| !it.blocks)?;
        (self.waiting.len() > usize::from(is_partial)).then_some(oldest.sent.at_us)
    }

    fn held(&self) -> (u32, u64) {
        let held = || self.waiting.iter().filter(|it| it.sent.is_held);
        let bytes = held().map(|it| u64::from(it.sent.bytes)).sum();
        (held().count() as u32, bytes)
    }

    fn forget(&mut self) {
        (self.waiting, self.blocking) = Default::default();
    }
}

impl Values {
    /// Why nothing can be told behind a command; None where it can.
    fn takes_over(&self, kind: Kind) -> Option<String> {
        let what = match kind {
            Kind::TakesOver(name) => name,
            Kind::Subscription { .. } if self.is_in_transaction => "a subscription in MULTI",
            Kind::Answers(_) if self.is_in_transaction => "CLIENT REPLY in MULTI",
            Kind::Subscription { .. } if self.answers != Expected::All => {
                "a subscription behind CLIENT REPLY"
            }
            _ => return None,
        };
        Some(format!(
            "{what}: nobody can tell which commands the server answers after it"
        ))
    }

    /// Whether the server will answer a command.
    fn answers(&self, kind: Kind) -> bool {
        match kind {
            Kind::Answers(Answers::On) | Kind::Reset => true,
            Kind::Answers(Answers::Off | Answers::Skip) => false,
            _ => self.answers == Expected::All,
        }
    }

    /// A command leaves: what holds for those behind it.
    fn follow(&mut self, kind: Kind) {
        self.answers = match (kind, self.answers) {
            (Kind::Answers(Answers::On) | Kind::Reset, _) => Expected::All,
            (Kind::Answers(Answers::Off), _) | (_, Expected::Nothing) => Expected::Nothing,
            (Kind::Answers(Answers::Skip), _) => Expected::NotNext,
            (_, _) => Expected::All,
        };
        match kind {
            Kind::Transaction => self.is_in_transaction = true,
            Kind::EndOfTransaction | Kind::Reset => self.is_in_transaction = false,
            _ => {}
        }
    }

    /// The command that is answered now; None where this is no reply, or a confirmation that others follow.
    fn answered(&mut self, reply: &Reply) -> Option<Sent> {
        if self.may_be_aside(reply) {
            let word = reply.word.bytes();
            if let Some((channels, ends)) = confirmed(word) {
                return self.confirm(channels, ends, reply);
            }
            // What else there is of RESP2 is the reply to PING.
            if reply.sign == b'>' || MESSAGES.contains(&word) {
                return None;
            }
        }
        let Some(answered) = self.waiting.pop_front() else {
            self.lost = Some("the server answers what nobody has asked for".to_owned());
            return None;
        };
        self.blocking -= usize::from(answered.blocks);
        match answered.kind {
            Kind::Hello if reply.sign != b'-' => self.has_pushes = reply.sign == b'%',
            Kind::Reset if reply.sign == b'+' => {
                (self.has_pushes, self.subscribed) = Default::default();
            }
            Kind::Subscription { .. } if reply.sign == b'+' => {
                self.lost = self.takes_over(Kind::TakesOver("a subscription in MULTI"));
            }
            _ => {}
        }
        Some(answered.sent)
    }

    /// Whether what the server says may be no reply to the oldest command.
    fn may_be_aside(&self, reply: &Reply) -> bool {
        let oldest = self.waiting.front().map(|it| it.kind);
        let subscribes = matches!(oldest, Some(Kind::Subscription { .. }));
        let is_message = !self.has_pushes && (self.subscribed.is_any() || subscribes);
        reply.sign == b'>' || reply.sign == b'*' && is_message
    }

    /// A subscription has begun or ended: the command that is answered by it, if that has no more of them.
    fn confirm(&mut self, channels: Channels, ends: bool, reply: &Reply) -> Option<Sent> {
        let before = *self.subscribed.of(channels);
        if let Some(count) = reply.third {
            self.subscribed.note(channels, count);
        }
        let oldest = self.waiting.front_mut()?;
        let names = match oldest.kind {
            Kind::Subscription {
                channels: of,
                ends: does,
                names,
            } if of == channels && does == ends => names,
            // The server ends those of a shard that has moved.
            _ => return None,
        };
        let all = if names == 0 {
            before.max(1)
        } else {
            names.into()
        };
        let left = oldest.confirmations.unwrap_or(all).saturating_sub(1);
        oldest.confirmations = Some(left);
        if left > 0 {
            return None;
        }
        self.waiting.pop_front().map(|it| it.sent)
    }
}

/// What a message confirms: subscriptions to what, and whether they end.
fn confirmed(word: &[u8]) -> Option<(Channels, bool)> {
    Some(match word {
        b"subscribe" => (Channels::Named, false),
        b"psubscribe" => (Channels::Patterns, false),
        b"ssubscribe" => (Channels::Sharded, false),
        b"unsubscribe" => (Channels::Named, true),
        b"punsubscribe" => (Channels::Patterns, true),
        b"sunsubscribe" => (Channels::Sharded, true),
        _ => return None,
    })
}

fn piece(piece: ascar_resp::Piece) -> Piece {
    Piece {
        head_bytes: piece.head_bytes,
        body_bytes: piece.body_bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::Place;

    /// What the proxy makes of what a client says: whether each command is held, and whether it is answered.
    fn said(values: &mut Values, mut bytes: &[u8]) -> Vec<(bool, bool)> {
        let mut asks = Vec::new();
        while !bytes.is_empty() {
            let Ok(Next::Found(part)) = values.next_request(bytes) else {
                panic!("{:?}", values.next_request(bytes));
            };
            let sent = part.ask.map(|ask| Sent {
                at_us: 10 + asks.len() as u64,
                bytes: ask.bytes,
                is_sequential: false,
                is_held: ask.is_held,
                record: Place::default(),
            });
            asks.extend(part.ask.map(|ask| (ask.is_held, ask.is_answered)));
            values.on_send(part.request, sent).unwrap();
            bytes = &bytes[part.piece.head_bytes + part.piece.body_bytes..];
        }
        asks
    }

    /// How many commands are answered by what a server says.
    fn heard(values: &mut Values, mut bytes: &[u8]) -> usize {
        let mut answers = 0;
        while !bytes.is_empty() {
            let Ok(Next::Found(piece)) = values.next_reply(bytes) else {
                panic!("{:?}", values.next_reply(bytes));
            };
            let answer = values.take_answer();
            answers += usize::from(answer.is_some_and(|answer| answer.sent.is_some()));
            bytes = &bytes[piece.head_bytes + piece.body_bytes..];
        }
        answers
    }

    fn passes(next: Result<Next<Part<Leaving>>, End>) -> String {
        match next {
            Ok(Next::Passes(why)) => why,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn replies_answer_commands_in_their_order() {
        let mut values = Values::default();
        let asked = said(
            &mut values,
            b"GET k\r\n\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n*0\r\n",
        );
        assert_eq!(asked, [(true, true); 2]);
        assert_eq!((values.count(), values.held()), (2, (2, 7 + 20)));
        assert_eq!(values.owed_since_us(false), Some(10));
        let Ok(Next::Found(piece)) = values.next_reply(b"$3\r\nab") else {
            panic!("a piece");
        };
        assert_eq!((piece.head_bytes, piece.body_bytes), (6, 3));
        let answer = values.take_answer().unwrap();
        assert_eq!((answer.sent.unwrap().at_us, answer.read_bytes), (10, 9));
        assert_eq!((answer.written_bytes, answer.writes), (7, false));
        assert_eq!(
            (values.owed_since_us(false), values.owed_since_us(true)),
            (Some(11), None)
        );
        assert_eq!(heard(&mut values, b"*2\r\n:1\r\n*0\r\n"), 1);
        assert_eq!((values.count(), values.held()), (0, (0, 0)));
    }

    #[test]
    fn commands_that_wait_and_those_behind_them_are_not_held() {
        let mut values = Values::default();
        let asked = said(&mut values, b"PING\r\nBLPOP q 0\r\nPING\r\n");
        assert_eq!(asked, [(true, true), (false, true), (false, true)]);
        assert_eq!((values.count(), values.held()), (3, (1, 6)));
        assert_eq!(values.owed_since_us(false), Some(10));
        assert_eq!(heard(&mut values, b"+PONG\r\n"), 1);
        assert_eq!(values.owed_since_us(false), None, "it may wait for ever");
        assert_eq!(heard(&mut values, b"*-1\r\n"), 1);
        assert_eq!(values.owed_since_us(false), Some(12));
        assert_eq!(said(&mut values, b"PING\r\n"), [(true, true)]);
        assert_eq!(heard(&mut values, b"+PONG\r\n+PONG\r\n"), 2);
        // In a transaction it does not wait.
        assert_eq!(
            said(&mut values, b"MULTI\r\nBLPOP q 0\r\nEXEC\r\n"),
            [(true, true); 3]
        );
        assert_eq!(said(&mut values, b"BLPOP q 0\r\n"), [(false, true)]);
    }

    #[test]
    fn messages_of_resp2_answer_nothing() {
        let mut values = Values::default();
        said(
            &mut values,
            b"LRANGE l 0 -1\r\nSUBSCRIBE a b\r\nPSUBSCRIBE p\r\nPING\r\n",
        );
        let message = b"*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nx\r\n";
        assert_eq!(heard(&mut values, message), 1, "of the list");
        let told = |word: &str, count: u32| {
            format!("*3\r\n${}\r\n{word}\r\n$1\r\na\r\n:{count}\r\n", word.len())
        };
        assert_eq!(heard(&mut values, told("subscribe", 1).as_bytes()), 0);
        assert_eq!(heard(&mut values, message), 0);
        assert_eq!(heard(&mut values, told("subscribe", 2).as_bytes()), 1);
        assert_eq!(heard(&mut values, told("psubscribe", 3).as_bytes()), 1);
        assert_eq!(heard(&mut values, b"*2\r\n$4\r\npong\r\n$0\r\n\r\n"), 1);
        assert_eq!(
            said(
                &mut values,
                b"UNSUBSCRIBE\r\nUNSUBSCRIBE\r\nPUNSUBSCRIBE\r\nGET k\r\n"
            ),
            [(true, true); 4]
        );
        assert_eq!(heard(&mut values, told("unsubscribe", 2).as_bytes()), 0);
        assert_eq!(heard(&mut values, told("unsubscribe", 1).as_bytes()), 1);
        assert_eq!(
            heard(&mut values, told("unsubscribe", 1).as_bytes()),
            1,
            "there was none"
        );
        assert_eq!(heard(&mut values, message), 0);
        assert_eq!(heard(&mut values, told("punsubscribe", 0).as_bytes()), 1);
        assert_eq!(heard(&mut values, message), 1, "no more than any array");
        said(&mut values, b"SUBSCRIBE a\r\n");
        assert_eq!(heard(&mut values, b"-NOPERM no\r\n"), 1);
        assert_eq!(values.count(), 0);
    }

    #[test]
    fn pushes_of_resp3_answer_nothing() {
        let mut values = Values::default();
        said(&mut values, b"HELLO 3\r\nSUBSCRIBE a\r\nLRANGE l 0 -1\r\n");
        assert_eq!(heard(&mut values, b">2\r\n+invalidate\r\n*0\r\n"), 0);
        assert_eq!(heard(&mut values, b"%1\r\n+proto\r\n:3\r\n"), 1);
        assert_eq!(
            heard(
                &mut values,
                b">3\r\n$12\r\nsunsubscribe\r\n$1\r\ns\r\n:0\r\n"
            ),
            0
        );
        assert_eq!(
            heard(&mut values, b">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n"),
            1
        );
        assert_eq!(
            heard(
                &mut values,
                b">3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nx\r\n"
            ),
            0
        );
        assert_eq!(
            heard(
                &mut values,
                b"*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nx\r\n"
            ),
            1
        );
        said(&mut values, b"RESET\r\nSUBSCRIBE a\r\n");
        assert_eq!(
            heard(
                &mut values,
                b"+RESET\r\n*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n"
            ),
            2
        );
    }

    #[test]
    fn commands_that_are_not_answered_are_known() {
        let mut values = Values::default();
        let asked = said(&mut values, b"CLIENT REPLY SKIP\r\nGET a\r\nGET b\r\n");
        assert_eq!(asked, [(true, false), (true, false), (true, true)]);
        let asked = said(
            &mut values,
            b"CLIENT REPLY OFF\r\nGET a\r\nCLIENT REPLY SKIP\r\nGET b\r\n",
        );
        assert_eq!(asked, [(true, false); 4]);
        assert_eq!(
            said(&mut values, b"CLIENT REPLY ON\r\nGET a\r\n"),
            [(true, true); 2]
        );
        said(&mut values, b"CLIENT REPLY OFF\r\n");
        assert_eq!(said(&mut values, b"RESET\r\nGET a\r\n"), [(true, true); 2]);
        assert_eq!(values.count(), 5);
    }

    #[test]
    fn what_cannot_be_told_passes() {
        for (before, asked, word) in [
            (&b""[..], &b"MONITOR\r\n"[..], "MONITOR"),
            (b"MULTI\r\n", b"SUBSCRIBE a\r\n", "a subscription in MULTI"),
            (
                b"MULTI\r\n",
                b"CLIENT REPLY OFF\r\n",
                "CLIENT REPLY in MULTI",
            ),
            (
                b"CLIENT REPLY OFF\r\n",
                b"SUBSCRIBE a\r\n",
                "behind CLIENT REPLY",
            ),
            (b"", b"*x\r\n", "no number"),
        ] {
            let mut values = Values::default();
            said(&mut values, before);
            let why = passes(values.next_request(asked));
            assert!(why.contains(word), "{why}");
        }
        let mut values = Values::default();
        said(&mut values, b"GET k\r\n");
        assert_eq!(heard(&mut values, b"$-1\r\n+OK\r\n"), 1);
        let why = passes(values.next_request(b"GET k\r\n"));
        assert!(why.contains("nobody has asked"), "{why}");
        assert!(matches!(values.next_reply(b"+OK\r\n"), Ok(Next::Passes(_))));
        let mut values = Values::default();
        said(&mut values, b"SUBSCRIBE a\r\n");
        assert_eq!(heard(&mut values, b"+QUEUED\r\n"), 1);
        assert!(passes(values.next_request(b"GET k\r\n")).contains("MULTI"));
        let mut values = Values::default();
        assert!(matches!(
            values.next_reply(b"HTTP/1.1\r\n"),
            Ok(Next::Passes(_))
        ));
    }
}
