//! Negotiations against bytes written by hand after the protocol's text, and both sides against each other.

use ascar_nbd::greeting::Greeting;
use ascar_nbd::numbers::{info_kind, option_kind, option_reply, transmission_flag};
use ascar_nbd::option::{InfoRequest, OptionReplyHeader, parse_listed, write_option, write_reply};
use ascar_nbd::{
    Agreed, BlockSizes, ClientHandshake, Export, Negotiated, OPTIONS_MAX, Parsed, ServerHandshake,
    Step,
};

/// The protocol's flags, of a client that knows both.
const CLIENT_FLAGS: [u8; 4] = [0, 0, 0, 3];

fn exports() -> Vec<Export> {
    [("alpha", 4096_u64), ("beta", 1 << 40)]
        .map(|(name, size_bytes)| Export {
            name: name.to_owned(),
            description: format!("the export {name}"),
            size_bytes,
            flags: transmission_flag::SEND_FLUSH | transmission_flag::SEND_FUA,
            block_sizes: BlockSizes::default(),
        })
        .to_vec()
}

/// A server that has taken the client's flags.
fn greeted() -> ServerHandshake {
    let mut server = ServerHandshake::new();
    let step = server.take(&exports(), &CLIENT_FLAGS, &mut Vec::new());
    assert_eq!(step, Ok(Step::Took { consumed_bytes: 4 }));
    server
}

fn option(kind: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_option(kind, data, &mut bytes);
    bytes
}

/// The kinds and data of all answers.
fn answers(mut bytes: &[u8]) -> Vec<(u32, Vec<u8>)> {
    let mut found = Vec::new();
    while let Parsed::Found {
        value,
        consumed_bytes,
    } = OptionReplyHeader::parse(bytes).unwrap()
    {
        let (data, rest) = bytes[consumed_bytes..].split_at(value.data_bytes as usize);
        found.push((value.kind, data.to_vec()));
        bytes = rest;
    }
    assert_eq!(bytes, b"");
    found
}

fn asked(server: &mut ServerHandshake, kind: u32, data: &[u8]) -> Vec<(u32, Vec<u8>)> {
    let (bytes, mut out) = (option(kind, data), Vec::new());
    let step = server.take(&exports(), &bytes, &mut out).unwrap();
    assert!(!matches!(step, Step::Needs { .. }));
    answers(&out)
}

#[test]
fn the_greeting_is_that_of_the_protocol() {
    let bytes = b"NBDMAGICIHAVEOPT\x00\x03";
    assert_eq!(&ServerHandshake::greeting(), bytes);
    let greeting = Greeting {
        fixed_newstyle: true,
        no_zeroes: true,
    };
    assert_eq!(
        Greeting::parse(bytes),
        Ok(Parsed::Found {
            value: greeting,
            consumed_bytes: 18
        })
    );
    assert_eq!(
        Greeting::parse(&bytes[..7]),
        Ok(Parsed::Needs { more_bytes: 11 })
    );
    let oldstyle = b"NBDMAGIC\x00\x00\x42\x02\x81\x86\x12\x53\x00\x00";
    let refusal = Greeting::parse(oldstyle).unwrap_err().0;
    assert!(refusal.contains("oldstyle"), "{refusal}");
}

#[test]
fn go_tells_size_flags_and_what_was_asked_for() {
    let data = b"\x00\x00\x00\x04beta\x00\x01\x00\x03";
    let mut bytes = b"IHAVEOPT\x00\x00\x00\x07\x00\x00\x00\x0c".to_vec();
    bytes.extend_from_slice(data);
    let (mut server, mut out) = (greeted(), Vec::new());
    let step = server.take(&exports(), &bytes, &mut out).unwrap();
    assert_eq!(
        step,
        Step::Done {
            consumed_bytes: 28,
            outcome: Negotiated::Transmission {
                export: 1,
                structured_replies: false
            }
        }
    );
    let mut expected = b"\x00\x03\xe8\x89\x04\x55\x65\xa9\x00\x00\x00\x07\x00\x00\x00\x03\
        \x00\x00\x00\x0c\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x0d"
        .to_vec();
    expected.extend_from_slice(
        b"\x00\x03\xe8\x89\x04\x55\x65\xa9\x00\x00\x00\x07\x00\x00\x00\x03\
        \x00\x00\x00\x0e\x00\x03\x00\x00\x00\x01\x00\x00\x10\x00\x02\x00\x00\x00",
    );
    expected.extend_from_slice(
        b"\x00\x03\xe8\x89\x04\x55\x65\xa9\x00\x00\x00\x07\x00\x00\x00\x01\x00\x00\x00\x00",
    );
    assert_eq!(out, expected);
}

