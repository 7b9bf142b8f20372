//! Bytes on one side are the bytes on the other: requests and replies of random kinds and lengths, cut anywhere,
//! answered in any order, while the hold of the stream changes.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use ascar_nbd::numbers::{chunk_flag, chunk_kind};
use ascar_nbd::{
    Agreed, BlockSizes, Chunk, ClientHandshake, Command, Export, Parsed, Request, ServerHandshake,
    SimpleReply, Step,
};
use ascar_proxy::protocol::Protocol;
use ascar_proxy::stream::LOOK;
use ascar_proxy::streams::OwnHold;
use ascar_proxy::turns::TurnLength;
use ascar_random::Random;

use crate::common::{Trial, write_cut};

const REQUESTS: u64 = 200;
const LENGTH_BYTES_MAX: u64 = 150_000;

/// All that a client says after the negotiation, and its requests.
fn requests(random: &mut Random) -> (Vec<u8>, Vec<Request>) {
    let (mut bytes, mut all) = (Vec::new(), Vec::new());
    for cookie in 0..REQUESTS {
        let kinds = [Command::Read, Command::Write, Command::Flush, Command::Trim];
        let command = kinds[random.below(4) as usize];
        let small = random.below(2) == 0;
        let most = if small { 600 } else { LENGTH_BYTES_MAX };
        let length_bytes = match command {
            Command::Flush => 0,
            _ => 1 + random.below(most) as u32,
        };
        let request = Request {
            flags: 0,
            command,
            cookie: cookie.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            offset_bytes: random.below(1 << 40),
            length_bytes,
        };
        bytes.extend_from_slice(&request.encode());
        let payload = request.payload_bytes() as usize;
        bytes.extend((0..payload).map(|at| (at as u64 ^ cookie) as u8));
        all.push(request);
    }
    let end = Request {
        flags: 0,
        command: Command::Disconnect,
        cookie: u64::MAX,
        offset_bytes: 0,
        length_bytes: 0,
    };
    bytes.extend_from_slice(&end.encode());
    (bytes, all)
}

/// Whether a server refuses it.
fn fails(request: &Request) -> bool {
    request.offset_bytes.is_multiple_of(10)
}

/// The parts of an answer; parts of several answers may be mixed.
fn parts(request: &Request, structured: bool, random: &mut Random) -> VecDeque<Vec<u8>> {
    let data = |count: u32| (0..count).map(|at| (at ^ request.length_bytes) as u8);
    if fails(request) {
        let refusal = Some(ascar_nbd::ErrorCode::InputOutput);
        if request.command == Command::Read && structured {
            let payload = [0, 0, 0, 5, 0, 0];
            let header = Chunk {
                flags: chunk_flag::DONE,
                kind: chunk_kind::ERROR,
                cookie: request.cookie,
                payload_bytes: payload.len() as u32,
            };
            return [[&header.encode()[..], &payload].concat()].into();
        }
        return [SimpleReply::new(request.cookie, refusal).encode().to_vec()].into();
    }
    if request.command != Command::Read || !structured {
        let mut bytes = SimpleReply::new(request.cookie, None).encode().to_vec();
        bytes.extend(data(request.reply_bytes()));
        return [bytes].into();
    }
    let (mut parts, mut left) = (VecDeque::new(), request.length_bytes);
    while left > 0 {
        let count = left.min(1 + random.below(60_000) as u32);
        left -= count;
        let is_last = left == 0 && random.below(2) == 0;
        let header = Chunk {
            flags: if is_last { chunk_flag::DONE } else { 0 },
            kind: chunk_kind::OFFSET_DATA,
            cookie: request.cookie,
            payload_bytes: count + 8,
        };
        let mut bytes = header.encode().to_vec();
        bytes.extend_from_slice(&request.offset_bytes.to_be_bytes());
        bytes.extend(data(count));
        parts.push_back(bytes);
        if left == 0 && !is_last {
            parts.push_back(Chunk::none(request.cookie).to_vec());
        }
    }
    parts
}

/// Negotiates as a server; what the client has said behind that.
fn welcome(mut client: &UnixStream, structured: bool) -> Vec<u8> {
    let export = Export {
        name: String::new(),
        description: String::new(),
        size_bytes: 1 << 50,
        flags: 0,
        block_sizes: BlockSizes::default(),
    };
    let mut handshake = if structured {
        ServerHandshake::new()
    } else {
        ServerHandshake::without_structured_replies()
    };
    client.write_all(&ServerHandshake::greeting()).unwrap();
    let (mut come, mut out) = (Vec::new(), Vec::new());
    loop {
        let exports = std::slice::from_ref(&export);
        let step = handshake.take(exports, &come, &mut out).unwrap();
        client.write_all(&std::mem::take(&mut out)).unwrap();
        match step {
            Step::Needs { .. } => read_some(client, &mut come),
            Step::Took { consumed_bytes } => drop(come.drain(..consumed_bytes)),
            Step::Done { consumed_bytes, .. } => return come.split_off(consumed_bytes),
        }
    }
}

