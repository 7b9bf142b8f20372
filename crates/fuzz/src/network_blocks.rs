//! The protocol of network block devices, as both sides read it.

use ascar_nbd::reply::ChunkError;
use ascar_nbd::{
    Agreed, BlockSizes, ClientHandshake, Export, Negotiated, OPTION_BYTES_MAX, PAYLOAD_BYTES_MAX,
    Parsed, ReplyHeader, Request, ServerHandshake, Step,
};

/// In the first byte: both sides want TLS.
const TLS: u8 = 1 << 7;

/// What a client or a server may say: the first byte says which, whether TLS is wanted, and the length of the pieces in
/// which it comes.
pub fn network_blocks(bytes: &[u8]) {
    let Some((kind, stream)) = bytes.split_first() else {
        return;
    };
    let piece = usize::from((kind & !TLS) >> 2).max(1);
    let tls = kind & TLS != 0;
    match kind % 4 {
        0 => clients_negotiation(stream, piece, tls),
        1 => servers_negotiation(stream, piece, tls),
        2 => requests(stream),
        _ => replies(stream),
    }
}

fn clients_negotiation(stream: &[u8], piece: usize, tls: bool) {
    let exports = [("", 1 << 20), ("second", u64::MAX)].map(|(name, size_bytes)| Export {
        name: name.to_owned(),
        description: "a text".to_owned(),
        size_bytes,
        flags: u16::MAX,
        block_sizes: BlockSizes::default(),
    });
    let mut server = ServerHandshake::new();
    if tls {
        server = server.requiring_tls();
    }
    let (mut out, mut is_inside) = (Vec::new(), false);
    go_through(stream, piece, |bytes| {
        let step = server.take(&exports, bytes, &mut out).map_err(drop)?;
        assert!(out.len() < 1 << 20, "answers are bounded");
        Ok(match step {
            // What follows comes inside it.
            Step::Done {
                consumed_bytes,
                outcome: Negotiated::StartTls,
            } => {
                assert!(tls && !std::mem::replace(&mut is_inside, true), "once");
                assert_eq!(consumed_bytes, bytes.len(), "nothing comes before TLS");
                Step::Took { consumed_bytes }
            }
            Step::Done { outcome, .. } if tls && !is_inside => {
                assert_eq!(
                    outcome,
                    Negotiated::Aborted,
                    "there is no export without TLS"
                );
                step
            }
            other => other,
        })
    });
}

fn servers_negotiation(stream: &[u8], piece: usize, tls: bool) {
    let mut client =
        ClientHandshake::new("name", piece.is_multiple_of(2)).expect("the name is short");
    if tls {
        client = client.with_tls();
    }
    let (mut out, mut is_inside) = (Vec::new(), false);
    go_through(stream, piece, |bytes| {
        let step = client.take(bytes, &mut out).map_err(drop)?;
        assert!(out.len() < 1 << 12, "what is asked is bounded");
        Ok(match step {
            Step::Done {
                consumed_bytes,
                outcome: Agreed::StartTls,
            } => {
                assert!(tls && !std::mem::replace(&mut is_inside, true), "once");
                assert_eq!(consumed_bytes, bytes.len(), "nothing comes before TLS");
                client.go_on(&mut out);
                Step::Took { consumed_bytes }
            }
            Step::Done { .. } if tls => {
                assert!(is_inside, "there is no export without TLS");
                step
            }
            other => other,
        })
    });
}

/// Hands over what has come so far, until the negotiation ends.
fn go_through<T>(
    mut stream: &[u8],
    piece: usize,
    mut take: impl FnMut(&[u8]) -> Result<Step<T>, ()>,
) {
    let mut shown = 0;
    loop {
        shown = (shown + piece).min(stream.len());
        match take(&stream[..shown]) {
            Ok(Step::Needs { more_bytes }) => {
                assert!(more_bytes > 0 && more_bytes <= OPTION_BYTES_MAX as usize);
                if shown == stream.len() {
                    return;
                }
            }
            Ok(Step::Took { consumed_bytes }) => {
                assert!(consumed_bytes > 0);
                stream = &stream[consumed_bytes..];
                shown = 0;
            }
            Ok(Step::Done { consumed_bytes, .. }) => {
                assert!(consumed_bytes <= shown);
                return;
            }
            Err(()) => return,
        }
    }
}

fn requests(mut stream: &[u8]) {
    while let Ok(Parsed::Found {
        value,
        consumed_bytes,
    }) = Request::parse(stream)
    {
        assert!(value.payload_bytes() <= PAYLOAD_BYTES_MAX);
        assert_eq!(value.encode(), stream[..consumed_bytes]);
        let _ = value.refusal(1 << 30, value.flags);
        let behind = consumed_bytes + value.payload_bytes() as usize;
        stream = stream.get(behind..).unwrap_or_default();
    }
}

fn replies(mut stream: &[u8]) {
    while let Ok(Parsed::Found {
        value,
        consumed_bytes,
    }) = ReplyHeader::parse(stream)
    {
        stream = &stream[consumed_bytes..];
        if let ReplyHeader::Chunk(chunk) = value {
            let (payload, rest) = stream.split_at((chunk.payload_bytes as usize).min(stream.len()));
            stream = rest;
            if chunk.is_error() {
                let _ = ChunkError::parse(payload);
            }
        }
    }
}
