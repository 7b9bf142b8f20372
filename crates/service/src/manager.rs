//! What a daemon tells the service manager: that it is ready, that it works, that it ends (sd_notify(3)).
//!
//! A daemon that nobody supervises tells nothing. A message that cannot be sent is lost: the service manager never
//! holds up a daemon, and its own limit (`WatchdogSec=`) decides what silence means.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::{Duration, Instant};

/// Of the watchdog's limit: a message that is late by as much again still comes in time.
const SHARE_OF_LIMIT: u32 = 3;

/// The service manager that started this process, where there is one.
#[derive(Debug, Default)]
pub struct ServiceManager {
    socket: Option<(UnixDatagram, SocketAddr)>,
    every: Option<Duration>,
    told_at: Option<Instant>,
}

impl ServiceManager {
    /// The one that the environment names: `NOTIFY_SOCKET`, and `WATCHDOG_USEC` where it is for this process
    /// (`WATCHDOG_PID`).
    pub fn of_this_process() -> Self {
        let variable = |name: &str| std::env::var_os(name);
        let text = |name: &str| variable(name)?.into_string().ok();
        Self::new(
            variable("NOTIFY_SOCKET").as_deref(),
            text("WATCHDOG_USEC").as_deref(),
            text("WATCHDOG_PID").as_deref(),
        )
    }

    fn new(address: Option<&OsStr>, limit_us: Option<&str>, process: Option<&str>) -> Self {
        let socket = address.and_then(|address| open(address).ok());
        let is_ours = process.is_none_or(|it| it.parse() == Ok(std::process::id()));
        let limit_us = limit_us.filter(|_| is_ours && socket.is_some());
        let limit = limit_us
            .and_then(|it| it.parse().ok())
            .filter(|&it| it > 0)
            .map(Duration::from_micros);
        Self {
            socket,
            every: limit.map(|limit| limit / SHARE_OF_LIMIT),
            told_at: None,
        }
    }

    /// The daemon serves from now on.
    pub fn ready(&self) {
        self.tell("READY=1");
    }

    /// The daemon has begun to end.
    pub fn ending(&self) {
        self.tell("STOPPING=1");
    }

    /// What the daemon does now, for `systemctl status`; only the first line is sent.
    pub fn status(&self, text: &str) {
        let line = text.lines().next().unwrap_or_default();
        self.tell(&format!("STATUS={line}"));
    }

    /// The daemon's loop has come round: told as often as the watchdog needs, however often it is called.
    pub fn works(&mut self) {
        let Some(every) = self.every else { return };
        if self.told_at.is_none_or(|it| it.elapsed() >= every) {
            self.tell("WATCHDOG=1");
            self.told_at = Some(Instant::now());
        }
    }

    /// When the loop has to come round for the watchdog, at the latest; `until` where that is sooner.
    pub fn next_by(&self, until: Instant) -> Instant {
        match self.every {
            Some(every) => until.min(self.told_at.unwrap_or_else(Instant::now) + every),
            None => until,
        }
    }

    fn tell(&self, text: &str) {
        if let Some((socket, address)) = &self.socket {
            let _ = socket.send_to_addr(text.as_bytes(), address);
        }
    }
}

/// A path, or after `@` a name of the kernel's own; looked up for each message, as the manager may make it anew.
fn open(address: &OsStr) -> io::Result<(UnixDatagram, SocketAddr)> {
    let address = match address.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(address)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    Ok((socket, address))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manager(name: &str) -> (UnixDatagram, String) {
        let name = format!("ascar-service-{}-{name}", std::process::id());
        let address = SocketAddr::from_abstract_name(name.as_bytes()).unwrap();
        let socket = UnixDatagram::bind_addr(&address).unwrap();
        socket.set_nonblocking(true).unwrap();
        (socket, format!("@{name}"))
    }

    fn heard(socket: &UnixDatagram) -> Vec<String> {
        let mut heard = Vec::new();
        let mut bytes = [0; 4096];
        while let Ok(count) = socket.recv(&mut bytes) {
            heard.push(String::from_utf8(bytes[..count].to_vec()).unwrap());
        }
        heard
    }

    #[test]
    fn each_message_is_a_datagram_of_its_own() {
        let (socket, address) = manager("messages");
        let told = ServiceManager::new(Some(OsStr::new(&address)), None, None);
        told.ready();
        told.status("connected to a\nREADY=0");
        told.ending();
        assert_eq!(
            heard(&socket),
            ["READY=1", "STATUS=connected to a", "STOPPING=1"]
        );
    }

    #[test]
    fn the_watchdog_hears_a_third_of_its_limit_apart() {
        let (socket, address) = manager("watchdog");
        let own = std::process::id().to_string();
        let mut told = ServiceManager::new(Some(OsStr::new(&address)), Some("300000"), Some(&own));
        let later = Instant::now() + Duration::from_secs(5);
        assert!(told.next_by(later) < Instant::now() + Duration::from_millis(150));
        for _ in 0..100 {
            told.works();
        }
        assert_eq!(heard(&socket), ["WATCHDOG=1"]);
        std::thread::sleep(Duration::from_millis(110));
        told.works();
        assert_eq!(heard(&socket), ["WATCHDOG=1"]);
    }

    #[test]
    fn a_limit_for_another_process_or_none_is_not_ours() {
        let (socket, address) = manager("others");
        for (limit, process) in [
            (Some("300000"), Some("1")),
            (Some("300000"), Some("none")),
            (Some("0"), None),
            (Some("-5"), None),
            (Some("soon"), None),
            (None, None),
        ] {
            let mut told = ServiceManager::new(Some(OsStr::new(&address)), limit, process);
            told.works();
            let until = Instant::now() + Duration::from_secs(5);
            assert_eq!(told.next_by(until), until);
        }
        assert_eq!(heard(&socket), [""; 0]);
    }

    #[test]
    fn without_a_manager_or_with_one_that_is_gone_nothing_happens() {
        let long = "x".repeat(300);
        for address in [
            None,
            Some("/nowhere/at/all"),
            Some(""),
            Some("@"),
            Some(&*long),
        ] {
            let mut told = ServiceManager::new(address.map(OsStr::new), Some("300000"), None);
            told.ready();
            told.works();
            told.ending();
        }
        let (socket, address) = manager("gone");
        let mut told = ServiceManager::new(Some(OsStr::new(&address)), Some("300000"), None);
        drop(socket);
        told.ready();
        told.works();
    }

    #[test]
    fn a_manager_that_reads_nothing_holds_nobody_up() {
        let (_socket, address) = manager("full");
        let told = ServiceManager::new(Some(OsStr::new(&address)), None, None);
        let begun = Instant::now();
        for _ in 0..10_000 {
            told.ready();
        }
        assert!(begun.elapsed() < Duration::from_secs(5));
    }
}
