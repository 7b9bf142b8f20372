//! What is read, what is refused, and that the parser of others understands what is passed on alike.

use proptest::prelude::*;

use crate::{Body, Chunks, FIELDS_MAX, HEAD_BYTES_MAX, Piece, Request, Response, Status};

fn request(text: &str) -> Request {
    Request::parse(text.as_bytes())
        .unwrap()
        .expect("a whole head")
}

fn refused(text: &str) -> (Status, String) {
    match Request::parse(text.as_bytes()) {
        Err(refusal) => (refusal.status, refusal.why),
        other => panic!("{text:?}: {other:?}"),
    }
}

/// What is passed on of a head.
fn passed(text: &str, cuts: &[std::ops::Range<usize>]) -> String {
    let mut left = text.as_bytes().to_vec();
    for cut in cuts.iter().rev() {
        left.drain(cut.clone());
    }
    String::from_utf8(left).unwrap()
}

#[test]
fn a_request_is_read() {
    let text = "PUT /bucket/a%20b?partNumber=1 HTTP/1.1\r\nhost: s3:9000\r\nContent-Length:  7 \r\n\
                Authorization: AWS4-HMAC-SHA256 Credential=a/b\r\n\r\nabcdefg";
    let read = request(text);
    assert_eq!(read.head_bytes, text.len() - 7);
    assert_eq!((read.body, read.reads), (Body::Bytes(7), false));
    assert_eq!(read.cuts, []);
    for end in 0..read.head_bytes {
        assert_eq!(Request::parse(&text.as_bytes()[..end]), Ok(None), "{end}");
    }
    let read = request("HEAD http://a/ HTTP/1.0\r\n\r\n");
    assert!(read.is_head && read.reads && read.body == Body::NONE);
    let read = request("POST / HTTP/1.1\r\nHost:\r\nTRANSFER-encoding: Chunked\r\n\r\n");
    assert_eq!(read.body, Body::Chunked);
    request("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n");
    request("GET /\u{fc} HTTP/1.1\r\nHost: [::1]:80\r\nX: \u{fc}\tb\r\n\r\n");
}

#[test]
fn what_could_be_read_in_two_ways_is_refused() {
    for (fields, word) in [
        (
            "Host: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked",
            "beside",
        ),
        (
            "Host: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 1",
            "beside",
        ),
        ("Host: a\r\nContent-Length: 1\r\nContent-Length: 1", "twice"),
        ("Host: a\r\nContent-Length: 1, 1", "no number"),
        ("Host: a\r\nContent-Length: +1", "no number"),
        ("Host: a\r\nContent-Length: -1", "no number"),
        ("Host: a\r\nContent-Length: 0x1", "no number"),
        ("Host: a\r\nContent-Length:", "no number"),
        (
            "Host: a\r\nContent-Length: 9223372036854775808",
            "no number",
        ),
        (
            "Host: a\r\nContent-Length: 99999999999999999999",
            "no number",
        ),
        (
            "Host: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
            "twice",
        ),
        ("Host: a\r\nContent-Length : 1", "none"),
        ("Host: a\r\n Content-Length: 1", "next line"),
        ("Host: a\r\nX: a\r\n\tb", "next line"),
        ("Host: a\nX: b", "carriage return"),
        ("Host: a\r\nX: a\rContent-Length: 1", "control"),
        ("Host: a\r\nX: a\0", "control"),
        ("Host: a\r\nno field", "none"),
        ("Host: a\r\n: b", "none"),
        ("Host: a\r\nHost: a", "twice"),
        ("Host: a b", "none"),
        ("Host: a,b", "none"),
        ("Host: u@a", "none"),
        ("X: a", "missing"),
        (
            "Host: a\r\nConnection: close, content-length",
            "not of a connection",
        ),
        (
            "Host: a\r\nConnection: Authorization",
            "not of a connection",
        ),
    ] {
        let (status, why) = refused(&format!("POST / HTTP/1.1\r\n{fields}\r\n\r\n"));
        assert_eq!(status, Status::BadRequest, "{fields}: {why}");
        assert!(
            why.contains(word) && !why.contains(['\n', '\r']),
            "{fields}: {why}"
        );
    }
    let (status, why) = refused("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n");
    assert!(
        status == Status::BadRequest && why.contains("HTTP/1.0"),
        "{why}"
    );
    for line in [
        "",
        "GET",
        "GET /",
        "GET  / HTTP/1.1",
        "GET / HTTP/1.1 ",
        " GET / HTTP/1.1",
        "GET / http/1.1",
        "G\u{e9}T / HTTP/1.1",
        "GET /a b HTTP/1.1",
        "GET / HTTP/1.1\r",
        "GET \t HTTP/1.1",
        "GET a HTTP/1.1",
        "GET * HTTP/1.1",
        "GET / HTTP/11",
        "GET /\x7f HTTP/1.1",
    ] {
        let (status, why) = refused(&format!("{line}\r\nHost: a\r\n\r\n"));
        assert_eq!(status, Status::BadRequest, "{line:?}: {why}");
    }
}