#[test]
fn the_old_way_gives_size_and_flags_and_zeroes_unless_they_are_left_out() {
    for (flags, length) in [([0, 0, 0, 3], 10), ([0, 0, 0, 0], 134)] {
        let (mut server, mut out) = (ServerHandshake::new(), Vec::new());
        server.take(&exports(), &flags, &mut out).unwrap();
        let step = server
            .take(
                &exports(),
                &option(option_kind::EXPORT_NAME, b"alpha"),
                &mut out,
            )
            .unwrap();
        assert!(matches!(
            step,
            Step::Done {
                outcome: Negotiated::Transmission { export: 0, .. },
                ..
            }
        ));
        assert_eq!(out.len(), length);
        assert_eq!(
            out[..10],
            *b"\x00\x00\x00\x00\x00\x00\x10\x00\x00\x0d".as_slice()
        );
    }
    let unknown = greeted().take(
        &exports(),
        &option(option_kind::EXPORT_NAME, b"gamma"),
        &mut Vec::new(),
    );
    assert_eq!(
        unknown.unwrap_err().0,
        "export \"gamma\": there is none of this name"
    );
}

#[test]
fn the_list_has_every_name() {
    let found = asked(&mut greeted(), option_kind::LIST, b"");
    let names: Vec<String> = found[..2]
        .iter()
        .map(|(_, data)| parse_listed(data).unwrap())
        .collect();
    assert_eq!(names, ["alpha", "beta"]);
    assert_eq!(found[2], (option_reply::ACK, Vec::new()));
}

#[test]
fn what_is_not_offered_is_refused_and_the_negotiation_goes_on() {
    let mut server = greeted();
    for kind in [
        option_kind::STARTTLS,
        option_kind::EXTENDED_HEADERS,
        option_kind::LIST_META_CONTEXT,
        option_kind::SET_META_CONTEXT,
        4,
        99,
    ] {
        assert_eq!(
            asked(&mut server, kind, b"")[0].0,
            option_reply::ERR_UNSUP,
            "{kind}"
        );
    }
    for kind in [
        option_kind::LIST,
        option_kind::STARTTLS,
        option_kind::STRUCTURED_REPLY,
    ] {
        assert_eq!(
            asked(&mut server, kind, b"x")[0].0,
            option_reply::ERR_INVALID
        );
    }
    let named = |name: &str| InfoRequest {
        name: name.to_owned(),
        kinds: vec![info_kind::DESCRIPTION],
    };
    let unknown = asked(&mut server, option_kind::GO, &named("gamma").encode());
    assert_eq!(unknown[0].0, option_reply::ERR_UNKNOWN);
    for data in [
        &b""[..],
        b"\x00\x00\x00\x09beta\x00\x00",
        b"\x00\x00\x00\x01\xff\x00\x00",
        b"\x00\x00\x00\x00\x00\x02\x00\x03",
        b"\x00\x00\x00\x00\x00\x00\x00",
    ] {
        assert_eq!(
            asked(&mut server, option_kind::INFO, data)[0].0,
            option_reply::ERR_INVALID
        );
    }
    let info = asked(&mut server, option_kind::INFO, &named("").encode());
    assert_eq!(info.len(), 3);
    assert_eq!(&info[1].1[2..], b"the export alpha");
    assert_eq!(
        asked(&mut server, option_kind::ABORT, b"")[0].0,
        option_reply::ACK
    );
}

