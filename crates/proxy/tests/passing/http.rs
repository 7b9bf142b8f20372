//! Messages of HTTP on one side are the messages on the other: heads and bodies of random kinds and lengths, by length or
//! in chunks, cut anywhere, one behind the other, while the hold of the stream changes.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::common::{Trial, write_cut};
use ascar_proxy::protocol::Protocol;
use ascar_proxy::streams::OwnHold;
use ascar_random::Random;

const EXCHANGES: usize = 80;

/// A request and its response, as they are said.
#[derive(Debug)]
struct Exchange {
    request: Vec<u8>,
    response: Vec<u8>,
    /// The data of both bodies.
    data_bytes: u64,
    is_overload: bool,
}

/// A body of a random length, behind a head that tells it in one of two ways.
fn message(first: &str, random: &mut Random) -> (Vec<u8>, u64) {
    let most = [1, 700, 200_000][random.below(3) as usize];
    let data: Vec<u8> = (0..random.below(most))
        .map(|at| (at ^ most) as u8)
        .collect();
    let mut bytes = first.as_bytes().to_vec();
    if random.below(2) == 0 {
        bytes.extend_from_slice(format!("content-length: {}\r\n\r\n", data.len()).as_bytes());
        bytes.extend_from_slice(&data);
    } else {
        bytes.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
        let mut rest = &data[..];
        while !rest.is_empty() {
            let count = (1 + random.below(50_000) as usize).min(rest.len());
            let (chunk, behind) = rest.split_at(count);
            bytes.extend_from_slice(format!("{count:X};x=\"y\"\r\n").as_bytes());
            bytes.extend_from_slice(chunk);
            bytes.extend_from_slice(b"\r\n");
            rest = behind;
        }
        bytes.extend_from_slice(b"0\r\nX-Sum: 1\r\n\r\n");
    }
    (bytes, data.len() as u64)
}

fn exchange(number: usize, random: &mut Random) -> Exchange {
    let kind = random.below(4);
    let method = ["GET", "HEAD", "PUT", "POST"][kind as usize];
    let signed = "a".repeat(random.below(2_000) as usize);
    let head = format!(
        "{method} /bucket/{number}%20?x=a+b HTTP/1.1\r\nhOST: s3\r\nAuthorization:  AWS4 {signed} \r\n"
    );
    let (request, sent_bytes) = match kind {
        0 | 1 => ([head.as_bytes(), b"\r\n"].concat(), 0),
        _ => message(&head, random),
    };
    let early = ["", "HTTP/1.1 100 Continue\r\n\r\n"][random.below(2) as usize];
    let answer = random.below(4);
    let (response, got_bytes) = match answer {
        0 => (
            b"HTTP/1.1 204 No Content\r\nETag: \"a\"\r\n\r\n".to_vec(),
            0,
        ),
        _ if kind == 1 => (
            b"HTTP/1.1 200 OK\r\nContent-Length: 70000\r\n\r\n".to_vec(),
            0,
        ),
        1 => message("HTTP/1.1 503 Slow Down\r\n", random),
        _ => message("HTTP/1.1 200 \r\nx-amz-id-2: b\r\n", random),
    };
    Exchange {
        request,
        response: [early.as_bytes(), &response].concat(),
        data_bytes: sent_bytes + got_bytes,
        is_overload: answer == 1 && kind != 1,
    }
}

/// A server that knows what it will be asked; the most requests that it had at once.
fn answer(client: &UnixStream, all: &[Exchange], seed: u64) -> usize {
    let (open, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let (asked, answers) = std::sync::mpsc::channel::<usize>();
    thread::scope(|scope| {
        let open = &open;
        scope.spawn(move || {
            let mut random = Random::new(seed);
            for number in answers {
                if random.below(4) == 0 {
                    thread::sleep(std::time::Duration::from_micros(random.below(2_000)));
                }
                // Once its last byte is there, the next request may come.
                open.fetch_sub(1, Ordering::SeqCst);
                write_cut(client, &all[number].response, &mut random);
            }
        });
        let mut reading = client;
        for (number, exchange) in all.iter().enumerate() {
            let mut heard = vec![0; exchange.request.len()];
            reading.read_exact(&mut heard).unwrap();
            assert!(heard == exchange.request, "request {number} differs");
            let now = open.fetch_add(1, Ordering::SeqCst) + 1;
            most.fetch_max(now, Ordering::SeqCst);
            asked.send(number).unwrap();
        }
        drop(asked);
    });
    most.into_inner()
}

/// One connection; what passed it must be the same on both sides. The most requests that the server had at once.
fn pass(name: &str, own: OwnHold, changes: bool, seed: u64) -> usize {
    let mut random = Random::new(seed);
    let all: Vec<Exchange> = (0..EXCHANGES)
        .map(|number| exchange(number, &mut random))
        .collect();
    let trial = Trial {
        name: format!("http-{name}"),
        protocol: Protocol::Http,
        own,
        changes: changes.then_some(seed + 2),
    };
    let serve = |client: &UnixStream| answer(client, &all, seed + 1);
    let (most, (), streams) = trial.pass(serve, |client| {
        let mut reading = client;
        thread::scope(|scope| {
            scope.spawn(|| {
                for exchange in &all {
                    write_cut(client, &exchange.request, &mut random);
                }
            });
            for (number, exchange) in all.iter().enumerate() {
                let mut heard = vec![0; exchange.response.len()];
                reading.read_exact(&mut heard).unwrap();
                assert!(heard == exchange.response, "response {number} differs");
            }
        });
    });
    let data_bytes: u64 = all.iter().map(|it| it.data_bytes).sum();
    assert_eq!(streams.moved_bytes(), data_bytes);
    let overloads = all.iter().filter(|it| it.is_overload).count();
    let gone = &streams.gone()[0];
    assert_eq!(
        (gone.replies, gone.overloads),
        (EXCHANGES as u64, overloads as u64)
    );
    most
}

#[test]
fn everything_passes_without_a_hold() {
    for seed in 0..4 {
        pass(&format!("free{seed}"), OwnHold::default(), false, seed * 10);
    }
}

#[test]
fn everything_passes_within_a_window() {
    let own = OwnHold {
        window: Some(3),
        gap_us: 10,
        ..OwnHold::default()
    };
    for seed in 0..4 {
        let most = pass(&format!("window{seed}"), own, false, 1_000 + seed * 10);
        assert!(most <= 3, "{most} at once");
    }
}

#[test]
fn everything_passes_while_rules_change() {
    for seed in 0..4 {
        pass(
            &format!("rules{seed}"),
            OwnHold::default(),
            true,
            2_000 + seed * 10,
        );
    }
}
