//! What each process of the node binary gives up when it starts, for good: rights that it needs for nothing are no use
//! to whoever gets it to run code of theirs.
//!
//! In flow order: a [`Role`] says what a process keeps; [`reduce`] gives up the rest, before any thread is started,
//! since most of it is a thread's own.

mod capability;
mod open_files;
mod role;

use std::io;

pub use capability::Capability;
pub use open_files::raise_open_files;
pub use role::{AGENT, DISK, HOLDER, INTERFACE, KEEPER, LOAD, PROXY, Role, STARTER, USERS_KEEPER};

/// No memory becomes executable that was writable, and children decide for themselves (`linux/prctl.h`).
const PR_SET_MDWE: libc::c_int = 65;
const MDWE_REFUSE_EXEC_GAIN: libc::c_ulong = 1;
const MDWE_NO_INHERIT: libc::c_ulong = 2;

/// Being user 0 gives nobody capabilities, neither this process nor a program that it starts (`linux/securebits.h`).
const SECURE_NOROOT: libc::c_ulong = 0b11;
/// None outlives a change of user, and no program inherits any, each locked.
const SECURE_LOCKED: libc::c_ulong = 0b1110_0000;

/// Gives up what `role` does not keep.
///
/// # Errors
/// What the kernel refuses; the process had better not go on then.
pub fn reduce(role: &Role) -> io::Result<()> {
    if let Some(mask) = role.umask {
        // SAFETY: takes and returns an integer.
        unsafe { libc::umask(mask) };
    }
    forbid_dumps()?;
    // Kernels before 6.6 know no such promise, and refuse it.
    let _ = prctl(PR_SET_MDWE, MDWE_REFUSE_EXEC_GAIN | MDWE_NO_INHERIT);
    if let Some(kept) = role.capabilities {
        capability::keep(kept, role.has_privileged_children)?;
    }
    if !role.may_gain {
        prctl(libc::PR_SET_NO_NEW_PRIVS, 1)?;
    }
    Ok(())
}

/// Memory holds passwords and what others measured: it is neither written to a file nor read by other processes.
fn forbid_dumps() -> io::Result<()> {
    let none = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: reads a structure that lives through the call.
    check(unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const none) })?;
    prctl(libc::PR_SET_DUMPABLE, 0)
}

fn prctl(option: libc::c_int, value: libc::c_ulong) -> io::Result<()> {
    const NOTHING: libc::c_ulong = 0;
    // SAFETY: all options of this crate take integers.
    check(unsafe { libc::prctl(option, value, NOTHING, NOTHING, NOTHING) })
}

fn check(returned: libc::c_int) -> io::Result<()> {
    if returned < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