#[test]
fn what_nothing_could_follow_is_an_error() {
    let flags = ServerHandshake::new().take(&exports(), &[0, 0, 0, 4], &mut Vec::new());
    assert!(flags.is_err());
    let garbage = greeted().take(&exports(), b"GET / HTTP/1.1\r\n\r\n", &mut Vec::new());
    assert!(garbage.unwrap_err().0.starts_with("an option: begins with"));
    let long = b"IHAVEOPT\x00\x00\x00\x07\x00\x01\x00\x01";
    let long = greeted().take(&exports(), long, &mut Vec::new());
    assert!(long.unwrap_err().0.contains("at most 65536"));
    let mut server = greeted();
    for _ in 0..OPTIONS_MAX {
        asked(&mut server, option_kind::LIST, b"");
    }
    let more = server.take(&exports(), &option(option_kind::LIST, b""), &mut Vec::new());
    assert!(more.is_err());
    let mut old = ServerHandshake::new();
    old.take(&exports(), &[0, 0, 0, 0], &mut Vec::new())
        .unwrap();
    let answered = old.take(&exports(), &option(option_kind::LIST, b""), &mut Vec::new());
    assert!(answered.is_err());
}

/// Both sides, byte by byte or in one piece; what either made of it.
fn negotiated(
    mut client: ClientHandshake,
    mut server: ServerHandshake,
    piece: usize,
) -> Result<(Agreed, Negotiated), String> {
    let (exports, mut to_server) = (exports(), Vec::new());
    let mut to_client = ServerHandshake::greeting().to_vec();
    let (mut agreed, mut chosen) = (None, None);
    for _ in 0..10_000 {
        let at_hand = piece.min(to_client.len());
        if agreed.is_none() && at_hand > 0 {
            // As much as is needed, piece by piece.
            let mut shown = at_hand;
            loop {
                let step = client
                    .take(&to_client[..shown], &mut to_server)
                    .map_err(|it| it.0)?;
                match step {
                    Step::Needs { more_bytes } => {
                        assert!(more_bytes > 0);
                        if shown == to_client.len() {
                            break;
                        }
                        shown = (shown + piece.min(more_bytes)).min(to_client.len());
                    }
                    Step::Took { consumed_bytes } => {
                        to_client.drain(..consumed_bytes);
                        break;
                    }
                    Step::Done {
                        consumed_bytes,
                        outcome,
                    } => {
                        to_client.drain(..consumed_bytes);
                        agreed = Some(outcome);
                        break;
                    }
                }
            }
        }
        if chosen.is_none() {
            let step = server
                .take(&exports, &to_server, &mut to_client)
                .map_err(|it| it.0)?;
            match step {
                Step::Needs { .. } => {}
                Step::Took { consumed_bytes } => drop(to_server.drain(..consumed_bytes)),
                Step::Done {
                    consumed_bytes,
                    outcome,
                } => {
                    to_server.drain(..consumed_bytes);
                    chosen = Some(outcome);
                }
            }
        }
        if let (Some(agreed), Some(chosen)) = (&agreed, chosen) {
            assert!(to_client.is_empty() && to_server.is_empty());
            return Ok((agreed.clone(), chosen));
        }
    }
    Err("no end".to_owned())
}

#[test]
fn both_sides_agree_in_pieces_of_any_length() {
    for piece in [1, 3, 1000] {
        for (wants, offers) in [(true, true), (true, false), (false, true)] {
            let client = ClientHandshake::new("beta", wants).unwrap();
            let server = if offers {
                ServerHandshake::new()
            } else {
                ServerHandshake::without_structured_replies()
            };
            let (agreed, chosen) = negotiated(client, server, piece).unwrap();
            let structured_replies = wants && offers;
            let Agreed::Transmission {
                export,
                structured_replies: agreed_on,
            } = agreed
            else {
                panic!("requests follow: {agreed:?}");
            };
            assert_eq!(agreed_on, structured_replies);
            assert_eq!(
                chosen,
                Negotiated::Transmission {
                    export: 1,
                    structured_replies
                }
            );
            assert_eq!(export.size_bytes, 1 << 40);
            assert_eq!(
                export.flags & transmission_flag::SEND_DF != 0,
                structured_replies
            );
            assert_eq!(export.block_sizes, BlockSizes::default());
        }
    }
    let refused = negotiated(
        ClientHandshake::new("gamma", true).unwrap(),
        ServerHandshake::new(),
        1000,
    );
    assert!(refused.unwrap_err().contains("there is none of this name"));
}

