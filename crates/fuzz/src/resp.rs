//! The protocol of Redis, as the proxy reads both sides.

use ascar_resp::{Commands, HEAD_BYTES_MAX, Kind, Malformed, Part, Piece, Replies, Reply};

/// What a client or a server may say: the first byte says which, and the length of the pieces in which it comes.
pub fn resp(bytes: &[u8]) {
    let Some((kind, stream)) = bytes.split_first() else {
        return;
    };
    let length = usize::from(kind >> 1).max(1);
    if kind & 1 == 0 {
        let (whole, pieces) = (commands(stream, usize::MAX), commands(stream, length));
        assert_eq!(whole, pieces, "pieces make the same commands");
    } else {
        let (whole, pieces) = (replies(stream, usize::MAX), replies(stream, length));
        assert_eq!(whole, pieces, "pieces make the same replies");
        let told: u64 = whole.0.iter().map(|reply| reply.bytes).sum();
        assert!(told <= stream.len() as u64);
    }
}

fn commands(stream: &[u8], length: usize) -> (Vec<Kind>, Option<Malformed>) {
    let (mut reader, mut kinds) = (Commands::default(), Vec::new());
    let lost = go_through(stream, length, |bytes| {
        let Some(part) = reader.next(bytes)? else {
            return Ok(None);
        };
        let Part { piece, begins, .. } = part;
        kinds.extend(begins.map(|command| command.kind));
        reader.pass(&part);
        Ok(Some(piece))
    });
    (kinds, lost)
}

fn replies(stream: &[u8], length: usize) -> (Vec<Reply>, Option<Malformed>) {
    let (mut reader, mut all) = (Replies::default(), Vec::new());
    let (mut at, mut is_amid) = (0, None);
    let lost = go_through(stream, length, |bytes| {
        // All of the piece before has passed.
        if let Some(end) = is_amid.take()
            && end <= stream.len()
        {
            all.extend(reader.take_ended());
        }
        let piece = reader.next(bytes)?;
        if let Some(piece) = piece {
            at += piece.head_bytes + piece.body_bytes;
            is_amid = Some(at);
        }
        Ok(piece)
    });
    if is_amid.is_some_and(|end| end <= stream.len()) {
        all.extend(reader.take_ended());
    }
    (all, lost)
}

/// Hands over what has come so far, to the end or the first mistake.
fn go_through(
    stream: &[u8],
    length: usize,
    mut next: impl FnMut(&[u8]) -> Result<Option<Piece>, Malformed>,
) -> Option<Malformed> {
    let (mut at, mut end) = (0, length.min(stream.len()));
    loop {
        match next(&stream[at..end]) {
            Ok(Some(piece)) => {
                assert!(piece.head_bytes > 0 && at + piece.head_bytes <= end);
                at += piece.head_bytes + piece.body_bytes;
                if at > stream.len() {
                    return None;
                }
                end = end.max(at);
            }
            Ok(None) => {
                assert!(end - at < HEAD_BYTES_MAX, "what is kept is bounded");
                if end == stream.len() {
                    return None;
                }
                end = end.saturating_add(length).min(stream.len());
            }
            Err(malformed) => return Some(malformed),
        }
    }
}
