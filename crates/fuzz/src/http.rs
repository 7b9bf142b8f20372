//! HTTP, as a proxy reads both sides.

use ascar_proxy::http::Exchanges;
use ascar_proxy::incoming::HEAD_BYTES_MAX;
use ascar_proxy::protocol::{Dialogue, Next, Piece, Sent};
use ascar_proxy::recorder::Place;

/// In the first byte: what is answered are requests for heads alone.
const TO_HEAD: u8 = 1 << 1;

/// What a client or a server may say: the first byte says which, what was asked, and the length of the pieces in which it
/// comes.
pub fn http(bytes: &[u8]) {
    let Some((kind, stream)) = bytes.split_first() else {
        return;
    };
    let step = usize::from(kind >> 2).max(1);
    let (mut pieces, mut whole) = (Exchanges::default(), Exchanges::default());
    if kind % 2 == 0 {
        assert_eq!(
            go_through(stream, step, |bytes| heard(&mut pieces, bytes)),
            go_through(stream, stream.len().max(1), |bytes| heard(
                &mut whole, bytes
            )),
            "pieces make the same requests"
        );
        return;
    }
    let method = if kind & TO_HEAD == 0 { "GET" } else { "HEAD" };
    let asked = format!("{method} / HTTP/1.1\r\nHost: a\r\n\r\n").repeat(4);
    for exchanges in [&mut pieces, &mut whole] {
        go_through(asked.as_bytes(), asked.len(), |bytes| {
            heard(exchanges, bytes)
        });
        assert_eq!(exchanges.held(), (4, 0));
    }
    let in_pieces = go_through(stream, step, |bytes| told(&mut pieces, bytes));
    let at_once = go_through(stream, stream.len().max(1), |bytes| told(&mut whole, bytes));
    // What ends with the connection passes as it comes.
    let lengths = |passed: &[Passed]| passed.iter().map(Passed::length).sum::<usize>();
    assert_eq!(lengths(&in_pieces), lengths(&at_once));
    assert_eq!(pieces.count(), whole.count());
}

/// What was passed on, or left out.
#[derive(Debug, PartialEq, Eq)]
enum Passed {
    Piece(Piece),
    Cut(usize),
}

impl Passed {
    fn length(&self) -> usize {
        match self {
            Self::Piece(piece) => piece.head_bytes.saturating_add(piece.body_bytes),
            Self::Cut(count) => *count,
        }
    }
}

/// Hands over what has come so far, up to what is wrong or not whole.
fn go_through(
    stream: &[u8],
    step: usize,
    mut next: impl FnMut(&[u8]) -> Result<Next<Piece>, ()>,
) -> Vec<Passed> {
    let (mut stream, mut shown, mut passed) = (stream.to_vec(), 0, Vec::new());
    loop {
        let bytes = &stream[..shown];
        match next(bytes) {
            Ok(Next::Found(piece)) if !bytes.is_empty() => {
                assert!(piece.head_bytes > 0 && piece.head_bytes <= shown);
                let count = piece.head_bytes.saturating_add(piece.body_bytes);
                stream.drain(..count.min(stream.len()));
                shown = shown.saturating_sub(count);
                passed.push(Passed::Piece(piece));
            }
            Ok(Next::Cut(range)) => {
                assert!(!range.is_empty() && range.end <= shown);
                passed.push(Passed::Cut(range.len()));
                shown -= range.len();
                stream.drain(range);
            }
            Ok(Next::Passes(why)) => panic!("{why}"),
            Err(()) => return passed,
            Ok(Next::Found(_) | Next::Needs) => {
                assert!(shown < HEAD_BYTES_MAX, "all of a head is at hand");
                if shown == stream.len() {
                    return passed;
                }
                shown = (shown + step).min(stream.len());
            }
        }
    }
}

fn heard(exchanges: &mut Exchanges, bytes: &[u8]) -> Result<Next<Piece>, ()> {
    if bytes.is_empty() {
        return Ok(Next::Needs);
    }
    Ok(match exchanges.next_request(bytes).map_err(drop)? {
        Next::Found(part) => {
            let sent = part.ask.map(|ask| Sent {
                at_us: 1,
                bytes: ask.bytes,
                is_sequential: false,
                is_held: true,
                record: Place::default(),
            });
            exchanges.on_send(part.request, sent).map_err(drop)?;
            Next::Found(part.piece)
        }
        Next::Cut(range) => Next::Cut(range),
        Next::Needs => Next::Needs,
        Next::Passes(why) => Next::Passes(why),
    })
}

fn told(exchanges: &mut Exchanges, bytes: &[u8]) -> Result<Next<Piece>, ()> {
    if bytes.is_empty() {
        return Ok(Next::Needs);
    }
    let next = exchanges.next_reply(bytes).map_err(drop)?;
    if matches!(next, Next::Found(_)) {
        let _ = exchanges.take_answer();
    }
    Ok(next)
}
