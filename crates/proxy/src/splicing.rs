//! Long payloads pass through a pipe of the kernel's, page by page, without being copied into this process and out again.

use std::os::fd::{AsFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::{OFlag, SpliceFFlags, splice};
use nix::unistd::pipe2;

use crate::connection::End;
use crate::side::Side;

/// Payloads of which so much is still to come are spliced; for shorter ones two more system calls cost more than a copy.
pub const LENGTH_BYTES_MIN: usize = 32 << 10;

/// What is read behind a spliced payload: the header of the next one, and little else.
pub const SHORT_BYTES: usize = 512;

/// What a pipe holds, and so what passes at once.
const PIPE_BYTES: usize = 64 << 10;

/// The pipe of one direction of a connection.
#[derive(Debug, Default)]
pub struct Splicing {
    /// Made when it is first needed.
    ends: Option<(OwnedFd, OwnedFd)>,
}

impl Splicing {
    /// Passes on so many bytes from one side to the other; false where one is inside TLS or no pipe is to be had, and
    /// nothing was passed.
    /// `on_piece` is called with how many are still to come, before the other side has the last of those that have, and
    /// `on_taken` when it has them; `on_wait` where one says or the other takes nothing for as long as that may wait.
    ///
    /// # Errors
    /// When one side is gone before that.
    pub fn pass(
        &mut self,
        (from, to): (&Side, &Side),
        count: usize,
        mut on_piece: impl FnMut(usize),
        mut on_taken: impl FnMut(usize),
        mut on_wait: impl FnMut() -> Result<(), End>,
    ) -> Result<bool, End> {
        let (Some(from), Some(to)) = (from.clear(), to.clear()) else {
            return Ok(false);
        };
        if self.ends.is_none() {
            self.ends = pipe2(OFlag::O_CLOEXEC).ok();
        }
        let Some((out, into)) = &self.ends else {
            return Ok(false);
        };
        let mut left = count;
        while left > 0 {
            let mut held = moved(from, into, left.min(PIPE_BYTES), &mut on_wait)?;
            left -= held;
            on_piece(left);
            while held > 0 {
                held -= moved(out, to, held, &mut on_wait)?;
            }
            on_taken(left);
        }
        Ok(true)
    }
}

/// Moves at most so many bytes, at least one.
fn moved(
    from: &impl AsFd,
    to: &impl AsFd,
    count: usize,
    on_wait: &mut impl FnMut() -> Result<(), End>,
) -> Result<usize, End> {
    loop {
        match splice(from, None, to, None, count, SpliceFFlags::SPLICE_F_MOVE) {
            Err(Errno::EINTR) => {}
            Err(Errno::EAGAIN) => on_wait()?,
            Ok(0) => return Err(End::Closed),
            other => return other.map_err(gone),
        }
    }
}

fn gone(errno: Errno) -> End {
    std::io::Error::from(errno).into()
}
