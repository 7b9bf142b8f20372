//! Mounted file systems: what is free.

use std::path::PathBuf;

use super::Collector;
use crate::sample::Sample;

#[derive(Debug)]
pub struct FileSystems {
    paths: Vec<PathBuf>,
}

impl FileSystems {
    pub fn new(paths: Vec<PathBuf>) -> Self {
        Self { paths }
    }
}

impl Collector for FileSystems {
    fn sample(&mut self, sample: &mut Sample) {
        for path in &self.paths {
            let Ok(found) = nix::sys::statvfs::statvfs(path) else {
                continue;
            };
            let key = |what: &str| format!("file_system.{}.{what}", path.display());
            let share = |free: u64, all: u64| {
                if all == 0 {
                    1.0
                } else {
                    free as f64 / all as f64
                }
            };
            sample.level(
                &key("free_share"),
                share(found.blocks_available(), found.blocks()),
            );
            sample.level(
                &key("free_bytes"),
                found.blocks_available() as f64 * found.fragment_size() as f64,
            );
            sample.level(
                &key("free_inodes_share"),
                share(found.files_available(), found.files()),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_mounted_is_told_and_what_is_not_left_out() {
        let mut sample = Sample::new(vec![], vec![], None);
        sample.begin(std::time::Instant::now());
        FileSystems::new(vec!["/".into(), "/nowhere/at/all".into()]).sample(&mut sample);
        assert_eq!(sample.names().len(), 3);
        assert!((0.0..=1.0).contains(&sample.value("file_system./.free_share")));
    }
}