#[test]
fn a_client_asks_by_the_old_way_where_there_is_no_other() {
    let mut client = ClientHandshake::new("alpha", true).unwrap();
    let mut out = Vec::new();
    let step = client.take(b"NBDMAGICIHAVEOPT\x00\x00", &mut out).unwrap();
    assert_eq!(step, Step::Took { consumed_bytes: 18 });
    assert_eq!(
        out,
        b"\x00\x00\x00\x00IHAVEOPT\x00\x00\x00\x01\x00\x00\x00\x05alpha"
    );
    let mut answer = b"\x00\x00\x00\x00\x00\x00\x10\x00\x00\x05".to_vec();
    answer.resize(134, 0);
    assert_eq!(
        client.take(&answer[..130], &mut out),
        Ok(Step::Needs { more_bytes: 4 })
    );
    let Ok(Step::Done {
        outcome: Agreed::Transmission { export, .. },
        ..
    }) = client.take(&answer, &mut out)
    else {
        panic!("the answer is whole");
    };
    assert_eq!((export.size_bytes, export.flags), (4096, 5));
}

/// A server that insists on TLS, and has taken the client's flags.
fn greeted_before_tls() -> ServerHandshake {
    let mut server = ServerHandshake::new().requiring_tls();
    let step = server.take(&exports(), &CLIENT_FLAGS, &mut Vec::new());
    assert_eq!(step, Ok(Step::Took { consumed_bytes: 4 }));
    server
}

fn start_tls(server: &mut ServerHandshake) {
    let (bytes, mut out) = (option(option_kind::STARTTLS, b""), Vec::new());
    let step = server.take(&exports(), &bytes, &mut out);
    let done = Step::Done {
        consumed_bytes: bytes.len(),
        outcome: Negotiated::StartTls,
    };
    assert_eq!(step, Ok(done));
    assert_eq!(answers(&out), [(option_reply::ACK, Vec::new())]);
}

#[test]
fn nothing_but_tls_is_answered_before_it_where_it_is_required() {
    let mut server = greeted_before_tls();
    let go = InfoRequest {
        name: "alpha".to_owned(),
        kinds: Vec::new(),
    };
    for (kind, data) in [
        (option_kind::LIST, Vec::new()),
        (option_kind::STRUCTURED_REPLY, Vec::new()),
        (option_kind::INFO, go.encode()),
        (option_kind::GO, go.encode()),
        (option_kind::SET_META_CONTEXT, b"x".to_vec()),
        (77, Vec::new()),
    ] {
        let said = asked(&mut server, kind, &data);
        let kinds: Vec<u32> = said.iter().map(|it| it.0).collect();
        assert_eq!(kinds, [option_reply::ERR_TLS_REQD], "{kind}");
    }
    let said = asked(&mut server, option_kind::STARTTLS, b"x");
    assert_eq!(said[0].0, option_reply::ERR_INVALID);
    start_tls(&mut server);
    // Structured replies were asked for before: that does not count.
    let (bytes, mut out) = (option(option_kind::GO, &go.encode()), Vec::new());
    let Ok(Step::Done { outcome, .. }) = server.take(&exports(), &bytes, &mut out) else {
        panic!("the export is there");
    };
    let plain = Negotiated::Transmission {
        export: 0,
        structured_replies: false,
    };
    assert_eq!(outcome, plain);
}

#[test]
fn an_export_by_the_old_way_without_tls_ends_the_connection() {
    let by_name = option(option_kind::EXPORT_NAME, b"alpha");
    let mut server = greeted_before_tls();
    let said = server.take(&exports(), &by_name, &mut Vec::new());
    assert!(said.unwrap_err().0.contains("without TLS"));
    let mut server = greeted_before_tls();
    start_tls(&mut server);
    let step = server.take(&exports(), &by_name, &mut Vec::new()).unwrap();
    assert!(matches!(step, Step::Done { .. }));
}

