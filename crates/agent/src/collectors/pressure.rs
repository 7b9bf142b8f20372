//! Stalls for want of a resource: `/proc/pressure`, as shares of the time.

use super::Collector;
use super::text::KernelFile;
use crate::sample::Sample;

#[derive(Debug)]
pub struct Pressure {
    files: Vec<(&'static str, KernelFile)>,
}

impl Pressure {
    pub fn new() -> Self {
        let file = |name: &'static str| (name, KernelFile::new(format!("/proc/pressure/{name}")));
        Self {
            files: vec![file("cpu"), file("io"), file("memory")],
        }
    }
}

impl Collector for Pressure {
    fn sample(&mut self, sample: &mut Sample) {
        for (name, file) in &mut self.files {
            // A kernel may have the files and refuse to read them.
            if let Some(text) = file.read() {
                read(name, text, sample);
            }
        }
    }
}

/// `some avg10=0.00 avg60=0.00 avg300=0.00 total=123`, in microseconds.
fn read(resource: &str, text: &str, sample: &mut Sample) {
    for line in text.lines() {
        let parts = line.split_once(' ').and_then(|(kind, rest)| {
            Some((
                kind,
                rest.rsplit_once("total=")?.1.trim().parse::<f64>().ok()?,
            ))
        });
        if let Some((kind @ ("some" | "full"), total)) = parts {
            sample.scaled_rate(&format!("pressure.{resource}.{kind}_share"), total, 1e-6);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn totals_become_shares() {
        let mut sample = Sample::new(vec![], vec![], None);
        let start = Instant::now();
        for (second, total) in [(0, 5), (1, 250_005)] {
            sample.begin(start + Duration::from_secs(second));
            read(
                "io",
                &format!("some avg10=0.00 total={total}\nfull avg10=1 total=x\nodd total=3"),
                &mut sample,
            );
        }
        assert_eq!(sample.value("pressure.io.some_share"), 0.25);
        assert_eq!(sample.names().len(), 1);
    }
}
