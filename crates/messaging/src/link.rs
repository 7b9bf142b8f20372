//! A connection: greets, subscribes, publishes, waits for messages.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use ascar_credentials::Credentials;
use ascar_log::Log;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde::Deserialize;
use serde_json::json;

use crate::protocol::{Event, Message, Parser};
use crate::stream::Stream;
use crate::{Fault, Options};

/// Most bytes that wait to be sent: a server that takes nothing is given up.
const WAITING_BYTES_MAX: usize = 64 << 20;
/// Who a caller without a user is, in subjects.
const ANYONE: &str = "anyone";
/// How long greeting and login may take.
const PATIENCE: Duration = Duration::from_secs(3);
/// How often we ask whether the server is there.
const PING_EVERY: Duration = Duration::from_secs(5);
/// After so long without a word from it the server is taken for gone.
const SILENCE_MAX: Duration = Duration::from_secs(12);

#[derive(Debug, Deserialize)]
struct Info {
    #[serde(default)]
    tls_required: bool,
    #[serde(default)]
    tls_available: bool,
    #[serde(default)]
    max_payload: usize,
    #[serde(default)]
    nonce: String,
}

/// A connection that has logged in.
#[derive(Debug)]
pub struct Link {
    stream: Stream,
    parser: Parser,
    waiting: Vec<u8>,
    sent: usize,
    subscriptions: u32,
    payload_bytes_max: usize,
    heard: Instant,
    asked: Instant,
    inbox: String,
    requests: u64,
}

impl Link {
    /// Connects and logs in.
    ///
    /// # Errors
    /// When the server is not there, is not trusted, or does not trust us.
    pub fn connect(options: &Options, name: &str) -> Result<Self, Fault> {
        let (host, port) = options.address()?;
        let stream = Stream::connect(&host, port, PATIENCE)?;
        let now = Instant::now();
        let mut link = Self {
            stream,
            parser: Parser::default(),
            waiting: Vec::new(),
            sent: 0,
            subscriptions: 0,
            payload_bytes_max: 1 << 20,
            heard: now,
            asked: now,
            inbox: inbox(options.user.as_deref(), name),
            requests: 0,
        };
        let deadline = now + PATIENCE;
        let info = match link.event(deadline)? {
            Some(Event::Info(text)) => text,
            Some(Event::Error(error)) => {
                return Err(Fault(format!("the server says: {error}")));
            }
            Some(_) | None => {
                return Err(Fault(format!("{host}:{port}: does not greet: is it NATS?")));
            }
        };
        let info: Info = serde_json::from_str(&info)
            .map_err(|error| Fault(format!("the server's greeting is not JSON: {error}")))?;
        if info.max_payload > 0 {
            link.payload_bytes_max = info.max_payload;
        }
        let wants_tls = options.is_encrypted();
        if wants_tls && !info.tls_required && !info.tls_available {
            return Err(Fault(format!(
                "url = {:?}: the server does not speak TLS",
                options.url
            )));
        }
        if wants_tls || info.tls_required {
            // What was sent in clear would be read as if it had come inside TLS: anybody in between could write it.
            if !link.parser.is_empty() {
                return Err(Fault(format!(
                    "{host}:{port}: sends bytes in clear behind its greeting, before TLS begins: somebody in between \
                     may have added them; check the way to the server"
                )));
            }
            link.stream.encrypt(options, &host)?;
        }
        // Read at each connection: a token ends, and another takes its place.
        let signed = match &options.credentials {
            None => None,
            Some(path) => Some(
                Credentials::read(path)
                    .and_then(|user| user.login(&info.nonce))
                    .map_err(Fault)?,
            ),
        };
        let mut login = json!({
            "verbose": false, "pedantic": false, "lang": "rust", "version": env!("CARGO_PKG_VERSION"),
            "protocol": 1, "headers": false, "no_responders": false, "echo": false, "name": name,
            "user": options.user, "pass": options.password, "auth_token": options.token, "tls_required": wants_tls,
        });
        if let Some(signed) = signed {
            login["jwt"] = json!(signed.token);
            login["sig"] = json!(signed.signature);
        }
        link.queue(format!("CONNECT {login}\r\nPING\r\n").as_bytes());
        loop {
            match link.event(deadline)? {
                Some(Event::Pong) => return Ok(link),
                Some(Event::Error(error)) => {
                    return Err(Fault(format!(
                        "the server says: {error}: check user and password, or credentials"
                    )));
                }
                Some(_) => {}
                None => return Err(Fault(format!("{host}:{port}: does not answer the login"))),
            }
        }
    }

