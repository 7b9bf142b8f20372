//! Commands and replies are the same wherever what comes is cut.

use ascar_random::Random;
use ascar_resp::{
    Answers, Channels, Commands, DEPTH_MAX, ELEMENTS_MAX, HEAD_BYTES_MAX, Kind, Malformed, Replies,
    Reply, VALUE_BYTES_MAX,
};

/// What a reader made of a stream: what began or ended at which byte, and where it was lost.
type Told<T> = (Vec<(usize, T)>, Option<Malformed>);

/// Hands a stream over as it comes: up to each of the cuts, and to its end.
fn handed<T>(
    stream: &[u8],
    cuts: &[usize],
    mut next: impl FnMut(&[u8]) -> Result<Option<(usize, usize)>, Malformed>,
    mut passed: impl FnMut(usize) -> Option<T>,
) -> Told<T> {
    let (mut told, mut at, mut body) = (Vec::new(), 0, None::<usize>);
    for end in cuts.iter().copied().chain([stream.len()]) {
        loop {
            if let Some(left) = body {
                let here = left.min(end - at);
                at += here;
                if here < left {
                    body = Some(left - here);
                    break;
                }
                body = None;
                told.extend(passed(at).map(|it| (at, it)));
            }
            if at == end {
                break;
            }
            match next(&stream[at..end]) {
                Ok(None) => break,
                Ok(Some((head, behind))) => {
                    assert!(head > 0 && at + head <= end);
                    at += head;
                    body = Some(behind);
                }
                Err(malformed) => return (told, Some(malformed)),
            }
        }
        assert!(end - at < HEAD_BYTES_MAX, "what is kept is bounded");
    }
    (told, None)
}

fn commands(stream: &[u8], cuts: &[usize]) -> Told<Kind> {
    let (mut reader, mut kinds) = (Commands::default(), Vec::new());
    let mut begun = 0;
    let (_, lost) = handed(
        stream,
        cuts,
        |bytes| {
            let Some(part) = reader.next(bytes)? else {
                return Ok(None);
            };
            assert_eq!(reader.next(bytes)?, Some(part), "nothing changes by it");
            if let Some(command) = part.begins {
                begun += 1;
                assert!(command.bytes > 0);
                kinds.push((begun, command.kind));
            }
            reader.pass(&part);
            Ok(Some((part.piece.head_bytes, part.piece.body_bytes)))
        },
        |_| None::<Kind>,
    );
    (kinds, lost)
}

fn replies(stream: &[u8], cuts: &[usize]) -> Told<Reply> {
    let reader = std::cell::RefCell::new(Replies::default());
    handed(
        stream,
        cuts,
        |bytes| {
            let piece = reader.borrow_mut().next(bytes)?;
            Ok(piece.map(|piece| (piece.head_bytes, piece.body_bytes)))
        },
        |_| reader.borrow_mut().take_ended(),
    )
}

