//! When a block device may be written: the checks before anything is.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::libc;
use nix::sys::stat::{major, minor};

use crate::fault::{Doing, Fault, Kind, Result};
use crate::interrupt::Limit;
use crate::mounts;
use crate::place::check_roots_alone;
use crate::program;

/// The label of every file system we make.
pub const LABEL: &str = "ascar";
/// How the UUID of every file system we make begins: "ascar" in ASCII.
pub const UUID_PREFIX: &str = "61736361-72";

mod ioctl {
    use nix::libc;

    const BLKROGET: libc::c_ulong = 0x125E;

    nix::ioctl_read!(sequence, 0x12, 128, u64); // BLKGETDISKSEQ
    nix::ioctl_read_bad!(read_only, BLKROGET, libc::c_int);
}

/// What tells a block device from another that comes under its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceId {
    /// `major:minor`.
    pub number: String,
    /// The kernel's count of disks and media that came, up to this one; None before Linux 5.15.
    sequence: Option<u64>,
}

impl DeviceId {
    /// That of an open device.
    pub fn of(device: &File) -> Result<Self> {
        let opened = device.metadata().doing("look at a device")?.rdev();
        let mut sequence = 0;
        // SAFETY: the call writes a number, which lives through it.
        let told = unsafe { ioctl::sequence(device.as_raw_fd(), &mut sequence) };
        Ok(Self {
            number: device_number(opened),
            sequence: told.ok().map(|_| sequence),
        })
    }
}

/// A block device that may be written.
#[derive(Debug)]
pub struct Claimed {
    /// Its canonical path.
    pub path: PathBuf,
    /// Which device that is.
    pub id: DeviceId,
    /// Its length.
    pub size_bytes: u64,
}

/// Checks that nobody uses the device and that nothing is on it that anybody could miss.
///
/// # Errors
/// Refused, naming what was found.
pub fn claim(path: &Path, confirmed: bool, limit: &Limit) -> Result<Claimed> {
    let canonical = path
        .canonicalize()
        .map_err(|error| Fault::input(format!("path = {path:?}: {error}: name a block device")))?;
    let metadata = canonical
        .metadata()
        .doing(format!("look at {}", canonical.display()))?;
    if !path.is_absolute()
        || canonical.to_str().is_none()
        || !metadata.file_type().is_block_device()
    {
        return Err(Fault::input(format!(
            "path = {path:?}: is not a block device: name one such as /dev/sdb"
        )));
    }
    if !confirmed {
        return Err(Fault::refused(format!(
            "{path:?} would be overwritten: confirm it explicitly"
        )));
    }
    let directory = canonical.parent().unwrap_or(Path::new("/"));
    check_roots_alone(directory, |it| it.uid() == 0).map_err(|fault| match fault.kind {
        Kind::Refused => Fault::refused(format!(
            "path = {path:?}: {} may be written by others than root: name the device under /dev",
            fault.message
        )),
        _ => fault,
    })?;
    let number = device_number(metadata.rdev());
    let device = check_free(&canonical, &number)?;
    check_writable(&device, &canonical)?;
    check_blank(&device, &canonical, limit)?;
    let size_bytes = size(&device)?;
    Ok(Claimed {
        path: canonical,
        id: DeviceId::of(&device)?,
        size_bytes,
    })
}

/// Still the device that it was, and used by nobody.
pub fn check_unused(path: &Path, id: &DeviceId) -> Result<File> {
    let device = check_free(path, &id.number)?;
    if DeviceId::of(&device)? != *id {
        return Err(Fault::refused(format!(
            "{}: became another device meanwhile",
            path.display()
        )));
    }
    Ok(device)
}

