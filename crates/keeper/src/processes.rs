//! The processes that run now, as /proc lists them.

use std::path::PathBuf;

/// Their numbers.
pub fn all() -> Vec<i32> {
    let Ok(listed) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    listed
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// Where the kernel tells of one.
pub fn folder(pid: i32) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}"))
}

/// Whether an entry of its environment, NAME=VALUE, is meant.
pub fn has_variable(pid: i32, is_meant: impl Fn(&[u8]) -> bool) -> bool {
    std::fs::read(folder(pid).join("environ"))
        .is_ok_and(|environment| environment.split(|byte| *byte == 0).any(is_meant))
}
