//! A child process that answers a line of JSON with a line of JSON. It works under the agent's lease: a holder stands
//! before it and ends its input when the lease has run out.

use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde_json::Value;

use crate::lease::{Lease, holder};
use crate::running::Running;
use crate::starter::{self, Words};

/// Longest answer.
const LINE_BYTES_MAX: usize = 1 << 20;

/// A running child.
#[derive(Debug)]
pub struct Pipe {
    running: Running,
    pending: Vec<u8>,
}

impl Pipe {
    /// Starts it, out of reach of the terminal's signals: it ends when its input does.
    pub fn start(command: &[String], lease: &Lease) -> std::io::Result<Self> {
        let command = command.to_vec();
        let is_asked = true;
        Ok(Self {
            running: starter::start(&Words { command, is_asked }, Some(lease))?,
            pending: Vec::new(),
        })
    }

    /// Whether it still runs.
    pub fn alive(&mut self) -> bool {
        self.running.alive()
    }

    /// Sends a line and waits for the answer.
    pub fn ask(&mut self, request: &Value, patience: Duration) -> Result<Value, String> {
        let mut line = request.to_string();
        line.push('\n');
        let stdin = self.running.stdin.as_mut().ok_or("has been closed")?;
        stdin
            .write_all(line.as_bytes())
            .and_then(|()| stdin.flush())
            .map_err(|error| format!("is gone: {error}"))?;
        let answer = self.line(Instant::now() + patience)?;
        serde_json::from_slice(&answer).map_err(|error| format!("answers no JSON: {error}"))
    }

    fn line(&mut self, deadline: Instant) -> Result<Vec<u8>, String> {
        loop {
            if let Some(end) = self.pending.iter().position(|byte| *byte == b'\n') {
                let rest = self.pending.split_off(end + 1);
                return Ok(std::mem::replace(&mut self.pending, rest));
            }
            if self.pending.len() > LINE_BYTES_MAX {
                return Err(format!("answers more than {LINE_BYTES_MAX} bytes"));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err("does not answer in time".to_owned());
            }
            let timeout = PollTimeout::try_from(left.as_millis().min(60_000) as i32 + 1)
                .unwrap_or(PollTimeout::MAX);
            match poll(
                &mut [PollFd::new(self.running.stdout.as_fd(), PollFlags::POLLIN)],
                timeout,
            ) {
                Ok(0) | Err(nix::Error::EINTR) => continue,
                Ok(_) => {}
                Err(error) => return Err(format!("cannot be waited for: {error}")),
            }
            let mut piece = [0; 4096];
            match self.running.stdout.read(&mut piece) {
                Ok(0) | Err(_) => return Err("has ended".to_owned()),
                Ok(count) => self.pending.extend_from_slice(&piece[..count]),
            }
        }
    }

    /// Closes its input and waits; kills it when it does not end.
    pub fn end(&mut self, patience: Duration) {
        self.running.stdin = None;
        let started = Instant::now();
        while self.alive() {
            if started.elapsed() > patience {
                return self.running.kill();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        self.end(holder::GRACE + Duration::from_secs(2));
    }
}
