//! Operations on devices and the file systems on them.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use nix::mount::{MsFlags, mount};
use serde_json::{Value, json};

use super::device::Device;
use super::{DEVICES_MAX, Session, done, lock};
use crate::devices;
use crate::fault::{Doing, Fault, Result};
use crate::format;
use crate::images;
use crate::interrupt::Limit;
use crate::journal::{Change, Journal};
use crate::kernel;
use crate::loops;
use crate::mount_options;
use crate::mounts;
use crate::program;
use crate::protocol::{FormatRequest, MountRequest};
use crate::uninterruptible;

/// Where mountpoints are made.
const MOUNTPOINTS: &str = "/run/ascar/mnt";

impl Session {
    pub(super) fn device_claim(
        &mut self,
        path: &Path,
        confirmed: bool,
        limit: &Limit,
    ) -> Result<Value> {
        if self.devices.len() >= DEVICES_MAX {
            return Err(Fault::input(format!(
                "path = {path:?}: more than {DEVICES_MAX} devices in one session"
            )));
        }
        let claimed = devices::claim(path, confirmed, limit)?;
        self.locks()?
            .take(&format!("device.{}", claimed.id.number))?;
        let device = Device::new(claimed.path.clone(), claimed.id, None);
        let answer =
            json!({"device": claimed.path, "name": device.name, "size_bytes": claimed.size_bytes});
        self.devices.entry(claimed.path).or_insert(device);
        Ok(answer)
    }

    pub(super) fn format(&mut self, request: &FormatRequest, limit: &Limit) -> Result<Value> {
        let started = Instant::now();
        let uuid = self.next_uuid();
        let device = self.device(request.device.clone())?;
        let command = format::command(request, &device.path, &uuid)?;
        if program::find(command.program).is_none() {
            return Err(program::not_installed(command.program));
        }
        device.check_unmounted()?;
        let opened = devices::check_unused(&device.path, &device.id)?;
        device.fs = None;
        match &device.image {
            Some(image) => {
                images::blank(&image.file)?;
                loops::flush_buffers(&opened)?;
                drop(opened);
            }
            None => {
                // Since the claim somebody may have made something of it.
                if !device.unfinished {
                    devices::check_blank(&opened, &device.path, limit)?;
                }
                drop(opened);
                let path = device.path.as_os_str();
                program::run("wipefs", &["-a".as_ref(), "--".as_ref(), path], limit)?
                    .success("wipefs")?;
                // Not every device can discard; what it keeps then is as good as any other content.
                let _ = program::run("blkdiscard", &["-f".as_ref(), "--".as_ref(), path], limit)?;
            }
        }
        device.unfinished = true;
        let finished =
            program::run(command.program, &command.arguments, limit)?.success(command.program)?;
        if let Some(naming) = format::naming(&request.fs, &device.path, &uuid) {
            program::run(naming.program, &naming.arguments, limit)?.success(naming.program)?;
        }
        device.fs = Some(request.fs.clone());
        device.unfinished = false;
        let words: Vec<String> = std::iter::once(command.program.to_owned())
            .chain(command.arguments)
            .collect();
        let output = [finished.stdout, finished.stderr]
            .join("\n")
            .trim()
            .to_owned();
        Ok(json!({"seconds": started.elapsed().as_secs_f64(), "command": words, "output": output}))
    }

