//! Passes the rule manager's messages on to a proxy of this node, and its answers back. `ascard proxy` has no way to a
//! message server and no credentials: what it answers on its socket, it answers here to whoever may ask on the server.
//!
//! Each proxy has a thread with a connection of its own, so that one that does not answer delays no tick. Nothing is
//! kept here: rules, trials and their ends are the proxy's.

use std::convert::Infallible;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use ascar_messaging::file::ConfigFile;
use ascar_messaging::options::check_name;
use ascar_messaging::{Fault, Link, Message};
use ascar_service::connect_within;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde::Deserialize;
use serde_json::json;

use crate::LOG;
use crate::config::Config;

/// What subjects begin with.
pub(crate) const PREFIX: &str = "ascar.rules.";

/// What a manager may ask of one controller; all are asked to be found.
const VERBS: [&str; 9] = [
    "load", "renew", "keep", "back", "stop", "show", "record", "read", FIND,
];
pub(crate) const FIND: &str = "find";

/// The longest line that a proxy reads.
const ASKED_BYTES_MAX: usize = 1 << 20;

/// The longest line that is read of it.
const TOLD_BYTES_MAX: usize = 4 << 20;

/// What a piece of a line is read into.
const PIECE_BYTES: usize = 4096;

/// Beats that were not sent yet; a proxy says one a second.
const BEATS_BYTES_MAX: usize = 64 << 10;

/// How long a proxy may take for an answer: managers wait for five seconds.
const ANSWER_LIMIT: Duration = Duration::from_secs(4);

/// Between looks whether the server still answers.
const LOOK_MS: u16 = 1_000;

/// Waits between attempts.
const PAUSE_MIN: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// A thread's stack.
const STACK_BYTES: usize = 256 << 10;

/// A proxy of this node.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProxyOptions {
    /// Its control socket, as its own file names it.
    pub control: PathBuf,
}

/// Passes messages on for all proxies of a file, from now on, until the process ends.
///
/// # Errors
/// When no thread can be started.
pub fn start(config: &Config) -> Result<(), Fault> {
    for proxy in &config.proxies {
        let relay = Relay {
            config: config.clone(),
            control: proxy.control.clone(),
        };
        thread::Builder::new()
            .name("relay".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || relay.run())
            .map_err(|error| Fault(format!("a thread for a proxy: {error}")))?;
    }
    Ok(())
}

/// What every message has.
#[derive(Debug, Deserialize)]
struct Tagged {
    message: String,
}

/// Who a proxy is.
#[derive(Debug, Deserialize)]
struct Here {
    controller: String,
}

/// Stands between the server and a proxy.
struct Relay {
    config: Config,
    control: PathBuf,
}

