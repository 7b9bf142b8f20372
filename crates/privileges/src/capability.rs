//! Capabilities: parts of root's power (capabilities(7)).

use std::io;

use crate::{SECURE_LOCKED, SECURE_NOROOT, check, prctl};

/// A part of root's power, by its number in `linux/capability.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Capability {
    /// Give files away.
    Chown = 0,
    /// Read and write any file.
    DacOverride = 1,
    /// Read any file, search any directory.
    DacReadSearch = 2,
    /// Do what only a file's owner may.
    Fowner = 3,
    /// Send signals to anybody's processes.
    Kill = 5,
    /// Set up the network.
    NetAdmin = 12,
    /// Look into anybody's processes.
    SysPtrace = 19,
    /// Mount, set up devices, and much else.
    SysAdmin = 21,
    /// Go beyond limits.
    SysResource = 24,
    /// Read the kernel's messages.
    Syslog = 34,
}

/// Change one's own capabilities: needed to give up the bounding set.
const SETPCAP: u32 = 8;
const VERSION_3: u32 = 0x2008_0522;

#[repr(C)]
struct Header {
    version: u32,
    pid: i32,
}

/// 64 capabilities in two words.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Word {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Keeps those that are both wanted and there; nothing gives the others back.
pub(crate) fn keep(wanted: &[Capability], has_privileged_children: bool) -> io::Result<()> {
    let permitted = permitted()?;
    let wanted = wanted.iter().fold(0_u64, |set, it| set | 1 << *it as u32);
    if permitted >> SETPCAP & 1 == 1 {
        let bits = if has_privileged_children {
            SECURE_LOCKED
        } else {
            SECURE_LOCKED | SECURE_NOROOT
        };
        set_securebits(bits)?;
        drop_from_bounds(wanted)?;
    }
    prctl_ambient_clear()?;
    set(wanted & permitted)
}

/// Sets the flags of capabilities(7) and reads them back: in a container, or under a filter of system calls, the kernel's
/// word that it is done may be somebody else's.
fn set_securebits(bits: libc::c_ulong) -> io::Result<()> {
    const NOTHING: libc::c_ulong = 0;
    prctl(libc::PR_SET_SECUREBITS, bits)?;
    // SAFETY: takes and returns integers.
    let found = unsafe { libc::prctl(libc::PR_GET_SECUREBITS, NOTHING, NOTHING, NOTHING, NOTHING) };
    check(found)?;
    if found as libc::c_ulong != bits {
        return Err(io::Error::other(format!(
            "securebits = {found:#x}: must be {bits:#x}, as it was set"
        )));
    }
    Ok(())
}

/// No program that is started gets what is not wanted.
fn drop_from_bounds(wanted: u64) -> io::Result<()> {
    for number in 0..64_u32 {
        // SAFETY: takes integers.
        let is_there = unsafe { libc::prctl(libc::PR_CAPBSET_READ, libc::c_ulong::from(number)) };
        if is_there == 1 && wanted >> number & 1 == 0 {
            prctl(libc::PR_CAPBSET_DROP, number.into())?;
        }
    }
    Ok(())
}

fn prctl_ambient_clear() -> io::Result<()> {
    prctl(
        libc::PR_CAP_AMBIENT,
        libc::PR_CAP_AMBIENT_CLEAR_ALL as libc::c_ulong,
    )
}

fn permitted() -> io::Result<u64> {
    let mut header = Header {
        version: VERSION_3,
        pid: 0,
    };
    let mut words = [Word::default(); 2];
    // SAFETY: the kernel fills two words of its own layout, which this version of the header announces.
    check(
        unsafe { libc::syscall(libc::SYS_capget, &raw mut header, &raw mut words) } as libc::c_int,
    )?;
    Ok(u64::from(words[0].permitted) | u64::from(words[1].permitted) << 32)
}

fn set(kept: u64) -> io::Result<()> {
    let header = Header {
        version: VERSION_3,
        pid: 0,
    };
    let word = |kept: u64| Word {
        effective: kept as u32,
        permitted: kept as u32,
        inheritable: 0,
    };
    let words = [word(kept), word(kept >> 32)];
    // SAFETY: the kernel reads two words of its own layout, which this version of the header announces.
    check(
        unsafe { libc::syscall(libc::SYS_capset, &raw const header, &raw const words) }
            as libc::c_int,
    )
}