    pub(super) fn mount(&mut self, request: &MountRequest, limit: &Limit) -> Result<Value> {
        let started = Instant::now();
        let options = mount_options::parse(&request.fs, &request.options)?;
        let (own_uid, own_gid) = (self.invoker.uid, self.invoker.gid);
        let (uid, gid) = (
            request.uid.unwrap_or(own_uid),
            request.gid.unwrap_or(own_gid),
        );
        if own_uid != 0 && (uid, gid) != (own_uid, own_gid) {
            return Err(Fault::refused(format!(
                "uid = {uid}, gid = {gid}: allowed are your own {own_uid}, {own_gid}"
            )));
        }
        let (session, journal) = (self.name.clone(), Arc::clone(&self.journal));
        let device = self.device(request.device.clone())?;
        device.check_unmounted()?;
        if device.fs.as_deref() != Some(&request.fs) {
            let has = device.fs.as_deref().unwrap_or("nothing");
            return Err(Fault::input(format!(
                "fs = {:?}: this session has made {has} on {}: format it first",
                request.fs,
                device.path.display()
            )));
        }
        drop(devices::check_unused(&device.path, &device.id)?);
        let mountpoint = PathBuf::from(MOUNTPOINTS).join(format!("{session}-{}", device.name));
        make_mountpoint(&mut lock(&journal), &mountpoint)?;
        let change = Change::Mount {
            target: mountpoint.clone(),
            expected: device.path.clone(),
            scratch: true,
        };
        let numbers = lock(&journal).record(vec![change])?;
        let call = MountCall {
            device: device.path.clone(),
            mountpoint: mountpoint.clone(),
            fs: request.fs.clone(),
            flags: options.flags,
            data: options.data,
        };
        if let Err(fault) = call.make("mount", &journal, limit) {
            let mut journal = lock(&journal);
            if !journal.is_frozen() {
                journal.undone(&numbers)?;
                drop_mountpoint(&mut journal, &mountpoint)?;
            }
            return Err(fault);
        }
        device.mountpoint = Some(mountpoint.clone());
        std::os::unix::fs::chown(&mountpoint, Some(uid), Some(gid))
            .doing("give the root directory away")?;
        mounted(&mountpoint, started)
    }

    pub(super) fn remount(
        &mut self,
        options: &[String],
        device: Option<PathBuf>,
        limit: &Limit,
    ) -> Result<Value> {
        let started = Instant::now();
        let journal = Arc::clone(&self.journal);
        let device = self.device(device)?;
        let (fs, mountpoint) = device.mounted()?;
        let options = mount_options::parse(&fs, options)?;
        let call = MountCall {
            device: device.path.clone(),
            mountpoint: mountpoint.clone(),
            fs,
            flags: options.flags | MsFlags::MS_REMOUNT,
            data: options.data,
        };
        call.make("remount", &journal, limit)?;
        mounted(&mountpoint, started)
    }

    pub(super) fn unmount(&mut self, device: Option<PathBuf>, limit: &Limit) -> Result<Value> {
        let started = Instant::now();
        let journal = Arc::clone(&self.journal);
        let device = self.device(device)?;
        let (_, mountpoint) = device.mounted()?;
        // Unmounting cannot be stopped, syncing can: so that little is left to do for the former.
        sync(&mountpoint, limit)?;
        let place = mountpoint.clone();
        let unmounted = uninterruptible::change("unmount", limit, move || mounts::unmount(&place));
        if unmounted.is_err() {
            lock(&journal).freeze();
        }
        unmounted?.doing(format!("unmount {}", mountpoint.display()))?;
        device.mountpoint = None;
        let mut journal = lock(&journal);
        journal.undone_where(
            |it| matches!(it, Change::Mount { target, .. } if *target == mountpoint),
        )?;
        drop_mountpoint(&mut journal, &mountpoint)?;
        done(started)
    }

    pub(super) fn sync_fs(&mut self, device: Option<PathBuf>, limit: &Limit) -> Result<Value> {
        let started = Instant::now();
        let (_, mountpoint) = self.device(device)?.mounted()?;
        sync(&mountpoint, limit)?;
        done(started)
    }

    pub(super) fn drop_caches(&mut self, level: u8, limit: &Limit) -> Result<Value> {
        if !(1..=3).contains(&level) {
            return Err(Fault::input(format!(
                "level = {level}: allowed are 1 (pages), 2 (inodes, dentries), 3 (both)"
            )));
        }
        let started = Instant::now();
        self.locks()?.take("vm.drop_caches")?;
        let dropped = uninterruptible::harmless("dropping caches", limit, move || {
            std::fs::write("/proc/sys/vm/drop_caches", level.to_string())
        });
        dropped?.doing("drop caches")?;
        done(started)
    }

