//! What is kept in mind of a connection: whose answer comes next, where bodies end, and who hears what at the end.

use crate::recorder::Place;

use super::*;

fn sent(bytes: u32) -> Sent {
    Sent {
        at_us: 7,
        bytes,
        is_sequential: false,
        is_held: true,
        record: Place::default(),
    }
}

/// Says something to the server, up to where it may be said at once; the number of bytes that were passed on.
fn say(exchanges: &mut Exchanges, text: &str) -> usize {
    let (mut bytes, mut passed) = (text.as_bytes().to_vec(), 0);
    while !bytes.is_empty() {
        match exchanges.next_request(&bytes).unwrap() {
            Next::Found(part) => {
                let count = part.piece.head_bytes + part.piece.body_bytes;
                passed += count;
                bytes.drain(..count);
                let sent = part.ask.map(|ask| sent(ask.bytes));
                exchanges.on_send(part.request, sent).unwrap();
            }
            Next::Cut(range) => drop(bytes.drain(range)),
            other => panic!("{other:?}"),
        }
    }
    passed
}

/// What of the server's bytes passes, and the answers that they bring.
fn hear(exchanges: &mut Exchanges, text: &str) -> (String, Vec<Answer>) {
    let mut bytes = text.as_bytes().to_vec();
    let (mut passed, mut answers) = (Vec::new(), Vec::new());
    while !bytes.is_empty() {
        match exchanges.next_reply(&bytes).unwrap() {
            Next::Found(piece) => {
                passed.extend(bytes.drain(..piece.head_bytes + piece.body_bytes));
                answers.extend(exchanges.take_answer());
            }
            Next::Cut(range) => drop(bytes.drain(range)),
            other => panic!("{other:?}"),
        }
    }
    (String::from_utf8(passed).unwrap(), answers)
}

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab";

#[test]
fn responses_answer_requests_in_their_order() {
    let mut exchanges = Exchanges::default();
    let put = "PUT /b HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nxyz";
    let head = "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n";
    let all = [GET, put, head].concat();
    assert_eq!(say(&mut exchanges, &all), all.len());
    assert_eq!((exchanges.count(), exchanges.held()), (3, (3, 3)));
    let all = [
        OK,
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", // to a HEAD
    ]
    .concat();
    let (passed, answers) = hear(&mut exchanges, &all);
    assert_eq!(passed, all);
    let moved: Vec<_> = answers
        .iter()
        .map(|it| (it.read_bytes, it.written_bytes, it.writes))
        .collect();
    assert_eq!(moved, [(2, 0, false), (0, 3, true), (0, 0, false)]);
    assert_eq!((exchanges.count(), exchanges.held()), (0, (0, 0)));
    assert!(
        matches!(exchanges.next_reply(b"HTTP/1.1 200"), Err(End::Broken(_))),
        "nothing was asked"
    );
}

#[test]
fn chunks_count_without_their_lines() {
    let mut exchanges = Exchanges::default();
    let post = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    say(&mut exchanges, &[post, "3\r\nabc"].concat());
    assert_eq!(exchanges.count(), 1);
    // The next request is no chunk, so the body has to end before it.
    assert!(exchanges.next_request(GET.as_bytes()).is_err());
    say(&mut exchanges, "\r\n2;a=b\r\nde\r\n0\r\nX: y\r\n\r\n");
    say(&mut exchanges, GET);
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n0\r\n\r\n";
    let (passed, answers) = hear(&mut exchanges, chunked);
    assert_eq!(passed, chunked);
    assert_eq!((answers[0].read_bytes, answers[0].written_bytes), (4, 5));
    assert_eq!(exchanges.count(), 1);
}

#[test]
fn a_response_without_a_length_ends_with_the_connection() {
    let mut exchanges = Exchanges::default();
    say(&mut exchanges, GET);
    let (_, answers) = hear(&mut exchanges, "HTTP/1.0 200 OK\r\n\r\nabc");
    assert!(answers.is_empty());
    assert_eq!(exchanges.on_server_end().unwrap().read_bytes, 3);
    assert_eq!(exchanges.last_word(&Ok(())), LastWord::Part(Vec::new()));
    say(&mut exchanges, GET);
    hear(&mut exchanges, "HTTP/1.0 200 OK\r\n\r\nabc");
    assert_eq!(exchanges.last_word(&Err(End::Closed)), LastWord::Cut);
}

