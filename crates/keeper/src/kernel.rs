//! What this machine's kernel and its programs offer.

use std::path::PathBuf;

use serde::Serialize;

use crate::cgroup::{self, Version};
use crate::format::FILE_SYSTEMS;
use crate::program;

/// What can be tuned here.
#[derive(Debug, Serialize)]
pub struct Capabilities {
    /// File systems that the kernel mounts and that can be made.
    file_systems: Vec<String>,
    /// How memory can be bounded.
    cgroup_memory: Option<Version>,
    /// Schedulers of block devices.
    schedulers: Vec<String>,
    /// The kernel's release.
    kernel: String,
}

/// Changes with every boot.
pub fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|text| text.trim().to_owned())
        .unwrap_or_default()
}

/// The machine's own (machine-id(5)), the same after each boot; none where it has none.
pub fn machine_id() -> Option<String> {
    let text = std::fs::read_to_string("/etc/machine-id").ok()?;
    let id = text.trim();
    (id.len() == 32 && id.bytes().all(|it| it.is_ascii_hexdigit())).then(|| id.to_owned())
}

/// Looks at the machine.
pub fn capabilities() -> Capabilities {
    let mounted = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
    let aliases = modules_file("modules.alias");
    let has_kernel = |fs: &str| {
        mounted
            .lines()
            .any(|line| line.split_whitespace().last() == Some(fs))
            || aliases
                .lines()
                .any(|line| line.starts_with(&format!("alias fs-{fs} ")))
    };
    let maker = |fs: &str| match fs {
        "xfs" => "mkfs.xfs",
        "btrfs" => "mkfs.btrfs",
        "nilfs2" => "mkfs.nilfs2",
        "reiserfs" => "mkreiserfs",
        _ => "mke2fs",
    };
    let file_systems = FILE_SYSTEMS
        .iter()
        .filter(|fs| has_kernel(fs) && program::find(maker(fs)).is_some());
    Capabilities {
        file_systems: file_systems.map(|fs| (*fs).to_owned()).collect(),
        cgroup_memory: cgroup::discover().map(|hierarchy| hierarchy.version),
        schedulers: schedulers(),
        kernel: release(),
    }
}

/// Schedulers that are modules and not loaded yet: naming one loads it.
pub fn loadable_schedulers() -> Vec<String> {
    let modules = modules_file("modules.dep");
    let known = [
        ("bfq", "/bfq.ko"),
        ("kyber", "/kyber-iosched.ko"),
        ("mq-deadline", "/mq-deadline.ko"),
    ];
    known
        .iter()
        .filter(|(_, file)| modules.contains(file))
        .map(|(name, _)| (*name).to_owned())
        .collect()
}

fn schedulers() -> Vec<String> {
    let entries = std::fs::read_dir("/sys/block")
        .into_iter()
        .flatten()
        .flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| {
            crate::catalogue::resolve(&format!("block.{}.scheduler", entry.file_name().display()))
                .ok()
        })
        .flat_map(|knob| knob.choices())
        .collect();
    names.sort();
    names.dedup();
    names
}

fn release() -> String {
    nix::sys::utsname::uname()
        .map(|name| name.release().to_string_lossy().into_owned())
        .unwrap_or_default()
}

fn modules_file(name: &str) -> String {
    std::fs::read_to_string(PathBuf::from("/lib/modules").join(release()).join(name))
        .unwrap_or_default()
}

/// What the kernel says about a device while it is watched: the reasons of a refused mount are only there.
#[derive(Debug)]
pub struct Messages(Option<std::fs::File>);

impl Messages {
    /// From now on.
    pub fn watch() -> Self {
        use std::io::{Seek, SeekFrom};
        use std::os::unix::fs::OpenOptionsExt;
        let mut options = std::fs::OpenOptions::new();
        let file = options
            .read(true)
            .custom_flags(nix::libc::O_NONBLOCK | nix::libc::O_CLOEXEC)
            .open("/dev/kmsg");
        Self(
            file.ok()
                .and_then(|mut file| file.seek(SeekFrom::End(0)).ok().map(|_| file)),
        )
    }

    /// The messages since then that name the device, or a file system and no device.
    pub fn about(self, device: &str) -> String {
        use std::io::Read;
        let Some(mut file) = self.0 else {
            return String::new();
        };
        let mut lines = Vec::new();
        let mut record = [0; 8192];
        // One record a read: "6,1234,5678,-;text\n".
        while let Ok(count) = file.read(&mut record) {
            let text = String::from_utf8_lossy(&record[..count]);
            if let Some((_, message)) = text.split_once(';')
                && (message.contains(device) || names_no_device(message))
            {
                lines.push(message.lines().next().unwrap_or_default().to_owned());
            }
            if count == 0 || lines.len() > 100 {
                break;
            }
        }
        lines.join("\n")
    }
}

/// "EXT4-fs: Cannot change data mode on remount"
fn names_no_device(message: &str) -> bool {
    let source = message.split(':').next().unwrap_or_default().to_lowercase();
    !source.contains('(')
        && ["ext", "xfs", "btrfs", "nilfs", "reiserfs"]
            .iter()
            .any(|fs| source.starts_with(fs))
}
