//! Sockets in the file system, through which the daemons of a machine speak to each other and to their clients.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, socket};

/// Between attempts to reach a server whose queue is full.
const PAUSE: Duration = Duration::from_millis(20);

/// How long a socket that was found is tried out.
const TRIAL_LIMIT: Duration = Duration::from_secs(1);

/// Connects to a server of this machine. One whose queue of connections is full, because it accepts none, has so long.
///
/// # Errors
/// When nobody listens there, it is not allowed, or the server has accepted nobody in that time.
pub fn connect_within(path: &Path, limit: Duration) -> io::Result<UnixStream> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    let place = UnixAddr::new(path)?;
    let until = Instant::now() + limit;
    loop {
        match connect(socket.as_raw_fd(), &place) {
            Ok(()) => break,
            Err(Errno::EINTR) => {}
            Err(Errno::EAGAIN) if Instant::now() < until => thread::sleep(PAUSE),
            Err(Errno::EAGAIN) => {
                let limit_s = limit.as_secs_f64();
                let why = format!("it has accepted nobody for {limit_s} s");
                return Err(io::Error::new(io::ErrorKind::TimedOut, why));
            }
            Err(error) => return Err(error.into()),
        }
    }
    let stream = UnixStream::from(socket);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// Listens on a path. A socket that nobody listens on any more is replaced.
///
/// # Errors
/// When somebody listens there, something else lies there, or a socket may not be tried out.
pub fn listen_at(path: &Path, mode: u32) -> io::Result<UnixListener> {
    let is_socket = path
        .symlink_metadata()
        .is_ok_and(|found| found.file_type().is_socket());
    if is_socket {
        match connect_within(path, TRIAL_LIMIT) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                std::fs::remove_file(path)?;
            }
            Ok(_) => return Err(io::ErrorKind::AddrInUse.into()),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                return Err(io::ErrorKind::AddrInUse.into());
            }
            Err(error) => return Err(error),
        }
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode))?;
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;

    use nix::sys::socket::{Backlog, bind, listen};

    use super::*;

    #[test]
    fn a_server_that_accepts_nobody_is_given_up() {
        let name = format!("ascar-service-queue-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let listener = socket(
            AddressFamily::Unix,
            SockType::Stream,
            SockFlag::SOCK_CLOEXEC,
            None,
        )
        .unwrap();
        bind(listener.as_raw_fd(), &UnixAddr::new(&path).unwrap()).unwrap();
        listen(&listener, Backlog::new(1).unwrap()).unwrap();
        let limit = Duration::from_millis(50);
        let mut queued = Vec::new();
        let why = loop {
            match connect_within(&path, limit) {
                Ok(stream) => queued.push(stream),
                Err(error) => break error.to_string(),
            }
            assert!(queued.len() < 100);
        };
        assert_eq!(why, "it has accepted nobody for 0.05 s");
        drop(listener);
        let gone = connect_within(&path, limit).unwrap_err();
        assert_eq!(gone.kind(), io::ErrorKind::ConnectionRefused);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn what_lies_on_a_path_is_told() {
        let name = format!("ascar-service-address-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir(&folder).unwrap();
        let path = folder.join("socket");
        let kind = || listen_at(&path, 0o600).map_err(|error| error.raw_os_error());
        let left = kind().unwrap();
        let used = listen_at(&path, 0o600).unwrap_err();
        assert_eq!(used.kind(), io::ErrorKind::AddrInUse);
        drop(left);
        drop(kind().unwrap());
        std::fs::remove_file(&path).unwrap();
        // Nobody can connect to it, and nobody knows whose it is.
        let _other = UnixDatagram::bind(&path).unwrap();
        assert_eq!(kind().unwrap_err(), Some(Errno::EPROTOTYPE as i32));
        std::fs::remove_dir_all(folder).unwrap();
    }
}
