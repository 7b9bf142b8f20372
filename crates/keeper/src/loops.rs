//! Loop devices, by the kernel's own interface.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc;

use crate::fault::{Doing, Fault, Result};
use crate::file_id::FileId;

/// Names of loop devices that others may grab first.
const ATTEMPTS: usize = 64;
/// How long a detached device may take to let go of its file.
const DETACH_PATIENCE: Duration = Duration::from_millis(500);
const LO_FLAGS_DIRECT_IO: u32 = 16;

/// `struct loop_info64` of linux/loop.h.
#[repr(C)]
#[derive(Clone, Copy)]
struct LoopInfo {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    sizelimit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

/// `struct loop_config` of linux/loop.h.
#[repr(C)]
struct LoopConfig {
    fd: u32,
    block_size: u32,
    info: LoopInfo,
    reserved: [u64; 8],
}

mod ioctl {
    use super::{LoopConfig, LoopInfo};
    use nix::libc;

    const LOOP_CLR_FD: libc::c_ulong = 0x4C01;
    const LOOP_GET_STATUS64: libc::c_ulong = 0x4C05;
    const LOOP_CONFIGURE: libc::c_ulong = 0x4C0A;
    const LOOP_CTL_GET_FREE: libc::c_ulong = 0x4C82;
    const BLKROSET: libc::c_ulong = 0x125D;
    const BLKFLSBUF: libc::c_ulong = 0x1261;

    nix::ioctl_none_bad!(clear, LOOP_CLR_FD);
    nix::ioctl_read_bad!(status, LOOP_GET_STATUS64, LoopInfo);
    nix::ioctl_write_ptr_bad!(configure, LOOP_CONFIGURE, LoopConfig);
    nix::ioctl_none_bad!(get_free, LOOP_CTL_GET_FREE);
    nix::ioctl_write_ptr_bad!(set_read_only, BLKROSET, libc::c_int);
    nix::ioctl_none_bad!(flush_buffers, BLKFLSBUF);
}

/// Attaches an open image to a free loop device and returns the device's path.
pub fn attach(image: &File, direct_io: bool) -> Result<PathBuf> {
    let control = open("/dev/loop-control".as_ref())
        .doing("open /dev/loop-control (is the loop module loaded?)")?;
    for _ in 0..ATTEMPTS {
        // SAFETY: takes no argument.
        let number =
            unsafe { ioctl::get_free(control.as_raw_fd()) }.doing("get a free loop device")?;
        let path = PathBuf::from(format!("/dev/loop{number}"));
        let device = open(&path).doing(format!("open {}", path.display()))?;
        match configure(&device, image, direct_io) {
            Ok(()) => return Ok(path),
            // Somebody else was faster.
            Err(Errno::EBUSY) => {}
            Err(error) => {
                return Err(Fault::failed(format!(
                    "cannot attach to {}: {error}",
                    path.display()
                )));
            }
        }
    }
    Err(Fault::failed(format!(
        "cannot get a loop device: others took {ATTEMPTS} of them first"
    )))
}

fn configure(device: &File, image: &File, direct_io: bool) -> nix::Result<()> {
    // SAFETY: all-zero bytes are a valid value of this plain structure.
    let mut config: LoopConfig = unsafe { std::mem::zeroed() };
    config.fd = image.as_raw_fd() as u32;
    config.info.flags = if direct_io { LO_FLAGS_DIRECT_IO } else { 0 };
    // SAFETY: the structure is the kernel's and lives through the call.
    unsafe { ioctl::configure(device.as_raw_fd(), &config) }?;
    // A device that somebody has made read-only (`blockdev --setro`) stays so for the next file.
    // SAFETY: the kernel reads one number, which lives through the call.
    unsafe { ioctl::set_read_only(device.as_raw_fd(), &0) }.map(|_| ())
}

/// Whether the kernel really goes past the page cache of the image's file system.
pub fn is_direct(device: &Path) -> bool {
    let name = device.file_name().unwrap_or_default();
    let flag = Path::new("/sys/block").join(name).join("loop/dio");
    std::fs::read_to_string(flag).is_ok_and(|text| text.trim() == "1")
}

/// Loop devices whose backing file is this one, whatever path it had.
pub fn backed_by(file: &FileId) -> Vec<PathBuf> {
    let entries = std::fs::read_dir("/sys/block")
        .into_iter()
        .flatten()
        .flatten();
    let names = entries
        .map(|entry| entry.file_name())
        .filter(|name| name.to_string_lossy().starts_with("loop"));
    names
        .filter(|name| {
            Path::new("/sys/block")
                .join(name)
                .join("loop/backing_file")
                .exists()
        })
        .map(|name| Path::new("/dev").join(name))
        .filter(|path| is_backed_by(path, file))
        .collect()
}

/// Whether this loop device's backing file is this one.
pub fn is_backed_by(path: &Path, file: &FileId) -> bool {
    let Ok(device) = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_CLOEXEC)
        .open(path)
    else {
        return false;
    };
    // SAFETY: all-zero bytes are a valid value of this plain structure.
    let mut info: LoopInfo = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel fills a structure of its own layout.
    let known = unsafe { ioctl::status(device.as_raw_fd(), &mut info) }.is_ok();
    known && info.inode == file.inode && numbers(info.device) == numbers(file.device)
}

