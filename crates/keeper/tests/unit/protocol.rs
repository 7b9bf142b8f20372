use ascar_keeper::fault::Kind;
use ascar_keeper::protocol::{LINE_BYTES_MAX, Lines, Operation, Replies, Request, Scalar};
use proptest::prelude::*;

fn fault_of(line: &[u8]) -> (Option<u64>, String) {
    let (id, fault) = Request::parse(line).unwrap_err();
    assert_eq!(fault.kind, Kind::Input);
    (id, fault.message)
}

#[test]
fn a_request_is_read_with_its_limit() {
    let line =
        br#"{"id": 7, "op": "knob_write", "knob": "vm.swappiness", "value": 10, "timeout_s": 1.5}"#;
    let request = Request::parse(line).unwrap();
    assert_eq!(request.id, 7);
    assert_eq!(request.timeout.as_millis(), 1500);
    let Operation::KnobWrite { knob, value } = request.operation else {
        panic!()
    };
    assert_eq!(
        (knob.as_str(), value),
        ("vm.swappiness", Scalar::Integer(10))
    );
}

#[test]
fn unknown_operations_and_fields_are_named_with_the_allowed_ones() {
    let (id, message) = fault_of(br#"{"id": 1, "op": "run", "argv": ["reboot"]}"#);
    assert_eq!(id, Some(1));
    assert!(
        message.contains("`run`") && message.contains("`knob_write`"),
        "{message}"
    );
    let (id, message) =
        fault_of(br#"{"id": 2, "op": "knob_read", "knob": "a", "path": "/etc/passwd"}"#);
    assert_eq!(id, Some(2));
    assert!(
        message.contains("`path`") && message.contains("`knob`"),
        "{message}"
    );
    for line in [
        br#"{"id": 3, "op": "status", "extra": 1}"#.as_slice(),
        br#"{"id": 3, "op": "shutdown", "extra": 1}"#,
        br#"{"id": 3, "op": "format", "fs": "ext4", "argv": []}"#,
        br#"{"id": 3, "op": "mount", "fs": "ext4", "mountpoint": "/"}"#,
        br#"{"id": 3, "op": "knob_write", "knob": "a"}"#,
        br#"{"id": 3, "op": "knob_write", "knob": "a", "value": null}"#,
        br#"{"id": 3, "op": "knob_write", "knob": "a", "value": 1.5}"#,
        br#"{"id": 3, "op": "knob_write", "knob": "a", "value": 18446744073709551616}"#,
        br#"{"id": 3, "op": "drop_caches", "level": 256}"#,
        br#"{"id": 3, "op": "image_create", "path": "/a", "size_bytes": -1}"#,
        br#"{"id": 3}"#,
        br#"{"id": 3, "op": 4}"#,
    ] {
        assert_eq!(
            fault_of(line).0,
            Some(3),
            "{}",
            String::from_utf8_lossy(line)
        );
    }
}

#[test]
fn what_has_no_id_is_answered_without_one() {
    for line in [
        b"".as_slice(),
        b"null",
        b"[]",
        b"{}",
        b"\"hello\"",
        b"{\"op\": \"status\"}",
        b"{\"id\": -1, \"op\": \"status\"}",
        b"{\"id\": \"1\", \"op\": \"status\"}",
        b"\xff\xfe",
        b"{\"id\": 1",
    ] {
        assert_eq!(fault_of(line).0, None, "{line:?}");
    }
}

#[test]
fn a_limit_is_positive_and_bounded() {
    for limit in ["0", "-1", "3600.1", "1e400", "\"1\"", "null", "[]"] {
        let line = format!(r#"{{"id": 1, "op": "status", "timeout_s": {limit}}}"#);
        assert!(Request::parse(line.as_bytes()).is_err(), "{limit}");
    }
}

#[test]
fn deep_json_is_refused_not_followed() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let deep = open.repeat(10_000) + "1" + &close.repeat(10_000);
        fault_of(format!(r#"{{"id": 1, "op": "status", "x": {deep}}}"#).as_bytes());
        fault_of(deep.as_bytes());
    }
}

#[test]
fn a_line_of_the_longest_length_passes_and_a_longer_one_does_not() {
    let mut lines = Lines::default();
    let mut seen = Vec::new();
    let mut stream = vec![b'a'; LINE_BYTES_MAX];
    stream.push(b'\n');
    stream.extend(vec![b'b'; LINE_BYTES_MAX + 1]);
    stream.extend(b"\nnext\n");
    for piece in stream.chunks(1000) {
        lines.feed(piece, |line| {
            seen.push(line.map(<[u8]>::len).map_err(|fault| fault.kind))
        });
    }
    assert_eq!(seen, [Ok(LINE_BYTES_MAX), Err(Kind::Input), Ok(4)]);
}

#[test]
fn a_reply_is_one_line() {
    let mut output = Vec::new();
    let replies = Replies::new(&mut output);
    replies.send(Some(1), &Ok(serde_json::json!({"text": "a\nb"})));
    replies.send(
        None,
        &Err(ascar_keeper::fault::Fault::refused("no\nway").with_stderr("x\ny")),
    );
    let text = String::from_utf8(output).unwrap();
    assert_eq!(text.lines().count(), 2);
    let error: serde_json::Value = serde_json::from_str(text.lines().nth(1).unwrap()).unwrap();
    assert_eq!(error["error"]["kind"], "refused");
    assert_eq!(error["error"]["stderr"], "x\ny");
}

proptest! {
    #[test]
    fn lines_do_not_depend_on_how_the_stream_is_cut(
        texts in prop::collection::vec("[a-z ]{0,30}", 0..20),
        cuts in prop::collection::vec(1usize..40, 1..20),
    ) {
        let stream = texts.join("\n") + "\n";
        let mut lines = Lines::default();
        let mut seen = Vec::new();
        let (mut rest, mut turn) = (stream.as_bytes(), 0);
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(cuts[turn % cuts.len()].min(rest.len()));
            lines.feed(piece, |line| seen.push(String::from_utf8(line.unwrap().to_vec()).unwrap()));
            (rest, turn) = (after, turn + 1);
        }
        let expected: Vec<_> = texts.into_iter().filter(|text| !text.trim().is_empty()).collect();
        prop_assert_eq!(seen, expected);
    }

    #[test]
    fn no_bytes_make_it_panic(line in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Request::parse(&line);
    }

    #[test]
    fn no_text_around_an_operation_makes_it_panic(op in "\\PC{0,20}", key in "\\PC{0,20}", value in "\\PC{0,20}") {
        let line = serde_json::json!({"id": 1, "op": op, key: value}).to_string();
        let _ = Request::parse(line.as_bytes());
    }
}