#[test]
fn what_is_no_message_is_told_by_its_beginning() {
    for (bytes, word) in [
        (&b"\x16\x03\x01"[..], "TLS"),
        (b"\0", "begins none"),
        (b" GET", "begins none"),
        (b"GET /\r\n", "a request line"),
        (b"GET / HTTP/3.0\r\n", "HTTP/3.0"),
    ] {
        let refusal = Request::parse(bytes).unwrap_err();
        assert!(refusal.why.contains(word), "{refusal}");
    }
    for bytes in [&b"NBDMAGIC"[..], b"S", b"HTTP/2", b"http/1.1 200 OK"] {
        let refusal = Response::parse(bytes, false).unwrap_err();
        assert!(refusal.why.contains("begins none"), "{refusal}");
    }
    assert_eq!(Response::parse(b"HTTP", false), Ok(None));
    assert_eq!(Response::parse(b"", false), Ok(None));
    assert_eq!(Request::parse(b""), Ok(None));
}

#[test]
fn what_is_not_passed_on_is_named() {
    let end = "HTTP/1.1\r\nHost: a\r\n";
    for (text, status, word) in [
        (
            format!("CONNECT a:443 {end}\r\n"),
            Status::NotImplemented,
            "CONNECT",
        ),
        (
            format!("GET / {end}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"),
            Status::NotImplemented,
            "Upgrade: \"websocket\"",
        ),
        (
            format!("PUT / {end}Transfer-Encoding: gzip, chunked\r\n\r\n"),
            Status::NotImplemented,
            "only chunked",
        ),
        (
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
            Status::VersionNotSupported,
            "HTTP/2.0",
        ),
        (
            format!("GET / {end}X: {}\r\n\r\n", "a".repeat(HEAD_BYTES_MAX)),
            Status::HeadTooLarge,
            "32768 bytes",
        ),
        (
            format!("GET / {end}{}\r\n", "X: a\r\n".repeat(FIELDS_MAX)),
            Status::HeadTooLarge,
            "128 fields",
        ),
    ] {
        let (found, why) = refused(&text);
        assert!(found == status && why.contains(word), "{why}");
    }
}

#[test]
fn what_is_of_one_hop_is_cut_and_nothing_else() {
    let whole = |fields: &str| format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}X: b\r\n\r\n");
    for (fields, left) in [
        ("", ""),
        ("Connection: close\r\n", "Connection: close\r\n"),
        (
            "Connection: Keep-Alive\r\nKeep-Alive: timeout=5\r\n",
            "Connection: Keep-Alive\r\nKeep-Alive: timeout=5\r\n",
        ),
        (
            "Connection: a, close ,b\r\nA: 1\r\nb: 2\r\nC: 3\r\n",
            "Connection: close\r\nC: 3\r\n",
        ),
        (
            "Connection: keep-alive, TE\r\nTE: trailers\r\n",
            "Connection: keep-alive\r\n",
        ),
        (
            "Connection: TE, keep-alive, close\r\nTE: gzip\r\n",
            "Connection: close\r\n",
        ),
        (
            "Connection: q\r\nConnection: close\r\nQ: 1\r\nq: 2\r\n",
            "Connection: close\r\n",
        ),
        ("Connection: ,,\r\nProxy-Connection: close\r\n", ""),
        ("Connection:\r\nTE: a\r\n", ""),
    ] {
        let text = whole(fields);
        let read = request(&text);
        assert_eq!(passed(&text, &read.cuts), whole(left), "{fields:?}");
        let again = request(&whole(left));
        assert_eq!(passed(&whole(left), &again.cuts), whole(left));
    }
    let text = "HTTP/1.1 200 OK\r\nUpgrade: h2,h2c\r\nConnection: Upgrade, Keep-Alive\r\nContent-Length: 0\r\n\r\n";
    let read = Response::parse(text.as_bytes(), false).unwrap().unwrap();
    let left = "HTTP/1.1 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(passed(text, &read.cuts), left);
}

