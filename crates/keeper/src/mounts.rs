//! What is mounted where, and getting rid of it.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc;
use nix::mount::{MntFlags, umount2};

use crate::fault::{Doing, Result};

/// How long processes that were killed may keep a mount busy.
const BUSY_PATIENCE: Duration = Duration::from_millis(500);

/// One line of /proc/self/mountinfo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountInfo {
    /// `major:minor` of the file system.
    pub device: String,
    /// Where.
    pub mountpoint: PathBuf,
    /// Options of the mount and of the file system.
    pub options: Vec<String>,
    /// What the file system says it is mounted from.
    pub source: String,
}

/// All mounts that this process sees.
pub fn list() -> Result<Vec<MountInfo>> {
    let text =
        std::fs::read_to_string("/proc/self/mountinfo").doing("read /proc/self/mountinfo")?;
    Ok(text.lines().filter_map(parse).collect())
}

/// The topmost mount at a place.
pub fn at(mountpoint: &Path) -> Result<Option<MountInfo>> {
    Ok(list()?
        .into_iter()
        .rfind(|mount| mount.mountpoint == mountpoint))
}

/// Reads a line such as "36 35 98:0 /mnt1 /mnt2 rw,noatime shared:1 - ext3 /dev/root rw,errors=continue" (proc(5)).
pub fn parse(line: &str) -> Option<MountInfo> {
    let (front, back) = line.split_once(" - ")?;
    let front: Vec<&str> = front.split(' ').collect();
    let back: Vec<&str> = back.split(' ').collect();
    let options = front.get(5)?.split(',').chain(back.get(2)?.split(','));
    let mut unique: Vec<String> = Vec::new();
    for option in options {
        if !unique.iter().any(|known| known == option) {
            unique.push(option.to_owned());
        }
    }
    Some(MountInfo {
        device: (*front.get(2)?).to_owned(),
        mountpoint: PathBuf::from(unescape(front.get(4)?)),
        options: unique,
        source: unescape(back.get(1)?),
    })
}

/// The kernel writes blanks and backslashes as three octal digits.
fn unescape(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part
            .get(..3)
            .and_then(|digits| u8::from_str_radix(digits, 8).ok())
        {
            Some(byte) => {
                plain.push(char::from(byte));
                plain.push_str(&part[3..]);
            }
            None => {
                plain.push('\\');
                plain.push_str(part);
            }
        }
    }
    plain
}

/// Stops a scratch file system at once: nothing that is dirty will be written any more. Returns whether it could.
pub fn shut_down(mountpoint: &Path) -> bool {
    // EXT4_IOC_SHUTDOWN, XFS_IOC_GOINGDOWN and others: the same number.
    const GOINGDOWN: libc::c_ulong = 0x8004_587D;
    const NO_LOG_FLUSH: u32 = 2;
    let Ok(root) = File::open(mountpoint) else {
        return false;
    };
    // SAFETY: reads one integer that lives through the call.
    unsafe { libc::ioctl(root.as_raw_fd(), GOINGDOWN, &NO_LOG_FLUSH) == 0 }
}

/// Unmounts; waits a moment for what keeps it busy.
pub fn unmount(mountpoint: &Path) -> nix::Result<()> {
    let started = Instant::now();
    loop {
        match umount2(mountpoint, MntFlags::UMOUNT_NOFOLLOW) {
            Err(Errno::EBUSY) if started.elapsed() < BUSY_PATIENCE => {
                std::thread::sleep(Duration::from_millis(2));
            }
            outcome => return outcome,
        }
    }
}

/// Unmounts; what stays busy is taken out of the tree and goes with its last user. Returns whether it is
/// really gone.
pub fn unmount_surely(mountpoint: &Path) -> Result<bool> {
    match unmount(mountpoint) {
        Ok(()) => Ok(true),
        Err(Errno::EBUSY) => {
            let flags = MntFlags::MNT_DETACH | MntFlags::UMOUNT_NOFOLLOW;
            umount2(mountpoint, flags).doing(format!("detach {}", mountpoint.display()))?;
            Ok(false)
        }
        Err(error) => Err(error).doing(format!("unmount {}", mountpoint.display())),
    }
}
