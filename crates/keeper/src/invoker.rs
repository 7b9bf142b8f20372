//! On whose behalf the keeper works.

use std::os::fd::OwnedFd;

use nix::unistd::{Pid, getppid, getuid};

use crate::program::pidfd;

/// The user and the process that started the keeper, `sudo` looked through.
#[derive(Debug)]
pub struct Invoker {
    /// The invoking user.
    pub uid: u32,
    /// The invoking user's group.
    pub gid: u32,
    /// The client's process; None when it is gone already.
    pub client: Option<Client>,
}

/// The client's process.
#[derive(Debug)]
pub struct Client {
    /// Its number.
    pub pid: Pid,
    /// Readable when it ends.
    pub ended: OwnedFd,
}

impl Invoker {
    /// Finds out who started us. `SUDO_UID` decides, unless the client itself runs as root (a root shell that
    /// was once opened through sudo).
    pub fn discover() -> Self {
        let client = discover_client();
        let environment = |name: &str| {
            std::env::var(name)
                .ok()
                .and_then(|text| text.parse::<u32>().ok())
        };
        let own = getuid().as_raw();
        let client_is_root = client
            .as_ref()
            .is_some_and(|client| Process::read(client.pid).is_some_and(|it| it.uid == 0));
        match (environment("SUDO_UID"), environment("SUDO_GID")) {
            (Some(uid), gid) if own == 0 && !client_is_root => Self {
                uid,
                gid: gid.unwrap_or(uid),
                client,
            },
            _ => Self {
                uid: own,
                gid: nix::unistd::getgid().as_raw(),
                client,
            },
        }
    }

    /// Whether this process belongs to the invoking user or descends from the client.
    pub fn may_limit(&self, pid: Pid) -> bool {
        let Some(process) = Process::read(pid) else {
            return false;
        };
        if self.uid != 0 && process.uid == self.uid {
            return true;
        }
        let Some(client) = self.client.as_ref().map(|client| client.pid) else {
            return false;
        };
        let mut ancestor = process.parent;
        for _ in 0..1000 {
            if ancestor == client {
                return true;
            }
            match Process::read(ancestor) {
                Some(process) if ancestor.as_raw() > 1 => ancestor = process.parent,
                _ => return false,
            }
        }
        false
    }
}

/// The nearest ancestor that is not sudo.
fn discover_client() -> Option<Client> {
    let mut pid = getppid();
    loop {
        if pid.as_raw() <= 1 {
            return None;
        }
        let ended = pidfd(pid.as_raw() as u32).ok()?;
        let process = Process::read(pid)?;
        if !(process.name == "sudo" && process.effective_uid == 0) {
            return Some(Client { pid, ended });
        }
        pid = process.parent;
    }
}

/// What /proc says about a process.
struct Process {
    name: String,
    parent: Pid,
    uid: u32,
    effective_uid: u32,
}

impl Process {
    fn read(pid: Pid) -> Option<Self> {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let field = |name: &str| {
            status
                .lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(':').map(str::trim))
        };
        let mut uids = field("Uid")?.split_whitespace();
        Some(Self {
            name: field("Name")?.to_owned(),
            parent: Pid::from_raw(field("PPid")?.parse().ok()?),
            uid: uids.next()?.parse().ok()?,
            effective_uid: uids.next()?.parse().ok()?,
        })
    }
}