    /// For poll, beside other descriptors.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.stream.descriptor()
    }

    /// Whether something waits to be sent.
    pub fn wants_write(&self) -> bool {
        !self.waiting.is_empty() || self.stream.wants_write()
    }

    /// The longest payload that the server takes.
    pub fn payload_bytes_max(&self) -> usize {
        self.payload_bytes_max
    }

    /// Messages on `subject` come from now on.
    pub fn subscribe(&mut self, subject: &str) {
        self.subscriptions += 1;
        self.queue(format!("SUB {subject} {}\r\n", self.subscriptions).as_bytes());
    }

    /// Sends a message; it leaves with the next [`Self::receive`] or [`Self::flush`].
    pub fn publish(&mut self, subject: &str, reply: Option<&str>, payload: &[u8]) {
        debug_assert!(payload.len() <= self.payload_bytes_max);
        let reply = reply.map(|it| format!("{it} ")).unwrap_or_default();
        self.queue(format!("PUB {subject} {reply}{}\r\n", payload.len()).as_bytes());
        self.waiting.extend_from_slice(payload);
        self.waiting.extend_from_slice(b"\r\n");
    }

    /// Sends a message and waits for one reply; what else comes meanwhile is lost. For tools, not for loops.
    ///
    /// # Errors
    /// When the connection breaks.
    pub fn request(
        &mut self,
        subject: &str,
        payload: &[u8],
        patience: Duration,
    ) -> Result<Option<Message>, Fault> {
        if self.requests == 0 {
            let inbox = format!("{}.*", self.inbox);
            self.subscribe(&inbox);
        }
        self.requests += 1;
        let reply = format!("{}.{}", self.inbox, self.requests);
        self.publish(subject, Some(&reply), payload);
        let deadline = Instant::now() + patience;
        loop {
            match self.receive(deadline)? {
                Some(message) if message.subject == reply => return Ok(Some(message)),
                Some(_) => {}
                None => return Ok(None),
            }
        }
    }

    /// The next message, or None at the deadline.
    ///
    /// # Errors
    /// When the connection breaks or the server has been silent for too long.
    pub fn receive(&mut self, deadline: Instant) -> Result<Option<Message>, Fault> {
        loop {
            match self.event(deadline)? {
                None => return Ok(None),
                Some(Event::Message(message)) => return Ok(Some(message)),
                // Such as a subject that we may not use: said, and lived with.
                Some(Event::Error(error)) if error.to_lowercase().contains("permissions") => {
                    Log::of("ascard").line(format_args!("the server says: {error}"));
                }
                Some(Event::Error(error)) => {
                    return Err(Fault(format!("the server says: {error}")));
                }
                Some(_) => {}
            }
        }
    }

    /// Sends what waits, for at most this long. Returns whether all is gone.
    ///
    /// # Errors
    /// When the connection breaks.
    pub fn flush(&mut self, patience: Duration) -> Result<bool, Fault> {
        let deadline = Instant::now() + patience;
        loop {
            self.send()?;
            if !self.wants_write() {
                return Ok(true);
            }
            let now = Instant::now();
            if now >= deadline {
                return Ok(false);
            }
            let mut watched = [PollFd::new(self.stream.descriptor(), PollFlags::POLLOUT)];
            let _ = poll(&mut watched, timeout(deadline - now));
        }
    }

    fn queue(&mut self, bytes: &[u8]) {
        self.waiting.extend_from_slice(bytes);
    }

    /// The next event; pings are answered here.
    fn event(&mut self, deadline: Instant) -> Result<Option<Event>, Fault> {
        loop {
            match self.parser.event()? {
                Some(Event::Ping) => self.queue(b"PONG\r\n"),
                Some(event) => return Ok(Some(event)),
                None => {}
            }
            self.keep_alive()?;
            self.send()?;
            if self.waiting.len() - self.sent > WAITING_BYTES_MAX {
                return Err(Fault("the server takes no messages".to_owned()));
            }
            let parser = &mut self.parser;
            if self.stream.read(|bytes| parser.feed(bytes))? {
                self.heard = Instant::now();
                continue;
            }
            let now = Instant::now();
            if now >= deadline {
                return Ok(None);
            }
            let mut flags = PollFlags::POLLIN;
            if self.wants_write() {
                flags |= PollFlags::POLLOUT;
            }
            let mut watched = [PollFd::new(self.stream.descriptor(), flags)];
            let wait = (deadline - now).min(PING_EVERY);
            match poll(&mut watched, timeout(wait)) {
                // A signal: the caller looks what it was.
                Err(nix::Error::EINTR) => return Ok(None),
                Err(error) => return Err(Fault(format!("poll: {error}"))),
                Ok(_) => {}
            }
        }
    }

    fn keep_alive(&mut self) -> Result<(), Fault> {
        let now = Instant::now();
        if now.duration_since(self.heard) > SILENCE_MAX {
            return Err(Fault("the server has been silent for too long".to_owned()));
        }
        if now.duration_since(self.asked) > PING_EVERY {
            self.asked = now;
            self.queue(b"PING\r\n");
        }
        Ok(())
    }

    fn send(&mut self) -> Result<(), Fault> {
        loop {
            let taken = self.stream.write(&self.waiting[self.sent..])?;
            self.sent += taken;
            if self.sent == self.waiting.len() {
                self.waiting.clear();
                self.sent = 0;
                self.waiting.shrink_to(1 << 16);
                return Ok(());
            }
            if taken == 0 {
                if self.sent > 1 << 20 {
                    self.waiting.drain(..self.sent);
                    self.sent = 0;
                }
                return Ok(());
            }
        }
    }
}

fn timeout(duration: Duration) -> PollTimeout {
    // Rounded up, so that no deadline is polled for in vain.
    let milliseconds = duration.as_micros().div_ceil(1000).min(60_000);
    PollTimeout::try_from(milliseconds as i32).unwrap_or(PollTimeout::MAX)
}

/// A subject that nobody else listens to, among those that the server leaves to this user.
fn inbox(user: Option<&str>, name: &str) -> String {
    use std::hash::{BuildHasher, Hasher};
    let mut hasher = std::collections::hash_map::RandomState::new().build_hasher();
    hasher.write(name.as_bytes());
    hasher.write_u32(std::process::id());
    format!("_INBOX.{}.{:016x}", user.unwrap_or(ANYONE), hasher.finish())
}