#[test]
fn a_server_that_has_too_many_says_so() {
    let mut exchanges = Exchanges::default();
    say(&mut exchanges, &GET.repeat(3));
    let all = ["503 Slow Down", "429 Too Many Requests", "500 No"]
        .map(|status| OK.replace("200 OK", status))
        .concat();
    let (_, answers) = hear(&mut exchanges, &all);
    let told: Vec<_> = answers.iter().map(|it| it.is_overload).collect();
    assert_eq!(told, [true, true, false]);
}

#[test]
fn what_is_of_one_connection_is_not_passed_on() {
    let mut exchanges = Exchanges::default();
    let text = "\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\nConnection: TE, close\r\nTE: trailers\r\n\r\n";
    let left = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    assert_eq!(say(&mut exchanges, text), left.len());
    let text = "HTTP/1.1 204 No\r\nConnection: Upgrade\r\nUpgrade: h2\r\n\r\n";
    assert_eq!(hear(&mut exchanges, text).0, "HTTP/1.1 204 No\r\n\r\n");
}

/// The status of what a client hears at the end.
fn status(word: &LastWord) -> Option<String> {
    let LastWord::Part(bytes) = word else {
        panic!("{word:?}");
    };
    let text = String::from_utf8(bytes.clone()).unwrap();
    text.split(' ').nth(1).map(str::to_owned)
}

#[test]
fn a_client_hears_why_its_server_does_not_answer() {
    let fresh = || {
        let mut exchanges = Exchanges::default();
        say(&mut exchanges, GET);
        exchanges
    };
    let broken = || Err(End::Broken("a status line".to_owned()));
    let silent = || Err(End::Silent("nothing".to_owned()));
    for (ended, told) in [
        (Ok(()), "502"),
        (Err(End::Closed), "502"),
        (broken(), "502"),
        (silent(), "504"),
    ] {
        let mut exchanges = fresh();
        assert_eq!(status(&exchanges.last_word(&ended)).as_deref(), Some(told));
        assert_eq!(exchanges.last_word(&ended), LastWord::Told, "once");
        assert!(matches!(
            exchanges.next_reply(OK.as_bytes()),
            Err(End::Closed)
        ));
        assert_eq!(exchanges.tell(false), Tell::Never);
    }
    let idle = Exchanges::default().last_word(&silent());
    assert_eq!(status(&idle), None, "nothing was asked");
    let mut exchanges = fresh();
    assert!(exchanges.next_reply(&OK.as_bytes()[..39]).is_ok());
    assert_eq!(
        status(&exchanges.last_word(&silent())),
        None,
        "it has begun"
    );
    let mut exchanges = fresh();
    hear(&mut exchanges, OK);
    say(&mut exchanges, GET);
    assert_eq!(
        status(&exchanges.last_word(&Ok(()))),
        None,
        "its client asks again"
    );
    assert_eq!(
        status(&exchanges.last_word(&broken())).as_deref(),
        Some("502")
    );
}

#[test]
fn a_refusal_waits_for_what_was_asked_before() {
    let mut exchanges = Exchanges::default();
    assert_eq!(
        exchanges.tell(true),
        Tell::Never,
        "its request was answered"
    );
    say(&mut exchanges, GET);
    assert_eq!(exchanges.tell(false), Tell::Later);
    hear(&mut exchanges, OK);
    assert_eq!(
        (exchanges.tell(false), exchanges.tell(false)),
        (Tell::Now, Tell::Never)
    );
    let mut exchanges = Exchanges::default();
    say(&mut exchanges, &GET.repeat(2));
    assert_eq!(exchanges.tell(true), Tell::Later);
    hear(&mut exchanges, OK);
    assert_eq!(exchanges.tell(true), Tell::Now, "of the request itself");
}

#[test]
fn an_answer_is_owed_once_all_was_asked() {
    let mut exchanges = Exchanges::default();
    assert_eq!(exchanges.owed_since_us(true), None);
    say(&mut exchanges, GET);
    assert_eq!(
        (
            exchanges.owed_since_us(false),
            exchanges.owed_since_us(true)
        ),
        (Some(7), None)
    );
    say(&mut exchanges, GET);
    assert_eq!(exchanges.owed_since_us(true), Some(7));
    exchanges.forget();
    assert_eq!(
        (exchanges.owed_since_us(false), exchanges.held()),
        (None, (0, 0))
    );
}