#[test]
fn tls_starts_once_and_a_client_may_leave_before() {
    let mut server = greeted_before_tls();
    start_tls(&mut server);
    let said = asked(&mut server, option_kind::STARTTLS, b"");
    assert_eq!(said[0].0, option_reply::ERR_INVALID);
    let mut server = greeted_before_tls();
    let step = server.take(
        &exports(),
        &option(option_kind::ABORT, b""),
        &mut Vec::new(),
    );
    let Ok(Step::Done { outcome, .. }) = step else {
        panic!("the client leaves: {step:?}");
    };
    assert_eq!(outcome, Negotiated::Aborted);
    // Without it, the answer is that there is none.
    let said = asked(&mut greeted(), option_kind::STARTTLS, b"");
    assert_eq!(said[0].0, option_reply::ERR_UNSUP);
}

#[test]
fn what_is_put_between_the_agreement_on_tls_and_tls_is_refused() {
    let mut put = option(option_kind::STARTTLS, b"");
    put.extend(option(option_kind::STRUCTURED_REPLY, b""));
    let said = greeted_before_tls().take(&exports(), &put, &mut Vec::new());
    assert!(said.unwrap_err().0.contains("16 bytes come behind it"));
    let mut client = ClientHandshake::new("alpha", true).unwrap().with_tls();
    let mut out = Vec::new();
    client.take(&ServerHandshake::greeting(), &mut out).unwrap();
    let mut put = Vec::new();
    write_reply(option_kind::STARTTLS, option_reply::ACK, b"", &mut put);
    write_reply(
        option_kind::STRUCTURED_REPLY,
        option_reply::ACK,
        b"",
        &mut put,
    );
    let said = client.take(&put, &mut out);
    assert!(said.unwrap_err().0.contains("20 bytes come behind it"));
}

#[test]
fn both_sides_agree_on_tls_and_go_on_inside_it() {
    let mut client = ClientHandshake::new("beta", true).unwrap().with_tls();
    let mut server = ServerHandshake::new().requiring_tls();
    let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
    client
        .take(&ServerHandshake::greeting(), &mut to_server)
        .unwrap();
    assert!(client.no_zeroes());
    server
        .take(&exports(), &to_server[..4], &mut to_client)
        .unwrap();
    let started = server.take(&exports(), &to_server[4..], &mut to_client);
    assert!(matches!(started, Ok(Step::Done { .. })));
    let step = client.take(&to_client, &mut to_server).unwrap();
    let done = Step::Done {
        consumed_bytes: 20,
        outcome: Agreed::StartTls,
    };
    assert_eq!(step, done);
    to_server.clear();
    client.go_on(&mut to_server);
    to_client.clear();
    server.take(&exports(), &to_server, &mut to_client).unwrap();
    assert_eq!(answers(&to_client), [(option_reply::ACK, Vec::new())]);
}

#[test]
fn a_server_without_tls_is_left() {
    let wants = || ClientHandshake::new("alpha", true).unwrap().with_tls();
    let old = wants().take(b"NBDMAGICIHAVEOPT\x00\x00", &mut Vec::new());
    assert!(old.unwrap_err().0.contains("has no TLS"));
    for kind in [
        option_reply::ERR_UNSUP,
        option_reply::ERR_POLICY,
        option_reply::INFO,
    ] {
        let mut client = wants();
        client
            .take(&ServerHandshake::greeting(), &mut Vec::new())
            .unwrap();
        let mut said = Vec::new();
        write_reply(option_kind::STARTTLS, kind, b"no\nway", &mut said);
        let why = client.take(&said, &mut Vec::new()).unwrap_err().0;
        assert!(
            why.starts_with("TLS: the server refuses it with 0x"),
            "{why}"
        );
        assert!(!why.contains('\n'), "{why}");
    }
}