fn numbers(device: u64) -> (u64, u64) {
    (nix::sys::stat::major(device), nix::sys::stat::minor(device))
}

/// Detaches the device from this file; waits a moment for its last user. Returns whether it is free.
pub fn detach(path: &Path, file: &FileId) -> Result<bool> {
    let device = open(path).doing(format!("open {}", path.display()))?;
    // SAFETY: takes no argument.
    match unsafe { ioctl::clear(device.as_raw_fd()) } {
        Ok(_) | Err(Errno::ENXIO) => {}
        Err(error) => {
            return Err(Fault::failed(format!(
                "cannot detach {}: {error}",
                path.display()
            )));
        }
    }
    drop(device);
    let started = Instant::now();
    while is_backed_by(path, file) {
        if started.elapsed() > DETACH_PATIENCE {
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(true)
}

/// Writes back and drops what the page cache holds of the device itself.
pub fn flush_buffers(device: &File) -> Result<()> {
    // SAFETY: takes no argument.
    unsafe { ioctl::flush_buffers(device.as_raw_fd()) }.doing("flush the device's buffers")?;
    Ok(())
}

fn open(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().read(true).write(true).open(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    const LOOP_CTL_ADD: libc::c_ulong = 0x4C80;
    const LOOP_CTL_REMOVE: libc::c_ulong = 0x4C81;
    /// Nobody gets this one as the next that is free.
    const FAR: libc::c_int = 40_961;

    nix::ioctl_write_int_bad!(add, LOOP_CTL_ADD);
    nix::ioctl_write_int_bad!(remove, LOOP_CTL_REMOVE);

    #[test]
    fn a_device_that_was_left_read_only_takes_writes() {
        let Ok(control) = open("/dev/loop-control".as_ref()) else {
            return; // nobody but root, where the module is loaded
        };
        // SAFETY: takes a number.
        if unsafe { add(control.as_raw_fd(), FAR) }.is_err() {
            return;
        }
        let path = std::env::temp_dir().join(format!("ascar-loop-{}", std::process::id()));
        let image = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)
            .unwrap();
        std::fs::remove_file(&path).unwrap();
        image.set_len(1 << 20).unwrap();
        let device = open(format!("/dev/loop{FAR}").as_ref()).unwrap();
        configure(&device, &image, false).unwrap();
        // SAFETY: the kernel reads one number; the others take no argument.
        unsafe { ioctl::set_read_only(device.as_raw_fd(), &1) }.unwrap();
        assert!(device.write_at(&[1; 512], 0).is_err());
        unsafe { ioctl::clear(device.as_raw_fd()) }.unwrap();
        drop(device);
        let device = open(format!("/dev/loop{FAR}").as_ref()).unwrap();
        configure(&device, &image, false).unwrap();
        let written = device.write_at(&[1; 512], 0);
        unsafe { ioctl::clear(device.as_raw_fd()) }.unwrap();
        drop(device);
        let removed = unsafe { remove(control.as_raw_fd(), FAR) };
        assert_eq!(written.unwrap(), 512);
        removed.unwrap();
    }
}
