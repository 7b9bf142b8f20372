//! Messages between two processes that carry open descriptors.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg};

/// Most descriptors of one message.
const DESCRIPTORS_MAX: usize = 4;

/// Sends a message; the other side gets copies of the descriptors.
pub fn send(socket: &OwnedFd, bytes: &[u8], descriptors: &[RawFd]) -> io::Result<()> {
    let parts = [IoSlice::new(bytes)];
    let rights = [ControlMessage::ScmRights(descriptors)];
    let rights = if descriptors.is_empty() {
        &[][..]
    } else {
        &rights[..]
    };
    let flags = MsgFlags::MSG_NOSIGNAL;
    sendmsg::<()>(socket.as_raw_fd(), &parts, rights, flags, None)?;
    Ok(())
}

/// Receives a message: how many bytes, none where the other side is gone, and the descriptors in it.
pub fn receive(socket: &OwnedFd, bytes: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = cmsg_space!([RawFd; DESCRIPTORS_MAX]);
    let mut parts = [IoSliceMut::new(bytes)];
    let flags = MsgFlags::MSG_CMSG_CLOEXEC;
    let message = loop {
        match recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut space), flags) {
            Err(Errno::EINTR) => {}
            received => break received?,
        }
    };
    let mut descriptors = Vec::new();
    for control in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(numbers) = control {
            // SAFETY: the kernel has just made these for this process, and nobody else owns them.
            let owned = numbers
                .into_iter()
                .map(|it| unsafe { OwnedFd::from_raw_fd(it) });
            descriptors.extend(owned);
        }
    }
    Ok((message.bytes, descriptors))
}