/// Negotiates as a client.
fn negotiate(mut server: &UnixStream) -> Agreed {
    let mut handshake = ClientHandshake::new("", true).unwrap();
    let (mut come, mut out) = (Vec::new(), Vec::new());
    loop {
        let step = handshake.take(&come, &mut out).unwrap();
        server.write_all(&std::mem::take(&mut out)).unwrap();
        match step {
            Step::Needs { .. } => read_some(server, &mut come),
            Step::Took { consumed_bytes } => drop(come.drain(..consumed_bytes)),
            Step::Done {
                consumed_bytes,
                outcome,
            } => {
                assert_eq!(come.len(), consumed_bytes);
                return outcome;
            }
        }
    }
}

fn read_some(mut from: &UnixStream, into: &mut Vec<u8>) {
    let mut piece = [0; 4096];
    let count = from.read(&mut piece).unwrap();
    assert!(count > 0, "it ended");
    into.extend_from_slice(&piece[..count]);
}

/// What a server heard, what it said, and the most requests that it had at once.
#[derive(Debug, Default)]
struct Served {
    heard: Vec<u8>,
    said: Vec<u8>,
    most: usize,
}

fn serve_once(client: &UnixStream, structured: bool, seed: u64) -> Served {
    let mut random = Random::new(seed);
    let open = AtomicUsize::new(0);
    let (asked, answers) = std::sync::mpsc::channel::<Request>();
    let mut served = Served {
        heard: welcome(client, structured),
        ..Served::default()
    };
    thread::scope(|scope| {
        let open = &open;
        let saying = scope.spawn(move || {
            let (mut waiting, mut said) = (Vec::<VecDeque<Vec<u8>>>::new(), Vec::new());
            loop {
                let next = if waiting.is_empty() {
                    answers.recv().ok()
                } else {
                    answers.try_recv().ok()
                };
                match next {
                    Some(request) => waiting.push(parts(&request, structured, &mut random)),
                    None if waiting.is_empty() => return said,
                    None => {}
                }
                let chosen = random.below(waiting.len() as u64) as usize;
                let part = waiting[chosen].pop_front().unwrap();
                if waiting[chosen].is_empty() {
                    waiting.swap_remove(chosen);
                    open.fetch_sub(1, Ordering::SeqCst);
                }
                write_cut(client, &part, &mut random);
                said.extend_from_slice(&part);
            }
        });
        let mut at = 0;
        loop {
            let parsed = Request::parse(&served.heard[at..]).unwrap();
            if let Parsed::Found { value, .. } = parsed {
                let whole = Request::BYTES + value.payload_bytes() as usize;
                if served.heard.len() - at >= whole {
                    at += whole;
                    if value.command == Command::Disconnect {
                        break;
                    }
                    let now = open.fetch_add(1, Ordering::SeqCst) + 1;
                    served.most = served.most.max(now);
                    asked.send(value).unwrap();
                    continue;
                }
            }
            read_some(client, &mut served.heard);
        }
        drop(asked);
        served.said = saying.join().unwrap();
    });
    served
}

/// One connection; what passed it must be the same on both sides.
fn pass(name: &str, structured: bool, own: OwnHold, changes: bool, seed: u64) -> Served {
    let mut random = Random::new(seed);
    let (said, all) = requests(&mut random);
    let trial = Trial {
        name: name.to_owned(),
        protocol: Protocol::Nbd,
        own,
        changes: changes.then_some(seed + 2),
    };
    let serve = |client: &UnixStream| serve_once(client, structured, seed + 1);
    let (served, heard, streams) = trial.pass(serve, |client| {
        let mut reading = client;
        assert!(matches!(
            negotiate(client),
            Agreed::Transmission { structured_replies, .. } if structured_replies == structured
        ));
        let mut heard = Vec::new();
        thread::scope(|scope| {
            scope.spawn(|| write_cut(client, &said, &mut random));
            reading.read_to_end(&mut heard).unwrap();
        });
        heard
    });
    assert!(heard == served.said, "replies differ");
    assert!(said == served.heard, "requests differ");
    let moved = |request: &Request| match request.command {
        Command::Read | Command::Write if !fails(request) => u64::from(request.length_bytes),
        _ => 0,
    };
    assert_eq!(streams.moved_bytes(), all.iter().map(moved).sum::<u64>());
    served
}

