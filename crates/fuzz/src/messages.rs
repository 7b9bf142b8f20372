//! What comes over the network and from programs beside the agent.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use ascar_agent::collectors::{Latest, nfs, program, prometheus};
use ascar_congestion::RuleSet;
use ascar_interface::history::Request;
use ascar_interface::key::Key;
use ascar_interface::nodes::{Hello, Nodes};
use ascar_interface::relay::Action;
use ascar_messaging::protocol::{Event, Parser};
use ascar_plane::{
    Asked, Endpoint, Plane, RecordedKind, RecordedRequest, Recording, StreamIndicators, Told,
};
use ascar_wire::{Decoder, Encoder, Frame};

/// Frames, each behind its length; what could be read is written and read again.
pub fn frames(bytes: &[u8]) {
    let (mut decoder, mut rest) = (Decoder::new(), bytes);
    while let Some((length, after)) = rest.split_first() {
        let (frame, after) = after.split_at(usize::from(*length).min(after.len()));
        rest = after;
        if let Ok(frame) = decoder.decode(frame) {
            let mut again = Vec::new();
            Encoder::new(1).encode(&frame, &mut again);
            let read = Decoder::new()
                .decode(&again)
                .expect("what was written is read");
            assert_same(&read, &frame);
        }
    }
}

fn assert_same(one: &Frame, other: &Frame) {
    assert_eq!(
        (one.tick, one.layout, one.values.len()),
        (other.tick, other.layout, other.values.len())
    );
    for (left, right) in one.values.iter().zip(&other.values) {
        assert!(
            left == right || left.is_nan() && right.is_nan(),
            "{left} {right}"
        );
    }
}

/// What the message server says; the first byte is the length of the pieces in which it comes.
pub fn nats(bytes: &[u8]) {
    let Some((piece, stream)) = bytes.split_first() else {
        return;
    };
    let events = |length: usize| {
        let (mut parser, mut events) = (Parser::default(), Vec::new());
        for piece in stream.chunks(length) {
            parser.feed(piece);
            loop {
                match parser.event() {
                    Ok(Some(event)) => events.push(event),
                    Ok(None) => break,
                    Err(fault) => return (events, Some(fault)),
                }
            }
        }
        (events, None)
    };
    let (pieces, whole) = (
        events(usize::from(*piece).max(1)),
        events(stream.len().max(1)),
    );
    assert_eq!(pieces, whole, "pieces make the same events");
    for event in whole.0 {
        if let Event::Info(text) = event {
            let _ = serde_json::from_str::<serde_json::Value>(&text);
        }
    }
}

/// What agents, the learner and clients tell the interface: the first byte says which.
pub fn interface_messages(bytes: &[u8]) {
    let Some((kind, payload)) = bytes.split_first() else {
        return;
    };
    match kind % 4 {
        0 => {
            if let Ok(hello) = serde_json::from_slice::<Hello>(payload) {
                let mut nodes = Nodes::new(1);
                let place = nodes.place("a").expect("there is room for one");
                let _ = nodes.hello(place, hello, 0);
            }
        }
        1 => {
            if let Ok(action) = serde_json::from_slice::<Action>(payload) {
                let _ = action.check();
            }
        }
        2 => drop(serde_json::from_slice::<Request>(payload)),
        _ => {
            let key = Key::parse(&String::from_utf8_lossy(payload));
            let _ = (key.scope(), key.local());
        }
    }
}

/// A page of a Prometheus endpoint.
pub fn prometheus(bytes: &[u8]) {
    prometheus::take(
        &String::from_utf8_lossy(bytes),
        &["*".to_owned()],
        &Latest::default(),
    );
}

/// Lines of a program that a collector follows.
pub fn program_lines(bytes: &[u8]) {
    let states = BTreeMap::from([("state".to_owned(), vec!["idle".to_owned()])]);
    for line in bytes.split(|byte| *byte == b'\n') {
        program::take(line, &states, &Latest::default(), Instant::now());
    }
}

/// What a rule manager asks, a line each, a second apart.
pub fn rule_requests(bytes: &[u8]) {
    let mut endpoint = Endpoint::new("client1", "blocks", "1f", Followed::default())
        .expect("the names are tokens");
    for (second, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let now = Duration::from_secs(second as u64);
        endpoint.expire(now);
        match Asked::parse(line) {
            Ok(asked) => {
                let told = endpoint.answer(&asked, now);
                assert!(told.is_none_or(|told| !told.to_line().contains('\n')));
            }
            Err(reason) => assert!(!Told::refusal(&reason).to_line().contains('\n')),
        }
    }
}

/// A plane that follows anything, and writes down the same whenever it is asked to.
#[derive(Debug, Default)]
struct Followed(Option<RuleSet>);

impl Plane for Followed {
    fn follow(&mut self, rules: Option<&RuleSet>) -> Result<(), String> {
        self.0 = rules.cloned();
        Ok(())
    }

    fn used(&self) -> Option<RuleSet> {
        self.0.clone()
    }

    fn observe(&self) -> Vec<StreamIndicators> {
        Vec::new()
    }

    fn record(&mut self, _: Duration) -> Result<(), String> {
        Ok(())
    }

    fn take_recorded(&mut self) -> Recording {
        let request = RecordedRequest {
            asked: None,
            sent: Duration::ZERO,
            answered: None,
            kind: RecordedKind::Write,
            connection: u64::MAX,
            stream: u64::MAX,
            file: u64::MAX,
            offset_bytes: u64::MAX,
            size_bytes: u32::MAX,
        };
        Recording {
            requests: vec![request],
            ..Recording::default()
        }
    }
}

/// `/proc/self/mountstats`, of which no more is kept than it has lines.
pub fn mountstats(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mounts = nfs::parse(&text);
    assert!(mounts.len() <= text.lines().count());
    for mount in mounts {
        assert!(text.contains(mount.place));
    }
}
