//! Virtual memory: `/proc/vmstat`.

use super::Collector;
use super::text::KernelFile;
use crate::sample::Sample;

/// Totals and what they are called here.
const RATES: [(&str, &str, f64); 12] = [
    ("pgpgin", "vm.paged_in_bytes_per_s", 1024.0),
    ("pgpgout", "vm.paged_out_bytes_per_s", 1024.0),
    ("pswpin", "vm.swapped_in_pages_per_s", 1.0),
    ("pswpout", "vm.swapped_out_pages_per_s", 1.0),
    ("pgfault", "vm.faults_per_s", 1.0),
    ("pgmajfault", "vm.major_faults_per_s", 1.0),
    ("nr_dirtied", "vm.dirtied_pages_per_s", 1.0),
    ("nr_written", "vm.written_pages_per_s", 1.0),
    ("pgscan_kswapd", "vm.scanned_background_pages_per_s", 1.0),
    ("pgscan_direct", "vm.scanned_direct_pages_per_s", 1.0),
    ("pgsteal_kswapd", "vm.reclaimed_background_pages_per_s", 1.0),
    ("pgsteal_direct", "vm.reclaimed_direct_pages_per_s", 1.0),
];

const LEVELS: [(&str, &str); 4] = [
    ("nr_dirty", "vm.dirty_pages"),
    ("nr_writeback", "vm.writeback_pages"),
    ("nr_dirty_threshold", "vm.dirty_threshold_pages"),
    (
        "nr_dirty_background_threshold",
        "vm.dirty_background_threshold_pages",
    ),
];

#[derive(Debug)]
pub struct Vm {
    file: KernelFile,
}

impl Vm {
    pub fn new() -> Self {
        Self {
            file: KernelFile::new("/proc/vmstat"),
        }
    }
}

impl Collector for Vm {
    fn sample(&mut self, sample: &mut Sample) {
        if let Some(text) = self.file.read() {
            read(text, sample);
        }
    }
}

fn read(text: &str, sample: &mut Sample) {
    for line in text.lines() {
        let Some((word, value)) = line.split_once(' ') else {
            continue;
        };
        let rate = RATES.iter().find(|(key, _, _)| *key == word);
        let level = LEVELS.iter().find(|(key, _)| *key == word);
        let Some(value) = value
            .trim()
            .parse()
            .ok()
            .filter(|_| rate.is_some() || level.is_some())
        else {
            continue;
        };
        if let Some((_, name, factor)) = rate {
            sample.scaled_rate(name, value, *factor);
        }
        if let Some((_, name)) = level {
            sample.level(name, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn known_words_are_read_and_others_passed_over() {
        let mut sample = Sample::new(vec![], vec![], None);
        let start = Instant::now();
        for (second, text) in [
            (0, "pgpgin 10\nnr_dirty 3\nunknown 5"),
            (1, "pgpgin 12\nnr_dirty 4\npgpgout x\n\n"),
        ] {
            sample.begin(start + Duration::from_secs(second));
            read(text, &mut sample);
        }
        assert_eq!(sample.value("vm.paged_in_bytes_per_s"), 2048.0);
        assert_eq!(sample.value("vm.dirty_pages"), 4.0);
        assert_eq!(sample.names().len(), 2);
    }
}
