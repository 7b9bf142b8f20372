//! Long payloads pass through a pipe of the kernel's, page by page, without being copied into this process and out again.

use std::os::fd::{AsFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::{OFlag, SpliceFFlags, splice};
use nix::unistd::{pipe2, read};

use crate::connection::End;
use crate::side::Side;

/// Payloads of which so much is still to come are spliced; for shorter ones two more system calls cost more than a copy.
pub const LENGTH_BYTES_MIN: usize = 32 << 10;

/// What is read behind a spliced payload: the header of the next one, and little else.
pub const SHORT_BYTES: usize = 512;

/// What a pipe holds, and so what passes at once.
const PIPE_BYTES: usize = 64 << 10;

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// The one side, to say more.
    ForMore,
    /// The other, to take what there is.
    ForRoom,
}

/// What came of passing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Passed {
    /// Nothing was passed.
    Nothing,
    /// All of it was.
    All,
    /// There was to be no more waiting.
    Some {
        /// How many bytes are still to come.
        left: usize,
        /// Those that have come and were not taken.
        untaken: Vec<u8>,
    },
}

/// The pipe of one direction of a connection.
#[derive(Debug, Default)]
pub struct Splicing {
    /// Made when it is first needed.
    ends: Option<(OwnedFd, OwnedFd)>,
}

impl Splicing {
    /// Passes on so many bytes from one side to the other, unless one is inside TLS or no pipe is to be had.
    /// `on_piece` is called with how many are still to come, before the other side has the last of those that have, and
    /// `on_taken` when it has them; `on_wait` where one says or the other takes nothing for as long as that may wait: it
    /// says whether to wait on.
    ///
    /// # Errors
    /// When one side is gone before that.
    pub fn pass(
        &mut self,
        (from, to): (&Side, &Side),
        count: usize,
        mut on_piece: impl FnMut(usize),
        mut on_taken: impl FnMut(usize),
        mut on_wait: impl FnMut(Waits) -> Result<bool, End>,
    ) -> Result<Passed, End> {
        let (Some(from), Some(to)) = (from.clear(), to.clear()) else {
            return Ok(Passed::Nothing);
        };
        if self.ends.is_none() {
            self.ends = pipe2(OFlag::O_CLOEXEC).ok();
        }
        let Some((out, into)) = &self.ends else {
            return Ok(Passed::Nothing);
        };
        let mut left = count;
        while left > 0 {
            let mut held = moved(from, into, left.min(PIPE_BYTES), || on_wait(Waits::ForMore))?;
            if held == 0 {
                let untaken = Vec::new();
                return Ok(Passed::Some { left, untaken });
            }
            left -= held;
            on_piece(left);
            while held > 0 {
                let count = moved(out, to, held, || on_wait(Waits::ForRoom))?;
                if count == 0 {
                    let untaken = taken_out(out, held)?;
                    return Ok(Passed::Some { left, untaken });
                }
                held -= count;
            }
            on_taken(left);
        }
        Ok(Passed::All)
    }
}

/// Moves at most so many bytes; none where there is to be no more waiting.
fn moved(
    from: &impl AsFd,
    to: &impl AsFd,
    count: usize,
    mut on_wait: impl FnMut() -> Result<bool, End>,
) -> Result<usize, End> {
    loop {
        match splice(from, None, to, None, count, SpliceFFlags::SPLICE_F_MOVE) {
            Err(Errno::EINTR) => {}
            Err(Errno::EAGAIN) if on_wait()? => {}
            Err(Errno::EAGAIN) => return Ok(0),
            Ok(0) => return Err(End::Closed),
            other => return other.map_err(gone),
        }
    }
}

/// Takes out of a pipe what it holds.
fn taken_out(out: &OwnedFd, count: usize) -> Result<Vec<u8>, End> {
    let (mut bytes, mut at) = (vec![0; count], 0);
    while at < count {
        match read(out, &mut bytes[at..]) {
            Err(Errno::EINTR) => {}
            Ok(0) => return Err(End::Closed),
            taken => at += taken.map_err(gone)?,
        }
    }
    Ok(bytes)
}

fn gone(errno: Errno) -> End {
    std::io::Error::from(errno).into()
}