    /// A UUID of ours that no other file system here has: two of one UUID cannot be mounted at once, and mkfs.btrfs
    /// refuses one that blkid remembers, even from a file system that is gone.
    fn next_uuid(&mut self) -> String {
        self.formats = (self.formats + 1) & 0xF_FFFF;
        let digits: String = self.name.chars().filter(char::is_ascii_hexdigit).collect();
        let session = &digits[digits.len().saturating_sub(12)..];
        let (high, low) = (self.formats >> 12, self.formats & 0xFFF);
        format!(
            "{}{high:02x}-4{low:03x}-8000-{session:0>12}",
            devices::UUID_PREFIX
        )
    }
}

fn make_mountpoint(journal: &mut Journal, path: &Path) -> Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    let doing = format!("make {}", path.display());
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(MOUNTPOINTS)
        .doing(&doing)?;
    let numbers = journal.record(vec![Change::Directory {
        target: path.to_owned(),
    }])?;
    if let Err(error) = std::fs::DirBuilder::new().mode(0o700).create(path) {
        journal.undone(&numbers)?;
        return Err(error).doing(&doing);
    }
    Ok(())
}

fn drop_mountpoint(journal: &mut Journal, path: &Path) -> Result<()> {
    std::fs::remove_dir(path).doing(format!("remove {}", path.display()))?;
    journal.undone_where(|it| matches!(it, Change::Directory { target } if target == path))
}

fn mounted(mountpoint: &Path, started: Instant) -> Result<Value> {
    let info =
        mounts::at(mountpoint)?.ok_or_else(|| Fault::failed(format!("{mountpoint:?} vanished")))?;
    let space = nix::sys::statvfs::statvfs(mountpoint).doing("ask for free space")?;
    let unit = space.fragment_size() as u64;
    Ok(json!({
        "mountpoint": mountpoint,
        "options": info.options,
        "capacity_bytes": space.blocks() as u64 * unit,
        "available_bytes": space.blocks_available() as u64 * unit,
        "seconds": started.elapsed().as_secs_f64(),
    }))
}

fn sync(mountpoint: &Path, limit: &Limit) -> Result<()> {
    let root = File::open(mountpoint).doing(format!("open {}", mountpoint.display()))?;
    let written =
        uninterruptible::harmless("writing back", limit, move || nix::unistd::syncfs(&root));
    written?.doing(format!("write {} back", mountpoint.display()))
}

/// One call of mount(2).
#[derive(Clone, Debug)]
struct MountCall {
    device: PathBuf,
    mountpoint: PathBuf,
    fs: String,
    flags: MsFlags,
    data: String,
}

impl MountCall {
    /// Makes the call, and tells what the kernel says when it refuses.
    fn make(&self, what: &str, journal: &Mutex<Journal>, limit: &Limit) -> Result<()> {
        limit.check(what)?;
        let messages = kernel::Messages::watch();
        let call = self.clone();
        let outcome = uninterruptible::change(what, limit, move || {
            let data = Some(call.data.as_str()).filter(|data| !data.is_empty());
            mount(
                Some(&call.device),
                &call.mountpoint,
                Some(call.fs.as_str()),
                call.flags,
                data,
            )
        });
        if outcome.is_err() {
            lock(journal).freeze();
        }
        outcome?.map_err(|error| {
            let options = if self.data.is_empty() {
                "no options"
            } else {
                &self.data
            };
            let device = self.device.display();
            let name = self
                .device
                .file_name()
                .unwrap_or_default()
                .to_string_lossy();
            Fault::failed(format!("cannot {what} {device} with {options}: {error}"))
                .with_stderr(messages.about(&name))
        })
    }
}