impl Relay {
    fn run(&self) {
        let (mut said, mut pause) = (String::new(), PAUSE_MIN);
        loop {
            let begun = Instant::now();
            let Err(fault) = self.work();
            // Once, not every second.
            if said != fault.0 {
                LOG.line(format_args!("proxy {}: {fault}", self.control.display()));
                said = fault.0;
            }
            if begun.elapsed() > PAUSE_MAX {
                pause = PAUSE_MIN;
            }
            thread::sleep(pause);
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Works until the proxy or the server is gone.
    fn work(&self) -> Result<Infallible, Fault> {
        let name = self.name()?;
        let mut beats = Beats::listen(&self.control).map_err(gone)?;
        let who = format!("agent {}, proxy {name}", self.config.node);
        let mut link = Link::connect(&self.config.options()?, &who)?;
        link.subscribe(&format!("{PREFIX}{FIND}"));
        link.subscribe(&format!("{PREFIX}*.{name}"));
        LOG.line(format_args!(
            "proxy {}: the rule manager reaches controller {name}",
            self.control.display()
        ));
        loop {
            while let Some(message) = link.receive(Instant::now())? {
                self.pass(&mut link, &message, &name);
            }
            for beat in beats.take().map_err(gone)? {
                if fits(&beat, "beat") {
                    link.publish(&format!("{PREFIX}beat.{name}"), None, &beat);
                }
            }
            link.flush(Duration::ZERO)?;
            wait(&link, &beats);
        }
    }

    /// The controller's name, by which it is asked.
    fn name(&self) -> Result<String, Fault> {
        let told = ask(&self.control, br#"{"message": "rules.find/1"}"#).map_err(gone)?;
        let here: Here = serde_json::from_slice(&told)
            .map_err(|error| Fault(format!("its answer is no word of a proxy: {error}")))?;
        check_name("controller", &here.controller)?;
        Ok(here.controller)
    }

    /// Passes a message on, and the answer back.
    fn pass(&self, link: &mut Link, message: &Message, name: &str) {
        let Some(verb) = verb_of(&message.subject, name) else {
            return;
        };
        let told = self.told(verb, &message.payload);
        // Of those that are looked for, only who is meant says so.
        if verb == FIND && !told.as_deref().is_ok_and(|told| fits(told, "here")) {
            return;
        }
        let Some(reply) = &message.reply else {
            return;
        };
        let told = told.unwrap_or_else(|reason| refusal(&reason));
        if told.len() <= link.payload_bytes_max() {
            link.publish(reply, None, &told);
            return;
        }
        let reason = format!(
            "an answer of {} bytes is more than the server takes",
            told.len()
        );
        link.publish(reply, None, &refusal(&reason));
    }

    /// What the proxy answers, or why it was not asked.
    fn told(&self, verb: &str, asked: &[u8]) -> Result<Vec<u8>, String> {
        if asked.len() >= ASKED_BYTES_MAX {
            return Err(format!(
                "message: {} bytes: at most {ASKED_BYTES_MAX}",
                asked.len()
            ));
        }
        // The server lets a user ask by the subject: another message must not come under it.
        if !fits(asked, verb) {
            return Err(format!(
                "message: is no rules.{verb} in JSON, as its subject says"
            ));
        }
        ask(&self.control, asked).map_err(|error| format!("the proxy does not answer: {error}"))
    }
}

/// What is asked of a controller by a subject; None where it is not asked.
pub(crate) fn verb_of(subject: &str, name: &str) -> Option<&'static str> {
    let asked = subject.strip_prefix(PREFIX)?;
    let verb = match asked.split_once('.') {
        Some((verb, of)) if of == name && verb != FIND => verb,
        None if asked == FIND => FIND,
        _ => return None,
    };
    VERBS.into_iter().find(|it| *it == verb)
}

/// Whether a message is of a kind, in any version.
pub(crate) fn fits(message: &[u8], kind: &str) -> bool {
    let is_object = message.trim_ascii_start().starts_with(b"{");
    is_object
        && serde_json::from_slice(message).is_ok_and(|found: Tagged| {
            let version = found.message.strip_prefix("rules.");
            version
                .and_then(|it| it.strip_prefix(kind))
                .is_some_and(|it| it.starts_with('/'))
        })
}

fn refusal(reason: &str) -> Vec<u8> {
    let told = json!({"message": "refusal/1", "reason": reason});
    told.to_string().into_bytes()
}

/// Asks a proxy, on a connection of its own.
fn ask(control: &Path, asked: &[u8]) -> io::Result<Vec<u8>> {
    let socket = connect_within(control, ANSWER_LIMIT)?;
    socket.set_write_timeout(Some(ANSWER_LIMIT))?;
    (&socket).write_all(&line(asked))?;
    answer(&socket, ANSWER_LIMIT)
}

/// What it answers, all of it within so long: one that says a little now and then holds nobody up for longer.
fn answer(mut socket: &UnixStream, limit: Duration) -> io::Result<Vec<u8>> {
    let late = || io::Error::other(format!("no answer within {} s", limit.as_secs_f64()));
    let (until, mut told, mut piece) = (Instant::now() + limit, Vec::new(), [0; PIECE_BYTES]);
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(late());
        }
        socket.set_read_timeout(Some(left))?;
        let count = match socket.read(&mut piece) {
            Ok(count) => count,
            // What a time-out of a socket is called.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(late()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let end = piece[..count].iter().position(|byte| *byte == b'\n');
        told.extend_from_slice(&piece[..end.unwrap_or(count)]);
        if end.is_some() {
            return Ok(told);
        }
        if count == 0 || told.len() > TOLD_BYTES_MAX {
            return Err(io::Error::other("its answer has no end"));
        }
    }
}

/// A message on one line: between the parts of JSON, the end of a line is a space.
fn line(message: &[u8]) -> Vec<u8> {
    let spaced = message.iter().map(|byte| match byte {
        b'\n' => b' ',
        other => *other,
    });
    spaced.chain([b'\n']).collect()
}

fn gone(error: io::Error) -> Fault {
    Fault(format!(
        "{error}; is it running, and may this agent open its socket?"
    ))
}

/// What a proxy says at the end of each tick.
#[derive(Debug)]
struct Beats {
    socket: UnixStream,
    read: Vec<u8>,
}

impl Beats {
    fn listen(control: &Path) -> io::Result<Self> {
        let socket = connect_within(control, ANSWER_LIMIT)?;
        socket.set_write_timeout(Some(ANSWER_LIMIT))?;
        (&socket).write_all(b"{\"message\": \"rules.listen/1\"}\n")?;
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket,
            read: Vec::new(),
        })
    }

    /// The whole lines that have come.
    fn take(&mut self) -> io::Result<Vec<Vec<u8>>> {
        let mut piece = [0; PIECE_BYTES];
        loop {
            match (&self.socket).read(&mut piece) {
                Ok(0) => return Err(io::Error::other("it has ended")),
                Ok(count) => self.read.extend_from_slice(&piece[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if self.read.len() > BEATS_BYTES_MAX {
                return Err(io::Error::other("it says more than a proxy does"));
            }
        }
        let Some(end) = self.read.iter().rposition(|byte| *byte == b'\n') else {
            return Ok(Vec::new());
        };
        let rest = self.read.split_off(end + 1);
        let whole = std::mem::replace(&mut self.read, rest);
        let lines = whole[..end].split(|byte| *byte == b'\n');
        Ok(lines.map(<[u8]>::to_vec).collect())
    }
}

/// Waits until either says something.
fn wait(link: &Link, beats: &Beats) {
    let mut flags = PollFlags::POLLIN;
    flags.set(PollFlags::POLLOUT, link.wants_write());
    let mut watched = [
        PollFd::new(link.descriptor(), flags),
        PollFd::new(beats.socket.as_fd(), PollFlags::POLLIN),
    ];
    let _ = poll(&mut watched, PollTimeout::from(LOOK_MS));
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn subjects_name_what_is_asked_and_of_whom() {
        for (subject, verb) in [
            ("ascar.rules.find", Some("find")),
            ("ascar.rules.load.c1", Some("load")),
            ("ascar.rules.load.c2", None),
            ("ascar.rules.find.c1", None),
            ("ascar.rules.load", None),
            ("ascar.rules.beat.c1", None),
            ("ascar.rules.listen.c1", None),
            ("ascar.rules.observe.c1", None),
            ("ascar.rules.load.c1.c1", None),
            ("ascar.capes.load.c1", None),
        ] {
            assert_eq!(verb_of(subject, "c1"), verb, "{subject}");
        }
    }

    #[test]
    fn a_message_is_of_the_kind_that_its_subject_says() {
        let load = br#"{"rules": "a", "message": "rules.load/1"}"#;
        assert!(fits(load, "load") && !fits(load, "show") && !fits(load, "loa"));
        assert!(fits(br#"{"message": "rules.load/9"}"#, "load"));
        for other in [
            &br#"{"message": "rules.load"}"#[..],
            br#"{"message": "rules.stop/1", "message": "rules.show/1"}"#,
            b"{\"message\": \"rules.show/1\"}\n{\"message\": \"rules.stop/1\"}",
            br#"["rules.show/1"]"#,
            b"",
        ] {
            assert!(!fits(other, "show") && !fits(other, "load"));
        }
        assert_eq!(line(b"{\n}\n"), b"{ } \n");
    }

    #[test]
    fn an_answer_that_comes_byte_by_byte_is_not_waited_for_without_end() {
        let (socket, mut proxy) = UnixStream::pair().unwrap();
        let limit = Duration::from_millis(100);
        let dribble = thread::spawn(move || {
            while proxy.write_all(b"x").is_ok() {
                thread::sleep(Duration::from_millis(5));
            }
        });
        let why = answer(&socket, limit).unwrap_err().to_string();
        assert_eq!(why, "no answer within 0.1 s");
        drop(socket);
        dribble.join().unwrap();
    }

    #[test]
    fn a_proxy_that_says_nothing_or_too_much_is_told_apart() {
        let name = format!("ascar-agent-relay-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let listener = UnixListener::bind(&path).unwrap();
        let said: [&[u8]; 3] = [b"{}\n", b"{}", b""];
        thread::scope(|scope| {
            scope.spawn(|| {
                for words in said {
                    let (mut client, _) = listener.accept().unwrap();
                    let mut asked = String::new();
                    BufReader::new(&client).read_line(&mut asked).unwrap();
                    client.write_all(words).unwrap();
                }
            });
            assert_eq!(ask(&path, b"{}").unwrap(), b"{}");
            for _ in 0..2 {
                let why = ask(&path, b"{}").unwrap_err().to_string();
                assert_eq!(why, "its answer has no end");
            }
        });
        let mut beats = Beats::listen(&path).unwrap();
        let (mut proxy, _) = listener.accept().unwrap();
        proxy.write_all(b"{}\n{").unwrap();
        assert_eq!(beats.take().unwrap(), [b"{}"]);
        proxy.write_all(b"}\n").unwrap();
        assert_eq!(beats.take().unwrap(), [b"{}"]);
        proxy.write_all(&vec![b'x'; BEATS_BYTES_MAX + 1]).unwrap();
        assert!(beats.take().unwrap_err().to_string().contains("more than"));
        drop(proxy);
        std::fs::remove_file(path).unwrap();
    }
}
