//! A connection to the server, made again when it is lost. There are two: nodes' data may come in floods, and what
//! people and the learner want does not stand behind them.

use std::time::{Duration, Instant};

use ascar_messaging::file::ConfigFile;
use ascar_messaging::{Fault, Link, Message};

use crate::LOG;
use crate::config::Config;

/// Between attempts to connect.
const PAUSE: Duration = Duration::from_millis(500);
/// What the server takes where it was never asked.
const PAYLOAD_BYTES: usize = 1 << 20;

/// One of them.
#[derive(Debug)]
pub(super) struct Channel {
    name: &'static str,
    subjects: &'static [&'static str],
    link: Option<Link>,
    retry_at: Instant,
    last_error: String,
    payload_bytes_max: usize,
}

impl Channel {
    /// Of that name for the server's log; listens to these subjects of the session.
    pub(super) fn new(name: &'static str, subjects: &'static [&'static str]) -> Self {
        Self {
            name,
            subjects,
            link: None,
            retry_at: Instant::now(),
            last_error: String::new(),
            payload_bytes_max: PAYLOAD_BYTES,
        }
    }

    /// The connection, while there is one.
    pub(super) fn link(&self) -> Option<&Link> {
        self.link.as_ref()
    }

    /// The longest payload that the server takes.
    pub(super) fn payload_bytes_max(&self) -> usize {
        self.payload_bytes_max
    }

    /// Connects where that is due. Returns whether there is a new connection.
    pub(super) fn connect(&mut self, config: &Config, prefix: &str) -> bool {
        if self.link.is_some() || Instant::now() < self.retry_at {
            return false;
        }
        let connected = config
            .options()
            .and_then(|options| Link::connect(&options, self.name));
        match connected {
            Ok(mut link) => {
                for subject in self.subjects {
                    link.subscribe(&format!("{prefix}.{subject}"));
                }
                self.payload_bytes_max = link.payload_bytes_max();
                self.link = Some(link);
                self.last_error.clear();
                true
            }
            Err(fault) => {
                self.lose(&fault);
                false
            }
        }
    }

    /// What has come, after what waits was sent.
    pub(super) fn receive(&mut self) -> Option<Message> {
        match self.link.as_mut()?.receive(Instant::now()) {
            Ok(message) => message,
            Err(fault) => {
                self.lose(&fault);
                None
            }
        }
    }

    /// What is longer than the server takes is not sent: it would end the connection.
    pub(super) fn send(&mut self, subject: &str, payload: &[u8]) {
        let Some(link) = &mut self.link else {
            return;
        };
        if payload.len() > link.payload_bytes_max() {
            LOG.line(format_args!(
                "{subject}: a message of {} bytes is not sent",
                payload.len()
            ));
            return;
        }
        link.publish(subject, None, payload);
    }

    /// Sends what waits, for at most this long.
    pub(super) fn flush(&mut self, patience: Duration) {
        if let Some(Err(fault)) = self.link.as_mut().map(|link| link.flush(patience)) {
            self.lose(&fault);
        }
    }

    fn lose(&mut self, fault: &Fault) {
        // Once, not twice a second.
        if self.last_error != fault.0 {
            LOG.line(format_args!("{fault}"));
            self.last_error.clone_from(&fault.0);
        }
        self.link = None;
        self.retry_at = Instant::now() + PAUSE;
    }
}