#[test]
fn the_end_of_a_response_is_told() {
    let read = |text: &str, to_head| {
        let read = Response::parse(text.as_bytes(), to_head).unwrap().unwrap();
        assert_eq!(read.head_bytes, text.len());
        (read.status, read.body)
    };
    assert_eq!(
        read("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", false),
        (200, Body::Bytes(3))
    );
    assert_eq!(
        read("HTTP/1.1 200\r\nContent-Length: 3\r\n\r\n", true),
        (200, Body::NONE)
    );
    assert_eq!(
        read("HTTP/1.0 200 \r\n\r\n", false),
        (200, Body::UntilClose)
    );
    assert_eq!(
        read(
            "HTTP/1.1 503 Slow\u{fc}\r\nTransfer-Encoding: chunked\r\n\r\n",
            false
        ),
        (503, Body::Chunked)
    );
    assert_eq!(read("HTTP/1.1 204 No\r\n\r\n", false), (204, Body::NONE));
    assert_eq!(
        read("HTTP/1.1 304 No\r\nContent-Length: 9\r\n\r\n", false),
        (304, Body::NONE)
    );
    assert_eq!(
        read("HTTP/1.1 100 Continue\r\n\r\n", false),
        (100, Body::NONE)
    );
    for (text, word) in [
        (
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: a\r\n\r\n",
            "101",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
            "beside",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n",
            "twice",
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
            "only chunked",
        ),
        ("HTTP/1.1 20 OK\r\n\r\n", "status line"),
        ("HTTP/1.1 2000 OK\r\n\r\n", "status line"),
        ("HTTP/1.1 600 OK\r\n\r\n", "status line"),
        ("HTTP/2.0 200 OK\r\n\r\n", "status line"),
        ("ICY 200 OK\r\n\r\n", "status line"),
        ("HTTP/1.1 200 OK\nX: y\n\n", "carriage return"),
        ("\r\n", "status line"),
    ] {
        let refusal = Response::parse(text.as_bytes(), false).unwrap_err();
        assert_eq!(refusal.status, Status::BadGateway);
        assert!(refusal.why.contains(word), "{refusal}");
    }
}

#[test]
fn overloads_are_told_from_other_errors() {
    let told: Vec<u16> = (200..600)
        .filter(|status| {
            let text = format!("HTTP/1.1 {status} a\r\n\r\n");
            let read = Response::parse(text.as_bytes(), false).unwrap().unwrap();
            assert!(read.is_final());
            read.is_overload()
        })
        .collect();
    assert_eq!(told, [429, 503]);
}

/// The data of a chunked body, and what is behind it, where it comes in pieces of so many bytes.
fn unchunked(text: &[u8], step: usize) -> Result<Option<(Vec<u8>, usize)>, String> {
    let (mut chunks, mut data, mut at, mut end) = (Chunks::default(), Vec::new(), 0, 0);
    loop {
        match chunks.next(&text[at..end]).map_err(|refusal| refusal.why)? {
            None if end == text.len() => return Ok(None),
            None => end = (end + step).min(text.len()),
            Some(piece) if piece.is_last => return Ok(Some((data, at + piece.bytes))),
            Some(Piece {
                bytes, data_bytes, ..
            }) => {
                at += bytes;
                let until = at + data_bytes as usize;
                let Some(some) = text.get(at..until) else {
                    return Ok(None);
                };
                data.extend_from_slice(some);
                at = until;
                end = end.max(at);
            }
        }
    }
}

#[test]
fn chunks_are_read_in_any_pieces() {
    let text =
        b"4\r\nWiki\r\n0000005;x=\"y\"\r\npedia\r\nA\r\n0123456789\r\n0\r\nETag: a\r\n\r\nGET /";
    for step in 1..text.len() {
        let (data, end) = unchunked(text, step).unwrap().unwrap();
        assert_eq!(data, b"Wikipedia0123456789");
        assert_eq!(&text[end..], b"GET /");
    }
    assert_eq!(unchunked(b"0\r\n\r\n", 1), Ok(Some((vec![], 5))));
    assert_eq!(unchunked(b"0\r\n\r", 1), Ok(None));
}

