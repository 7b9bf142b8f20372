//! Processors: `/proc/stat`, `/proc/loadavg`.

use super::Collector;
use super::text::{KernelFile, number};
use crate::sample::Sample;

#[derive(Debug)]
pub struct Cpu {
    stat: KernelFile,
    load: KernelFile,
}

impl Cpu {
    pub fn new() -> Self {
        Self {
            stat: KernelFile::new("/proc/stat"),
            load: KernelFile::new("/proc/loadavg"),
        }
    }
}

impl Collector for Cpu {
    fn sample(&mut self, sample: &mut Sample) {
        if let Some(text) = self.stat.read() {
            read(text, sample);
        }
        if let Some(load) = self.load.read().and_then(number) {
            sample.level("cpu.load", load);
        }
    }
}

fn read(text: &str, sample: &mut Sample) {
    let mut cpus = 0;
    for line in text.lines() {
        let Some((word, rest)) = line.split_once(' ') else {
            continue;
        };
        match word {
            "cpu" => {
                let times: Vec<f64> = rest
                    .split_ascii_whitespace()
                    .map_while(|it| it.parse().ok())
                    .collect();
                let [user, nice, system, idle, io_wait, irq, soft_irq, steal, ..] = times[..]
                else {
                    continue;
                };
                let all = times[..8].iter().sum();
                for (name, part) in [
                    ("cpu.user_share", user + nice),
                    ("cpu.system_share", system),
                    ("cpu.interrupt_share", irq + soft_irq),
                    ("cpu.io_wait_share", io_wait),
                    ("cpu.idle_share", idle),
                    ("cpu.steal_share", steal),
                ] {
                    sample.ratio(name, part, all, 1.0);
                }
            }
            "ctxt" | "intr" => {
                let name = if word == "ctxt" {
                    "cpu.switches_per_s"
                } else {
                    "cpu.interrupts_per_s"
                };
                if let Some(total) = number(rest) {
                    sample.rate(name, total);
                }
            }
            "procs_running" | "procs_blocked" => {
                if let Some(value) = number(rest) {
                    sample.level(&format!("cpu.{}", &word["procs_".len()..]), value);
                }
            }
            _ if word.starts_with("cpu") => cpus += 1,
            _ => {}
        }
    }
    sample.level("cpu.count", f64::from(cpus));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_the_time_that_passed() {
        let mut sample = Sample::new(vec![], vec![], None);
        for text in [
            "cpu  10 0 0 90 0 0 0 0 0 0\ncpu0 1 2\nprocs_running 3\n",
            "cpu  30 0 10 150 10 0 0 0 0 0\ncpu0 1 2\nprocs_running 4\nctxt\n",
        ] {
            sample.begin(std::time::Instant::now());
            read(text, &mut sample);
        }
        assert_eq!(sample.value("cpu.user_share"), 0.2);
        assert_eq!(sample.value("cpu.idle_share"), 0.6);
        assert_eq!(sample.value("cpu.running"), 4.0);
        assert_eq!(sample.value("cpu.count"), 1.0);
    }
}
