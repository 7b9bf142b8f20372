//! A server of zeroes that answers each request so many microseconds after it came, however many it has: `slow LISTEN
//! MICROSECONDS`. `benchmarks/proxy_overhead.py` measures by it what the proxy leaves of a disk in use.

use std::io::{Error, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use ascar_nbd::{BlockSizes, Command, Export, Parsed, Request, ServerHandshake, SimpleReply, Step};

const SIZE_BYTES: u64 = 64 << 20;
const BUFFER_BYTES: usize = 64 << 10;

/// Takes requests in, and hands each on with the time at which it is due.
fn serve(mut client: &UnixStream, delay: Duration) -> Result<(), Error> {
    let export = Export {
        name: String::new(),
        description: String::new(),
        size_bytes: SIZE_BYTES,
        flags: 1,
        block_sizes: BlockSizes::default(),
    };
    let (mut handshake, mut out) = (ServerHandshake::without_structured_replies(), Vec::new());
    client.write_all(&ServerHandshake::greeting())?;
    let (mut buffer, mut start, mut end) = (vec![0; BUFFER_BYTES], 0, 0);
    loop {
        let exports = std::slice::from_ref(&export);
        let step = handshake.take(exports, &buffer[start..end], &mut out);
        client.write_all(&std::mem::take(&mut out))?;
        match step.map_err(Error::other)? {
            Step::Took { consumed_bytes } => start += consumed_bytes,
            Step::Done { consumed_bytes, .. } => {
                start += consumed_bytes;
                break;
            }
            Step::Needs { .. } => match client.read(&mut buffer[end..])? {
                0 => return Ok(()),
                count => end += count,
            },
        }
    }
    let (due, answered) = channel();
    thread::scope(|scope| {
        scope.spawn(|| answer(client, answered));
        loop {
            let found = Request::parse(&buffer[start..end]).map_err(Error::other)?;
            let Parsed::Found { value, .. } = found else {
                buffer.copy_within(start..end, 0);
                (start, end) = (0, end - start);
                match client.read(&mut buffer[end..])? {
                    0 => return Ok(()),
                    count => end += count,
                }
                continue;
            };
            start += Request::BYTES;
            if value.command != Command::Read || due.send((Instant::now() + delay, value)).is_err()
            {
                return Ok(());
            }
        }
    })
}

/// Answers each request when it is due: in their order, since all wait for as long.
fn answer(mut client: &UnixStream, due: Receiver<(Instant, Request)>) {
    // SAFETY: takes an integer, and changes nothing but this thread's timers.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_000_u64) };
    let mut reply = Vec::new();
    for (at, request) in due {
        thread::sleep(at.saturating_duration_since(Instant::now()));
        reply.clear();
        reply.extend_from_slice(&SimpleReply::new(request.cookie, None).encode());
        reply.resize(reply.len() + request.length_bytes as usize, 0);
        if client.write_all(&reply).is_err() {
            return;
        }
    }
}

fn main() -> Result<(), Error> {
    let mut words = std::env::args().skip(1);
    let (Some(path), Some(Ok(delay_us))) = (words.next(), words.next().map(|it| it.parse())) else {
        return Err(Error::other(
            "a socket and a time are needed: LISTEN MICROSECONDS",
        ));
    };
    let listener = UnixListener::bind(path)?;
    loop {
        let (client, _) = listener.accept()?;
        thread::spawn(move || serve(&client, Duration::from_micros(delay_us)));
    }
}
