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
    /// Whether sudo started us for somebody who is not root.
    pub through_sudo: bool,
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
    /// Finds out who started us. `SUDO_UID` decides where sudo is our parent, and elsewhere unless the client itself
    /// runs as root (a root shell that was once opened through sudo).
    pub fn discover() -> Self {
        let (client, is_sudos) = discover_client();
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
            (Some(uid), gid) if own == 0 && (is_sudos || !client_is_root) => Self {
                uid,
                gid: gid.unwrap_or(uid),
                client,
                through_sudo: uid != 0 && (is_sudos || std::env::var_os("SUDO_COMMAND").is_some()),
            },
            _ => Self {
                uid: own,
                gid: nix::unistd::getgid().as_raw(),
                client,
                through_sudo: false,
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

/// The nearest ancestor that is not sudo, and whether sudo is between it and us.
fn discover_client() -> (Option<Client>, bool) {
    let mut pid = getppid();
    let mut is_sudos = false;
    while pid.as_raw() > 1 {
        let (Ok(ended), Some(process)) = (pidfd(pid.as_raw() as u32), Process::read(pid)) else {
            break;
        };
        if !(process.name == "sudo" && process.effective_uid == 0) {
            return (Some(Client { pid, ended }), is_sudos);
        }
        is_sudos = true;
        pid = process.parent;
    }
    (None, is_sudos)
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