#[test]
fn everything_passes_without_a_hold() {
    for seed in 0..6 {
        pass(
            &format!("free{seed}"),
            seed % 2 == 0,
            OwnHold::default(),
            false,
            seed * 10,
        );
    }
}

#[test]
fn everything_passes_within_a_window() {
    let own = OwnHold {
        window: Some(5),
        gap_us: 0,
        ..OwnHold::default()
    };
    for seed in 0..6 {
        let served = pass(
            &format!("held{seed}"),
            seed % 2 == 0,
            own,
            false,
            seed * 10 + 1,
        );
        assert!(served.most <= 5, "{} at once", served.most);
    }
}

#[test]
fn everything_passes_in_turns() {
    let own = OwnHold {
        active_streams: Some(1),
        turn: TurnLength {
            turn_ms: 2,
            idle_ms: 1,
        },
        ..OwnHold::default()
    };
    for seed in 0..6 {
        let name = format!("turned{seed}");
        pass(&name, seed % 2 == 0, own, seed % 3 == 0, seed * 10 + 3);
    }
}

#[test]
fn everything_passes_while_the_hold_changes() {
    for seed in 0..6 {
        pass(
            &format!("changed{seed}"),
            seed % 2 == 0,
            OwnHold::default(),
            true,
            seed * 10 + 2,
        );
    }
}

/// A server that answers reads at once; all say the same.
fn answer_reads(server: &UnixStream, mut heard: Vec<u8>, answer: &[u8]) {
    let mut writing = server;
    loop {
        let count = heard.len() / Request::BYTES;
        for header in heard[..count * Request::BYTES].chunks_exact(Request::BYTES) {
            let Parsed::Found { value, .. } = Request::parse(header).unwrap() else {
                panic!("a whole header");
            };
            let mut said = SimpleReply::new(value.cookie, None).encode().to_vec();
            said.extend_from_slice(answer);
            if writing.write_all(&said).is_err() {
                return;
            }
        }
        heard.drain(..count * Request::BYTES);
        let mut piece = [0; 4096];
        match writing.read(&mut piece) {
            Ok(count) if count > 0 => heard.extend_from_slice(&piece[..count]),
            _ => return,
        }
    }
}

/// What a client does with a server that answers reads at once.
fn with_reads(name: &str, length_bytes: u32, work: impl FnOnce(&UnixStream)) {
    let trial = Trial {
        name: name.to_owned(),
        protocol: Protocol::Nbd,
        own: OwnHold::default(),
        changes: None,
    };
    let serve = |client: &UnixStream| {
        let heard = welcome(client, false);
        answer_reads(client, heard, &vec![1; length_bytes as usize]);
    };
    trial.pass(serve, |client| {
        negotiate(client);
        work(client);
        client.shutdown(Shutdown::Both).unwrap();
    });
}

fn read_request(cookie: u64, length_bytes: u32) -> [u8; Request::BYTES] {
    let request = Request {
        flags: 0,
        command: Command::Read,
        cookie,
        offset_bytes: 0,
        length_bytes,
    };
    request.encode()
}

#[test]
fn a_cookie_may_be_used_again_with_the_last_byte_of_its_answer() {
    let length_bytes = 256 << 10;
    with_reads("cookie", length_bytes, |mut client| {
        let header_bytes = SimpleReply::new(7, None).encode().len();
        let mut answer = vec![0; header_bytes + length_bytes as usize];
        for at in 0..5_000 {
            client.write_all(&read_request(7, length_bytes)).unwrap();
            if let Err(error) = client.read_exact(&mut answer) {
                panic!("read {at}: {error}");
            }
        }
    });
}

#[test]
fn more_requests_than_are_kept_in_mind_wait_for_answers_alone() {
    let length_bytes = 512;
    with_reads("many", length_bytes, |client| {
        let begun = Instant::now();
        let count = 6_000;
        let said = (0..count).flat_map(|cookie| read_request(cookie, length_bytes));
        let (mut client, said) = (client, said.collect::<Vec<_>>());
        thread::scope(|scope| {
            scope.spawn(move || {
                client.write_all(&said).unwrap();
            });
            let header_bytes = SimpleReply::new(7, None).encode().len();
            let mut answers = vec![0; (header_bytes + length_bytes as usize) * count as usize];
            client.read_exact(&mut answers).unwrap();
        });
        let took = begun.elapsed();
        assert!(took < LOOK, "{took:?}");
    });
}