#[test]
fn bad_chunks_are_refused() {
    for (text, word) in [
        ("\r\n", "no size"),
        ("g\r\n", "no size"),
        ("-1\r\n", "no size"),
        ("+1\r\n", "no size"),
        ("0x1\r\n", "no size"),
        ("1 \r\na\r\n", "no size"),
        (" 1\r\na\r\n", "no size"),
        ("1000000000000000\r\n", "no size"),
        ("fffffffffffffffff", "no size"),
        ("1\na\n", "carriage return"),
        ("1;a\nb\r\n", "carriage return"),
        ("1;\x01\r\na", "no size"),
        ("1\r\nab", "longer than it says"),
        ("1\r\na\n0\r\n\r\n", "longer than it says"),
        ("0\r\nContent-Length: 1\r\n\r\n", "may not stand"),
        ("0\r\nno field\r\n\r\n", "none"),
        ("0\r\na: b\n\r\n", "carriage return"),
    ] {
        for step in [1, text.len()] {
            let said = unchunked(text.as_bytes(), step).unwrap_err();
            assert!(said.contains(word), "{text:?}: {said}");
        }
    }
    let long = format!("1;{}", "a".repeat(1_000));
    assert!(
        unchunked(long.as_bytes(), 1)
            .unwrap_err()
            .contains("no size")
    );
    let long = format!("0\r\nA: {}", "a".repeat(10_000));
    assert!(
        unchunked(long.as_bytes(), 100)
            .unwrap_err()
            .contains("8192")
    );
}

#[test]
fn a_refusal_is_a_whole_response() {
    let (status, why) = ("501 Not Implemented", "CONNECT: is not passed on");
    let refusal = Request::parse(b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n").unwrap_err();
    let text = refusal.response(false);
    let read = Response::parse(&text, false).unwrap().unwrap();
    assert_eq!(
        read.body,
        Body::Bytes((text.len() - read.head_bytes) as u64)
    );
    let text = String::from_utf8(text).unwrap();
    assert!(
        text.contains(status) && text.ends_with(&format!("{why}\n")),
        "{text}"
    );
    assert_eq!(refusal.response(true).len(), read.head_bytes);
}

/// Bytes like those of a head, with what confuses readers strewn in.
fn headlike() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        Just("GET / HTTP/1.1\r\n"),
        Just("POST /a?b=c HTTP/1.0\r\n"),
        Just("Host: a\r\n"),
        Just("Content-Length: 5\r\n"),
        Just("Transfer-Encoding: chunked\r\n"),
        Just("Connection: close, x\r\n"),
        Just("X: y\r\n"),
        Just("\r\n"),
        Just("\n"),
        Just("\r"),
        Just(" "),
        Just(":"),
        Just("\0"),
        Just("\u{fc}"),
        Just("a"),
    ];
    let words = proptest::collection::vec(word, 0..12);
    words.prop_map(|words| {
        let mut text = words.concat().into_bytes();
        text.extend_from_slice(b"\r\n\r\n");
        text
    })
}

proptest! {
    /// Whatever is passed on is understood alike by the parser that hyper and many others have.
    #[test]
    fn others_read_the_same(text in headlike()) {
        let Ok(Some(read)) = Request::parse(&text) else {
            return Ok(());
        };
        let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
        let mut other = httparse::Request::new(&mut fields);
        prop_assert_eq!(other.parse(&text), Ok(httparse::Status::Complete(read.head_bytes)));
        let of = |name: &str| -> Vec<&[u8]> {
            let named = other.headers.iter().filter(|it| it.name.eq_ignore_ascii_case(name));
            named.map(|it| it.value).collect()
        };
        let (lengths, codings) = (of("content-length"), of("transfer-encoding"));
        let body = match (&lengths[..], &codings[..]) {
            ([], []) => Body::NONE,
            ([b"5"], []) => Body::Bytes(5),
            ([], [b"chunked"]) => Body::Chunked,
            other => panic!("{other:?}"),
        };
        prop_assert_eq!(read.body, body);
    }

    /// Any bytes give a value or a refusal of one line.
    #[test]
    fn nothing_panics(text in proptest::collection::vec(any::<u8>(), 0..300)) {
        for refusal in [
            Request::parse(&text).err(),
            Response::parse(&text, false).err(),
            Chunks::default().next(&text).err(),
        ].into_iter().flatten() {
            prop_assert!(!refusal.why.contains(['\n', '\r']));
        }
    }
}
