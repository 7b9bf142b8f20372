//! Memory: `/proc/meminfo`, in bytes.

use super::Collector;
use super::text::{KernelFile, number};
use crate::sample::Sample;

const NAMES: [(&str, &str); 11] = [
    ("MemFree", "memory.free_bytes"),
    ("MemAvailable", "memory.available_bytes"),
    ("Buffers", "memory.buffers_bytes"),
    ("Cached", "memory.cached_bytes"),
    ("Dirty", "memory.dirty_bytes"),
    ("Writeback", "memory.writeback_bytes"),
    ("Slab", "memory.slab_bytes"),
    ("Active(file)", "memory.active_file_bytes"),
    ("Inactive(file)", "memory.inactive_file_bytes"),
    ("AnonPages", "memory.anonymous_bytes"),
    ("SwapFree", "memory.swap_free_bytes"),
];

#[derive(Debug)]
pub struct Memory {
    file: KernelFile,
}

impl Memory {
    pub fn new() -> Self {
        Self {
            file: KernelFile::new("/proc/meminfo"),
        }
    }
}

impl Collector for Memory {
    fn sample(&mut self, sample: &mut Sample) {
        if let Some(text) = self.file.read() {
            read(text, sample);
        }
    }
}

fn read(text: &str, sample: &mut Sample) {
    for line in text.lines() {
        let known = line.split_once(':').and_then(|(word, value)| {
            let (_, name) = NAMES.iter().find(|(key, _)| *key == word)?;
            Some((name, number(value)?))
        });
        if let Some((name, kilobytes)) = known {
            sample.level(name, kilobytes * 1024.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kilobytes_become_bytes() {
        let mut sample = Sample::new(vec![], vec![], None);
        sample.begin(std::time::Instant::now());
        read(
            "MemTotal: 9 kB\nMemFree:   4 kB\nDirty: none kB\nActive(file):  2 kB\nrubbish",
            &mut sample,
        );
        assert_eq!(sample.value("memory.free_bytes"), 4096.0);
        assert_eq!(sample.value("memory.active_file_bytes"), 2048.0);
        assert_eq!(sample.names().len(), 2);
    }
}