const COMMANDS: &[(&[u8], Option<Kind>)] = &[
    (b"*1\r\n$4\r\nPING\r\n", Some(Kind::Ordinary)),
    (b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$12\r\n*1\r\n$4\r\nPING\r\n", Some(Kind::Ordinary)),
    (b"*2\r\n$3\r\nget\r\n$0\r\n\r\n", Some(Kind::Ordinary)),
    (b"PING\r\n", Some(Kind::Ordinary)),
    (b"  SET k \"a value\"\n", Some(Kind::Ordinary)),
    (b"\r\n", None),
    (b"*0\r\n", None),
    (b"*-1\r\n", None),
    (b" \t\n", None),
    (b"*3\r\n$5\r\nblpop\r\n$1\r\nq\r\n$1\r\n0\r\n", Some(Kind::Blocking)),
    (b"BLPOP q 0\r\n", Some(Kind::Blocking)),
    (b"*3\r\n$4\r\nWAIT\r\n$1\r\n1\r\n$1\r\n0\r\n", Some(Kind::Blocking)),
    (b"*4\r\n$5\r\nXREAD\r\n$7\r\nSTREAMS\r\n$5\r\nBLOCK\r\n$1\r\n0\r\n", Some(Kind::Ordinary)),
    (b"*6\r\n$5\r\nXREAD\r\n$5\r\nblock\r\n$1\r\n0\r\n$7\r\nSTREAMS\r\n$1\r\nx\r\n$1\r\n$\r\n", Some(Kind::Blocking)),
    (
        b"*9\r\n$10\r\nXREADGROUP\r\n$5\r\nGROUP\r\n$5\r\nBLOCK\r\n$7\r\nSTREAMS\r\n$5\r\nCOUNT\r\n$1\r\n2\r\n$7\r\nSTREAMS\r\n$1\r\nx\r\n$1\r\n>\r\n",
        Some(Kind::Ordinary),
    ),
    (
        b"*3\r\n$10\r\nPSUBSCRIBE\r\n$1\r\na\r\n$1\r\nb\r\n",
        Some(Kind::Subscription { channels: Channels::Patterns, ends: false, names: 2 }),
    ),
    (
        b"UNSUBSCRIBE\r\n",
        Some(Kind::Subscription { channels: Channels::Named, ends: true, names: 0 }),
    ),
    (b"SSUBSCRIBE\r\n", Some(Kind::Ordinary)),
    (b"*3\r\n$6\r\nCLIENT\r\n$5\r\nREPLY\r\n$4\r\nSkip\r\n", Some(Kind::Answers(Answers::Skip))),
    (b"CLIENT reply off\r\n", Some(Kind::Answers(Answers::Off))),
    (b"CLIENT REPLY MAYBE\r\n", Some(Kind::Ordinary)),
    (b"CLIENT ID\r\n", Some(Kind::Ordinary)),
    (b"CLIENT REPLY ON ON\r\n", Some(Kind::Ordinary)),
    (b"*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n", Some(Kind::Hello)),
    (b"MULTI\r\n", Some(Kind::Transaction)),
    (b"DISCARD\r\n", Some(Kind::EndOfTransaction)),
    (b"RESET\r\n", Some(Kind::Reset)),
    (b"monitor\r\n", Some(Kind::TakesOver("MONITOR"))),
    (b"SCRIPT DEBUG YES\r\n", Some(Kind::TakesOver("SCRIPT DEBUG"))),
    (b"SCRIPT LOAD x\r\n", Some(Kind::Ordinary)),
];

/// Whole replies: how each is told apart.
const REPLIES: &[(&[u8], u8, &[u8])] = &[
    (b"+OK\r\n", b'+', b"OK"),
    (b"-ERR no\r\n", b'-', b"ERR no"),
    (b":-7\r\n", b':', b"-7"),
    (b"$5\r\na\r\nbc\r\n", b'$', b""),
    (b"$0\r\n\r\n", b'$', b""),
    (b"$-1\r\n", b'$', b""),
    (b"*-1\r\n", b'*', b""),
    (b"*0\r\n", b'*', b""),
    (b"*2\r\n*1\r\n*0\r\n$3\r\nabc\r\n", b'*', b""),
    (
        b"*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$2\r\nhi\r\n",
        b'*',
        b"message",
    ),
    (
        b">2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n",
        b'>',
        b"invalidate",
    ),
    (b"%1\r\n+a\r\n%1\r\n+b\r\n:1\r\n", b'%', b"a"),
    (b"~2\r\n#t\r\n,1.5\r\n", b'~', b"t"),
    (b"_\r\n", b'_', b""),
    (
        b"(3492890328409238509324850943850943825024385\r\n",
        b'(',
        b"",
    ),
    (b"!5\r\nERR x\r\n", b'!', b""),
    (b"=7\r\ntxt:abc\r\n", b'=', b""),
    (b"|1\r\n+ttl\r\n:5\r\n+value\r\n", b'+', b"value"),
    (b"|0\r\n:1\r\n", b':', b"1"),
    (b"*2\r\n|1\r\n+a\r\n+b\r\n+x\r\n:1\r\n", b'*', b"x"),
    (b"$?\r\n;4\r\nHell\r\n;1\r\no\r\n;0\r\n", b'$', b""),
    (b"*?\r\n:1\r\n%?\r\n+a\r\n+b\r\n.\r\n.\r\n", b'*', b"1"),
    (
        b"*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:0\r\n",
        b'*',
        b"unsubscribe",
    ),
];

fn every_cut(stream: &[u8], mut look: impl FnMut(&[usize])) {
    let each: Vec<usize> = (1..stream.len()).collect();
    look(&[]);
    look(&each);
    for at in &each {
        look(&[*at]);
    }
}

#[test]
fn commands_are_told_wherever_they_are_cut() {
    for (bytes, kind) in COMMANDS {
        every_cut(bytes, |cuts| {
            let kinds = kind.map(|kind| (1, kind));
            let told = commands(bytes, cuts);
            let shown = String::from_utf8_lossy(bytes);
            assert_eq!(
                told,
                (kinds.into_iter().collect(), None),
                "{shown:?} {cuts:?}"
            );
        });
    }
    let all: Vec<u8> = COMMANDS.iter().flat_map(|it| it.0).copied().collect();
    let kinds: Vec<Kind> = COMMANDS.iter().filter_map(|it| it.1).collect();
    every_cut(&all, |cuts| {
        let (told, lost) = commands(&all, cuts);
        assert_eq!(lost, None);
        assert!(
            told.iter().map(|it| it.1).eq(kinds.iter().copied()),
            "{cuts:?}"
        );
    });
}

#[test]
fn replies_are_told_wherever_they_are_cut() {
    for (bytes, sign, word) in REPLIES {
        every_cut(bytes, |cuts| {
            let (told, lost) = replies(bytes, cuts);
            let shown = String::from_utf8_lossy(bytes);
            assert_eq!((told.len(), lost), (1, None), "{shown:?} {cuts:?}");
            let (at, reply) = told[0];
            assert_eq!((at, reply.bytes), (bytes.len(), bytes.len() as u64));
            assert_eq!(
                (reply.sign, reply.word.bytes()),
                (*sign, *word),
                "{shown:?}"
            );
        });
    }
    let all: Vec<u8> = REPLIES.iter().flat_map(|it| it.0).copied().collect();
    let whole = replies(&all, &[]);
    assert_eq!(whole.0.len(), REPLIES.len());
    every_cut(&all, |cuts| assert_eq!(replies(&all, cuts), whole));
}

#[test]
fn the_third_element_is_told_where_it_is_a_number() {
    let third = |bytes: &[u8]| replies(bytes, &[]).0[0].1.third;
    assert_eq!(
        third(b"*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:12\r\n"),
        Some(12)
    );
    assert_eq!(
        third(b"*3\r\n$9\r\nsubscribe\r\n*1\r\n:3\r\n:12\r\n"),
        Some(12)
    );
    assert_eq!(third(b"*3\r\n:1\r\n:2\r\n$1\r\n3\r\n"), None);
    assert_eq!(third(b"*2\r\n*3\r\n:1\r\n:2\r\n:3\r\n:4\r\n"), None);
}

#[test]
fn long_values_are_not_waited_for() {
    let value = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$50000000\r\nabc";
    let part = Commands::default().next(value).unwrap().unwrap();
    assert_eq!(part.piece.head_bytes, value.len());
    assert_eq!(part.piece.body_bytes, 50_000_000 + 2 - 3);
    let bytes = part.begins.unwrap().bytes;
    assert_eq!(bytes, 50_000_000 + 2 + value.len() as u64 - 3);
    let piece = Replies::default().next(b"$50000000\r\n").unwrap().unwrap();
    assert_eq!((piece.head_bytes, piece.body_bytes), (11, 50_000_002));
    let long = format!("*2\r\n$10\r\nXREADGROUP\r\n$1000\r\n{}", "x".repeat(10));
    let part = Commands::default().next(long.as_bytes()).unwrap().unwrap();
    assert_eq!(part.begins.unwrap().kind, Kind::Blocking, "nobody can say");
}

#[test]
fn what_the_protocol_does_not_have_is_named() {
    let over = |sign: char, count: u64| format!("{sign}{}\r\n", count + 1);
    let deep = format!("{}:1\r\n", "*1\r\n".repeat(DEPTH_MAX + 1));
    for (bytes, word) in [
        (over('*', ELEMENTS_MAX).as_bytes(), "elements"),
        (over('$', VALUE_BYTES_MAX).as_bytes(), "bytes long"),
        (deep.as_bytes(), "deeper"),
        (b"HTTP/1.1 200 OK\r\n", "0x48"),
        (b"*1\r\n>1\r\n+x\r\n", "0x3e"),
        (b".\r\n", "ends nothing"),
        (b"*1\r\n.\r\n", "ends nothing"),
        (b";1\r\nx\r\n", "0x3b"),
        (b"$?\r\n+x\r\n", "0x2b"),
        (b"+OK\n", "carriage return"),
        (b"$-2\r\n", "-2 bytes"),
        (b"%-1\r\n", "-1; allowed"),
        (b"$ 1\r\n", "no number"),
        (&[b'+'; HEAD_BYTES_MAX], "no end"),
    ] {
        let (told, lost) = replies(bytes, &[]);
        let said = lost.expect("it is refused").0;
        assert!(told.is_empty() && said.contains(word), "{said}");
        assert!(!said.contains('\n'));
        let each: Vec<usize> = (1..bytes.len().min(1000)).collect();
        assert_eq!(replies(bytes, &each).1.unwrap().0, said);
    }
    for (bytes, word) in [
        (over('*', ELEMENTS_MAX).as_bytes(), "values"),
        (b"*1\r\n$-1\r\n", "-1 bytes"),
        (b"*1\r\n:1\r\n", "0x3a"),
        (b"*-1x\r\n", "no number"),
        (b"*x\r\n", "no number"),
        (b"\"SUBSCRIBE\" a\r\n", "quoted"),
        (b"SUBSCRIBE \"a b\"\r\n", "quoted"),
        (b"CLIENT REPLY 'OFF'\r\n", "quoted"),
        (&[b'x'; HEAD_BYTES_MAX], "no end"),
    ] {
        let (told, lost) = commands(bytes, &[]);
        let said = lost.expect("it is refused").0;
        assert!(told.is_empty() && said.contains(word), "{said}");
    }
}

#[test]
fn what_is_right_before_a_mistake_passes() {
    for cuts in [&[][..], &[11], &[11, 12, 13]] {
        let (told, lost) = commands(b"*2\r\n$1\r\na\r\n:1\r\n", cuts);
        assert_eq!(told, [(1, Kind::Ordinary)]);
        assert!(lost.unwrap().0.contains("0x3a"));
        let (told, lost) = replies(b"+OK\r\n*2\r\n:1\r\nx", cuts);
        assert_eq!((told.len(), told[0].0), (1, 5));
        assert!(lost.unwrap().0.contains("0x78"));
    }
}

#[test]
fn any_bytes_are_told_the_same_in_pieces_or_refused_the_same() {
    let mut random = Random::new(7);
    let signs = b"*$:+-_#,(!=%~>|;.?\r\n0123456789aMULTI ";
    for _ in 0..20_000 {
        let count = random.below(60) as usize;
        let stream: Vec<u8> = (0..count)
            .map(|_| signs[random.below(signs.len() as u64) as usize])
            .collect();
        let each: Vec<usize> = (1..count).collect();
        assert_eq!(replies(&stream, &[]), replies(&stream, &each));
        assert_eq!(commands(&stream, &[]), commands(&stream, &each));
    }
}