/// Not mounted, not swap, nothing built on top of it, and opened by nobody exclusively.
fn check_free(path: &Path, number: &str) -> Result<File> {
    let refused = |why: String| Err(Fault::refused(format!("{}: {why}", path.display())));
    if let Some(mount) = mounts::list()?
        .into_iter()
        .find(|it| it.device == number || Path::new(&it.source) == path)
    {
        return refused(format!("is mounted at {}", mount.mountpoint.display()));
    }
    let swaps = std::fs::read_to_string("/proc/swaps").unwrap_or_default();
    let is_swap = |line: &str| {
        let named = line.split_whitespace().next().map(Path::new);
        named.is_some_and(|named| {
            named
                .metadata()
                .is_ok_and(|it| device_number(it.rdev()) == number)
        })
    };
    if swaps.lines().skip(1).any(is_swap) {
        return refused("is used as swap".to_owned());
    }
    if let Some(holder) = holders(number).first() {
        return refused(format!("is part of {holder}"));
    }
    let mut options = OpenOptions::new();
    match options
        .read(true)
        .write(true)
        .custom_flags(libc::O_EXCL | libc::O_CLOEXEC)
        .open(path)
    {
        Ok(device) => Ok(device),
        Err(error) if error.raw_os_error() == Some(Errno::EBUSY as i32) => {
            refused("is in use (the kernel refuses exclusive access)".to_owned())
        }
        Err(error) => Err(Fault::failed(format!(
            "cannot open {}: {error}",
            path.display()
        ))),
    }
}

fn device_number(device: u64) -> String {
    format!("{}:{}", major(device), minor(device))
}

/// Devices built on this one or on one of its partitions.
fn holders(number: &str) -> Vec<String> {
    let base = PathBuf::from("/sys/dev/block").join(number);
    let mut places = vec![base.join("holders")];
    for entry in std::fs::read_dir(&base).into_iter().flatten().flatten() {
        if entry.path().join("partition").exists() {
            places.push(entry.path().join("holders"));
        }
    }
    let entries = places
        .iter()
        .filter_map(|place| std::fs::read_dir(place).ok())
        .flatten()
        .flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

/// No signature that blkid knows, or our own. It looks at what is open, whatever `path` leads to by now.
pub fn check_blank(opened: &File, path: &Path, limit: &Limit) -> Result<()> {
    let arguments = ["-p", "-o", "export", "--", program::STDIN];
    let finished = program::run_on(opened, "blkid", &arguments, limit)?;
    let refused = |found: String| {
        Err(Fault::refused(format!(
            "{}: carries {found}: if nobody needs it, remove it with `wipefs -a {}`",
            path.display(),
            path.display()
        )))
    };
    match finished.status.code() {
        // Nothing found.
        Some(2) if finished.stdout.is_empty() => Ok(()),
        Some(0) => {
            let field = |name: &str| {
                finished
                    .stdout
                    .lines()
                    .find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
                    .unwrap_or_default()
            };
            if field("LABEL") == LABEL && field("UUID").starts_with(UUID_PREFIX) {
                return Ok(());
            }
            let found: Vec<String> = ["TYPE", "PTTYPE", "LABEL", "UUID"]
                .iter()
                .filter(|name| !field(name).is_empty())
                .map(|name| format!("{name}={}", field(name)))
                .collect();
            refused(if found.is_empty() {
                finished.stdout.replace('\n', " ")
            } else {
                found.join(" ")
            })
        }
        Some(8) => refused("several signatures".to_owned()),
        _ => Err(finished
            .success("blkid")
            .err()
            .unwrap_or_else(|| Fault::failed("blkid: no answer"))),
    }
}

fn check_writable(device: &File, path: &Path) -> Result<()> {
    let mut is_read_only = 0;
    // SAFETY: the call writes a number, which lives through it.
    unsafe { ioctl::read_only(device.as_raw_fd(), &mut is_read_only) }
        .doing("ask whether a device may be written")?;
    if is_read_only != 0 {
        return Err(Fault::refused(format!(
            "{}: is read-only: name another, or have it written with `blockdev --setrw {}`",
            path.display(),
            path.display()
        )));
    }
    Ok(())
}

fn size(device: &File) -> Result<u64> {
    use std::io::{Seek, SeekFrom};
    let mut device = device;
    device.seek(SeekFrom::End(0)).doing("measure the device")
}
