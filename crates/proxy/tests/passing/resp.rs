//! Bytes on one side are the bytes on the other: commands and replies of random kinds and lengths, cut anywhere, with
//! messages among the replies, while the hold of the stream changes.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;

use ascar_proxy::protocol::Protocol;
use ascar_proxy::streams::OwnHold;
use ascar_random::Random;
use ascar_resp::Commands;

use crate::common::{Trial, write_cut};

const COMMANDS: u64 = 200;
const VALUE_BYTES_MAX: u64 = 150_000;

/// A value of a random length.
fn value(random: &mut Random) -> Vec<u8> {
    let most = [10, 600, VALUE_BYTES_MAX][random.below(3) as usize];
    let count = random.below(most) as usize;
    let mut bytes = format!("${count}\r\n").into_bytes();
    bytes.extend((0..count).map(|at| b"\r\n*1$+x"[at % 7]));
    bytes.extend_from_slice(b"\r\n");
    bytes
}

/// All that a client says.
fn commands(random: &mut Random) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..COMMANDS {
        match random.below(8) {
            0 => bytes.extend_from_slice(b"GET key\r\n"),
            1 => bytes.extend_from_slice(b"\r\n*0\r\nPING\n"),
            _ => {
                let values = random.below(4);
                write!(bytes, "*{}\r\n$4\r\nTAKE\r\n", values + 1).unwrap();
                (0..values).for_each(|_| bytes.extend(value(random)));
            }
        }
    }
    bytes
}

/// What a server says to one command, and by itself before that.
fn answer(random: &mut Random) -> Vec<u8> {
    let mut bytes = Vec::new();
    if random.below(4) == 0 {
        bytes.extend_from_slice(b">2\r\n+message\r\n");
        bytes.extend(value(random));
    }
    match random.below(6) {
        0 => bytes.extend_from_slice(b"+OK\r\n"),
        1 => bytes.extend_from_slice(b"-ERR no\r\n"),
        2 => bytes.extend_from_slice(b"*-1\r\n"),
        3 => {
            bytes.extend_from_slice(b"|1\r\n+ttl\r\n:5\r\n%2\r\n+a\r\n*2\r\n");
            (0..4).for_each(|_| bytes.extend(value(random)));
        }
        _ => bytes.extend(value(random)),
    }
    bytes
}

/// What a server heard, what it said, and the most commands that it had at once.
struct Served {
    heard: Vec<u8>,
    said: Vec<u8>,
    most: usize,
}

fn serve_once(mut client: &UnixStream, seed: u64) -> Served {
    let open = AtomicUsize::new(0);
    let (asked, answers) = channel::<()>();
    let (mut heard, mut most) = (Vec::new(), 0);
    let said = thread::scope(|scope| {
        let open = &open;
        let saying = scope.spawn(move || {
            let (mut random, mut said) = (Random::new(seed), Vec::new());
            while answers.recv().is_ok() {
                let bytes = answer(&mut random);
                open.fetch_sub(1, Ordering::SeqCst);
                write_cut(client, &bytes, &mut random);
                said.extend(bytes);
            }
            client.shutdown(Shutdown::Write).unwrap();
            said
        });
        let (mut reader, mut at, mut is_open) = (Commands::default(), 0, false);
        let mut piece = vec![0; 60_000];
        loop {
            let count = client.read(&mut piece).unwrap();
            if count == 0 {
                break;
            }
            heard.extend_from_slice(&piece[..count]);
            while let Some(part) = reader.next(&heard[at..]).unwrap() {
                let end = at + part.piece.head_bytes + part.piece.body_bytes;
                if end > heard.len() {
                    break;
                }
                reader.pass(&part);
                at = end;
                is_open |= part.begins.is_some();
                if part.values_left == 0 && std::mem::take(&mut is_open) {
                    most = most.max(open.fetch_add(1, Ordering::SeqCst) + 1);
                    asked.send(()).unwrap();
                }
            }
        }
        drop(asked);
        saying.join().unwrap()
    });
    Served { heard, said, most }
}

/// One connection; what passed it must be the same on both sides.
fn pass(name: &str, own: OwnHold, changes: bool, seed: u64) -> usize {
    let said = commands(&mut Random::new(seed));
    let trial = Trial {
        name: name.to_owned(),
        protocol: Protocol::Resp,
        own,
        changes: changes.then_some(seed + 2),
    };
    let serve = |client: &UnixStream| serve_once(client, seed + 1);
    let (served, heard, streams) = trial.pass(serve, |client| {
        let mut reading = client;
        let mut heard = Vec::new();
        thread::scope(|scope| {
            scope.spawn(|| {
                write_cut(client, &said, &mut Random::new(seed + 3));
                client.shutdown(Shutdown::Write).unwrap();
            });
            reading.read_to_end(&mut heard).unwrap();
        });
        heard
    });
    assert!(heard == served.said, "replies differ");
    assert!(said == served.heard, "commands differ");
    let gone = &streams.gone()[0];
    assert_eq!(gone.read_bytes, served.said.len() as u64);
    assert_eq!(gone.replies, COMMANDS);
    served.most
}

#[test]
fn everything_passes_with_and_without_a_hold() {
    for seed in 0..2 {
        pass(
            &format!("resp-free{seed}"),
            OwnHold::default(),
            false,
            seed * 10,
        );
        let own = OwnHold {
            window: Some(3),
            ..OwnHold::default()
        };
        let most = pass(&format!("resp-held{seed}"), own, false, seed * 10);
        assert!((1..=3).contains(&most), "{most}");
    }
}

#[test]
fn everything_passes_while_the_hold_changes() {
    for seed in 100..102 {
        pass(
            &format!("resp-changed{seed}"),
            OwnHold::default(),
            true,
            seed * 10,
        );
    }
}
