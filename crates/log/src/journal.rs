//! The journal of systemd, where standard error goes to it: a line becomes an entry with fields.

use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;

const SOCKET: &str = "/run/systemd/journal/socket";
/// A line is said of what went wrong or was lost (syslog(3): warning).
const PRIORITY: u8 = 4;

/// A way into the journal.
#[derive(Debug)]
pub(crate) struct Journal {
    socket: UnixDatagram,
    address: &'static str,
}

impl Journal {
    /// The journal that standard error goes to: `JOURNAL_STREAM` names its device and inode. None where it was
    /// redirected since, or goes to a file or a terminal.
    pub(crate) fn of_standard_error() -> Option<Self> {
        let stream = std::env::var("JOURNAL_STREAM").ok()?;
        let is_its = is_that(&stream, &std::io::stderr()).unwrap_or(false);
        is_its.then(|| Self::at(SOCKET).ok()).flatten()
    }

    fn at(address: &'static str) -> io::Result<Self> {
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket, address })
    }

    /// Sends an entry of the daemon `name`, such as `ascard agent`, whose text is one line.
    ///
    /// # Errors
    /// When the journal does not take it.
    pub(crate) fn send(&self, name: &str, text: &str) -> io::Result<()> {
        let (program, role) = name.split_once(' ').unwrap_or((name, ""));
        let mut entry = String::new();
        let _ = writeln!(entry, "MESSAGE={text}");
        let _ = writeln!(entry, "PRIORITY={PRIORITY}");
        let _ = writeln!(entry, "SYSLOG_IDENTIFIER={program}");
        if !role.is_empty() {
            let _ = writeln!(entry, "ASCAR_ROLE={role}");
        }
        self.socket.send_to(entry.as_bytes(), self.address)?;
        Ok(())
    }
}

/// Whether an open file is the one of this device and inode.
fn is_that(stream: &str, file: &impl AsFd) -> Option<bool> {
    let (device, inode) = stream.split_once(':')?;
    let found = File::from(file.as_fd().try_clone_to_owned().ok()?)
        .metadata()
        .ok()?;
    Some(device.parse() == Ok(found.dev()) && inode.parse() == Ok(found.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_an_entry_with_its_daemon_as_a_field() {
        let folder = std::env::temp_dir().join(format!("ascar-journal-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let path = folder
            .join("socket")
            .into_os_string()
            .into_string()
            .unwrap();
        let socket = UnixDatagram::bind(&path).unwrap();
        let journal = Journal::at(path.leak()).unwrap();
        journal.send("ascard agent", "knobs: are put back").unwrap();
        let mut bytes = [0; 4096];
        let count = socket.recv(&mut bytes).unwrap();
        assert_eq!(
            std::str::from_utf8(&bytes[..count]).unwrap(),
            "MESSAGE=knobs: are put back\nPRIORITY=4\nSYSLOG_IDENTIFIER=ascard\nASCAR_ROLE=agent\n"
        );
        drop(socket);
        assert!(journal.send("ascard", "nobody listens").is_err());
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn only_the_file_of_that_device_and_inode_is_the_journal() {
        let (_reader, writer) = std::io::pipe().unwrap();
        let found = File::from(
            writer
                .try_clone()
                .unwrap()
                .as_fd()
                .try_clone_to_owned()
                .unwrap(),
        )
        .metadata()
        .unwrap();
        let (device, inode) = (found.dev(), found.ino());
        assert_eq!(is_that(&format!("{device}:{inode}"), &writer), Some(true));
        assert_eq!(
            is_that(&format!("{device}:{}", inode + 1), &writer),
            Some(false)
        );
        assert_eq!(is_that("8:words", &writer), Some(false));
        assert_eq!(is_that("8", &writer), None);
    }
}
