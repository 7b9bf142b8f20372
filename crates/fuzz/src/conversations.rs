//! Both sides of a connection, as the proxy follows them: which answer belongs to which request.

use std::collections::BTreeMap;

use ascar_proxy::http::Exchanges;
use ascar_proxy::nbd::Blocks;
use ascar_proxy::nbd::negotiation::Negotiated;
use ascar_proxy::protocol::{Answer, Dialogue, IN_FLIGHT_MAX, Next, Sent};
use ascar_proxy::recorder::Place;
use ascar_proxy::resp::Values;

/// The first byte says which protocol is spoken. Then come turns: whose it is and how much is said, in a byte, and that.
pub fn conversations(bytes: &[u8]) {
    let Some((kind, turns)) = bytes.split_first() else {
        return;
    };
    match kind % 4 {
        0 => converse(Exchanges::default(), true, turns),
        1 => converse(Values::default(), true, turns),
        at => {
            let structured_replies = at == 3;
            converse(
                Blocks::after(Negotiated { structured_replies }),
                false,
                turns,
            );
        }
    }
}

/// What has come from one side and has not passed.
#[derive(Default)]
struct Side {
    come: Vec<u8>,
    body_left: usize,
    /// Whether the last piece has more than its head.
    has_body: bool,
}

impl Side {
    /// Passes what need not be looked at; whether there is something to look at behind it.
    fn skip(&mut self) -> bool {
        let count = self.body_left.min(self.come.len());
        self.come.drain(..count);
        self.body_left -= count;
        self.body_left == 0 && !self.come.is_empty()
    }

    fn pass(&mut self, head_bytes: usize, body_bytes: usize) {
        assert!(head_bytes > 0 && head_bytes <= self.come.len());
        self.come.drain(..head_bytes);
        self.body_left = body_bytes;
        self.has_body = body_bytes > 0;
    }

    fn cut(&mut self, range: std::ops::Range<usize>) {
        assert!(!range.is_empty() && range.end <= self.come.len());
        self.come.drain(range);
    }
}

struct Conversation<D> {
    dialogue: D,
    /// Whether answers come in the order of requests.
    is_ordered: bool,
    client: Side,
    server: Side,
    /// Requests so far.
    count: u64,
    in_flight: BTreeMap<u64, Sent>,
}

fn converse<D: Dialogue>(dialogue: D, is_ordered: bool, mut turns: &[u8]) {
    let mut both = Conversation {
        dialogue,
        is_ordered,
        client: Side::default(),
        server: Side::default(),
        count: 0,
        in_flight: BTreeMap::new(),
    };
    while let Some((turn, rest)) = turns.split_first() {
        let (said, behind) = rest.split_at(usize::from(turn >> 1).min(rest.len()));
        turns = behind;
        let side = if turn & 1 == 0 {
            &mut both.client
        } else {
            &mut both.server
        };
        side.come.extend(said);
        // What was too much may leave once an answer has come.
        if both.tell().is_err() || both.hear().is_err() {
            return;
        }
        both.check();
    }
    let answer = both.dialogue.on_server_end();
    both.answered(answer);
    both.check();
    let _ = both.dialogue.tell(both.client.body_left > 0);
    let _ = both.dialogue.last_word(&Ok(()));
    both.dialogue.forget();
    assert_eq!((both.dialogue.count(), both.dialogue.held()), (0, (0, 0)));
}

impl<D: Dialogue> Conversation<D> {
    /// What the client has said leaves, as far as it is whole.
    fn hear(&mut self) -> Result<(), ()> {
        while self.client.skip() {
            match self
                .dialogue
                .next_request(&self.client.come)
                .map_err(drop)?
            {
                Next::Found(part) => {
                    if self.dialogue.count() >= IN_FLIGHT_MAX {
                        return Ok(());
                    }
                    let _ = self.dialogue.access(&part.request, &self.client.come);
                    self.count += 1;
                    let sent = part.ask.map(|ask| Sent {
                        at_us: self.count,
                        bytes: ask.bytes,
                        is_sequential: false,
                        is_held: ask.is_held,
                        record: Place::default(),
                    });
                    self.dialogue.on_send(part.request, sent).map_err(drop)?;
                    self.dialogue.take_moved();
                    if let Some(sent) = sent.filter(|_| part.ask.is_some_and(|it| it.is_answered)) {
                        self.in_flight.insert(sent.at_us, sent);
                    }
                    self.client
                        .pass(part.piece.head_bytes, part.piece.body_bytes);
                }
                Next::Cut(range) => self.client.cut(range),
                Next::Needs => return Ok(()),
                Next::Passes(_) => return Err(()),
            }
        }
        Ok(())
    }

    /// What the server has said passes, as far as it is whole, and answers.
    fn tell(&mut self) -> Result<(), ()> {
        loop {
            let has_more = self.server.skip();
            if self.server.body_left == 0 && std::mem::take(&mut self.server.has_body) {
                self.passed();
            }
            if !has_more {
                return Ok(());
            }
            match self.dialogue.next_reply(&self.server.come).map_err(drop)? {
                Next::Found(piece) => {
                    self.server.pass(piece.head_bytes, piece.body_bytes);
                    if piece.body_bytes == 0 {
                        self.passed();
                    }
                }
                Next::Cut(range) => self.server.cut(range),
                Next::Needs => return Ok(()),
                Next::Passes(_) => return Err(()),
            }
        }
    }

    /// All of a piece of the server's has passed.
    fn passed(&mut self) {
        self.dialogue.take_moved();
        let answer = self.dialogue.take_answer();
        self.answered(answer);
    }

    fn answered(&mut self, answer: Option<Answer>) {
        let Some(sent) = answer.and_then(|answer| answer.sent) else {
            return;
        };
        if self.is_ordered {
            let oldest = self.in_flight.first_key_value().map(|it| *it.0);
            assert_eq!(oldest, Some(sent.at_us), "answers come in order");
        }
        let asked = self.in_flight.remove(&sent.at_us);
        assert_eq!(asked, Some(sent), "a request is answered once");
    }

    /// What the proxy says is in flight is what was asked and not answered.
    fn check(&self) {
        let all = || self.in_flight.values();
        assert_eq!(self.dialogue.count(), self.in_flight.len());
        let held = all().filter(|it| it.is_held);
        let bytes = held.clone().map(|it| u64::from(it.bytes)).sum();
        assert_eq!(self.dialogue.held(), (held.count() as u32, bytes));
        for is_partial in [false, true] {
            let owed = self.dialogue.owed_since_us(is_partial);
            assert!(owed.is_none_or(|at_us| self.in_flight.contains_key(&at_us)));
        }
    }
}
