//! The plane of a node: rules act on the queues of its block devices.

use std::time::Duration;

use ascar_congestion::{Deployment, RuleSet, THESIS_AXES};
use ascar_plane::{Plane, StreamIndicators};

use super::counted::{CountedStream, Counters, Range};
use super::queues::Queues;

/// Totals make no scenario: what was asked where and when is missing in them.
const NO_RECORDING: &str = "rules.record: a kernel only counts requests; each by itself is told by block traces \
    (CONFIG_BLK_DEV_IO_TRACE), which agents do not read; record on a proxy";

/// A device, as one stream.
#[derive(Debug)]
struct Device {
    name: String,
    /// What it had before rules were followed, as far as its range allows that.
    begins_with: Option<u32>,
    stream: CountedStream,
    counted: Counters,
    /// What is set; None where that is not known.
    in_force: Option<u32>,
}

/// The devices of a node, as a rule manager sees them.
#[derive(Debug)]
pub struct KernelPlane<Q> {
    node: String,
    range: Range,
    queues: Q,
    devices: Vec<Device>,
    deployment: Option<Deployment>,
}

impl<Q: Queues> KernelPlane<Q> {
    /// Nothing is touched yet.
    pub fn new(node: &str, devices: &[String], range: Range, queues: Q) -> Self {
        let device = |name: &String| Device {
            name: name.clone(),
            begins_with: None,
            stream: CountedStream::new(range.most_x100),
            counted: Counters::default(),
            in_force: None,
        };
        Self {
            node: node.to_owned(),
            range,
            queues,
            devices: devices.iter().map(device).collect(),
            deployment: None,
        }
    }

    /// Whether rules are followed.
    pub fn is_following(&self) -> bool {
        self.deployment.is_some()
    }

    /// Bytes that all devices have read and written.
    pub fn moved_bytes(&self) -> u64 {
        let moved = |it: &Device| {
            it.counted
                .read_bytes
                .saturating_add(it.counted.written_bytes)
        };
        self.devices.iter().map(moved).fold(0, u64::saturating_add)
    }

    /// Takes in what was counted, and sets the windows that the rules have changed.
    ///
    /// # Errors
    /// Those that could not be set; they are set at the next look.
    pub fn look(&mut self, now_us: u64) -> Result<(), String> {
        let mut faults = Vec::new();
        for device in &mut self.devices {
            let Some(counted) = self.queues.counted(&device.name) else {
                continue;
            };
            device.counted = counted;
            let Some(deployment) = &self.deployment else {
                continue;
            };
            let (rules, range) = (&deployment.rules, self.range);
            if let Some((rule, signals)) = device.stream.look(rules, range, now_us, counted) {
                deployment.usage.record(rule, &signals);
                let window = device.stream.window_x100() / 100;
                if device.in_force != Some(window) {
                    match self.queues.set(&device.name, window) {
                        Ok(()) => device.in_force = Some(window),
                        Err(fault) => faults.push(fault),
                    }
                }
            }
        }
        if faults.is_empty() {
            return Ok(());
        }
        Err(faults.join("; "))
    }

    /// Looks after what sets windows; what was put back without us is set anew. Returns what happened.
    pub fn watch(&mut self) -> Option<String> {
        let news = self.queues.watch()?;
        for device in &mut self.devices {
            device.in_force = None;
        }
        Some(news)
    }

    /// The window that a device begins with.
    fn beginning(&mut self, at: usize) -> Result<u32, String> {
        if let Some(known) = self.devices[at].begins_with {
            return Ok(known);
        }
        let name = &self.devices[at].name;
        let found = self.queues.requests(name);
        let found = found.ok_or_else(|| format!("windows.devices = {name:?}: is not there"))?;
        Ok(self.range.nearest(found.saturating_mul(100)) / 100)
    }
}

impl<Q: Queues> Plane for KernelPlane<Q> {
    fn follow(&mut self, rules: Option<&RuleSet>) -> Result<(), String> {
        let Some(rules) = rules else {
            self.queues.restore()?;
            self.deployment = None;
            for device in &mut self.devices {
                (device.begins_with, device.in_force) = (None, None);
            }
            return Ok(());
        };
        check(rules)?;
        let beginnings = (0..self.devices.len()).map(|at| self.beginning(at));
        let beginnings = beginnings.collect::<Result<Vec<u32>, String>>()?;
        // Set at once, though it may be in force: what cannot be set is told to who asks for it.
        for (at, window) in beginnings.iter().enumerate() {
            if let Err(fault) = self.queues.set(&self.devices[at].name, *window) {
                self.back(at);
                return Err(fault);
            }
        }
        for (device, window) in self.devices.iter_mut().zip(beginnings) {
            device.begins_with = Some(window);
            device.in_force = Some(window);
            device.stream = CountedStream::new(window * 100);
        }
        self.deployment = Some(Deployment::new(rules.clone()));
        Ok(())
    }

    fn used(&self) -> Option<RuleSet> {
        self.deployment.as_ref().map(Deployment::observed_rules)
    }

    fn observe(&self) -> Vec<StreamIndicators> {
        let shown = |device: &Device| {
            let signals = device.stream.signals();
            let is_held = self.deployment.is_some();
            StreamIndicators {
                client: self.node.clone(),
                server: device.name.clone(),
                window: is_held.then(|| f64::from(device.stream.window_x100()) / 100.0),
                tau_us: 0,
                ack_ewma_us: signals.ack_us,
                send_ewma_us: signals.send_us,
                pt_ratio: f64::from(signals.ratio100) / 100.0,
                in_flight: u32::try_from(device.counted.in_flight).unwrap_or(u32::MAX),
                waiting: 0,
                has_turn: None,
                connections: 1,
                passing: 0,
                read_bytes: device.counted.read_bytes,
                written_bytes: device.counted.written_bytes,
                replies: device.counted.replies,
                overloads: 0,
            }
        };
        self.devices.iter().map(shown).collect()
    }

    fn record(&mut self, _length: Duration) -> Result<(), String> {
        Err(NO_RECORDING.to_owned())
    }
}

impl<Q: Queues> KernelPlane<Q> {
    /// Goes on with what was followed before, of the devices before this one, whose window was touched.
    fn back(&mut self, until: usize) {
        if self.deployment.is_none() {
            // What cannot be put back now, the keeper puts back when it ends.
            let _ = self.queues.restore();
            return;
        }
        for device in &mut self.devices[..until] {
            device.in_force = None; // set anew at the next look
        }
    }
}

/// Refuses what a kernel's queue cannot do.
fn check(rules: &RuleSet) -> Result<(), String> {
    if rules.axes() > THESIS_AXES {
        return Err(format!(
            "axes = {}: kernels count what the first {THESIS_AXES} need; leave the others out, or deploy on a proxy",
            rules.axes()
        ));
    }
    if rules.active_files() > 0 {
        return Err(format!(
            "active_files = {}: a kernel's queue has no turns; make it 0, or deploy on a proxy",
            rules.active_files()
        ));
    }
    let paces = |rule: &ascar_congestion::Rule| rule.action.tau_us > 0;
    if let Some(at) = rules.rules().iter().position(paces) {
        return Err(format!(
            "rule {}: tau_us = {}: a kernel's queue has no pace; make it 0, or deploy on a proxy",
            at + 1,
            rules.rules()[at].action.tau_us
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use ascar_congestion::Action;

    use super::*;

    const RANGE: Range = Range {
        least_x100: 400,
        most_x100: 12_800,
    };

    /// Queues that obey, but for one.
    #[derive(Debug, Default)]
    struct Told {
        requests: HashMap<String, u32>,
        initial: HashMap<String, u32>,
        replies: u64,
        refuses: Option<String>,
        writes: u32,
        news: Option<String>,
    }

    impl Queues for Told {
        fn requests(&mut self, device: &str) -> Option<u32> {
            self.requests.get(device).copied()
        }

        fn counted(&mut self, _device: &str) -> Option<Counters> {
            self.replies += 10;
            Some(Counters {
                replies: self.replies,
                taken_ms: self.replies,
                read_bytes: self.replies * 4096,
                ..Counters::default()
            })
        }

        fn set(&mut self, device: &str, requests: u32) -> Result<(), String> {
            if self.refuses.as_deref() == Some(device) {
                return Err(format!("{device}: is another's"));
            }
            self.writes += 1;
            let before = self.requests.insert(device.to_owned(), requests);
            self.initial
                .entry(device.to_owned())
                .or_insert(before.unwrap());
            Ok(())
        }

        fn restore(&mut self) -> Result<(), String> {
            self.requests.extend(self.initial.drain());
            Ok(())
        }

        fn watch(&mut self) -> Option<String> {
            let news = self.news.take()?;
            self.restore().unwrap();
            Some(news)
        }
    }

    fn plane(devices: &[(&str, u32)]) -> KernelPlane<Told> {
        let requests = devices
            .iter()
            .map(|(name, requests)| ((*name).to_owned(), *requests))
            .collect();
        let names: Vec<String> = devices.iter().map(|(name, _)| (*name).to_owned()).collect();
        let told = Told {
            requests,
            ..Told::default()
        };
        KernelPlane::new("client1", &names, RANGE, told)
    }

    fn rules(m100: i32, b100: i32, tau_us: u32) -> RuleSet {
        RuleSet::uniform(Action { m100, b100, tau_us })
    }

    fn windows(plane: &KernelPlane<Told>) -> Vec<u32> {
        let of = |device: &Device| plane.queues.requests[&device.name];
        plane.devices.iter().map(of).collect()
    }

    /// Looks at these times, which are longer apart than changes of a window.
    fn looked(plane: &mut KernelPlane<Told>, times: std::ops::RangeInclusive<u64>) {
        for at in times {
            plane.look(at * 600_000).unwrap();
        }
    }

    #[test]
    fn a_window_is_set_on_all_devices_and_put_back() {
        let mut plane = plane(&[("nbd14", 256), ("nbd15", 64)]);
        plane.follow(Some(&rules(0, 600, 0))).unwrap();
        assert_eq!(windows(&plane), [128, 64]);
        looked(&mut plane, 1..=3);
        assert_eq!(windows(&plane), [6, 6]);
        let writes = plane.queues.writes;
        looked(&mut plane, 4..=6);
        assert_eq!(
            plane.queues.writes, writes,
            "what is in force is not set again"
        );
        assert!(
            plane.used().unwrap().rules()[0]
                .observed
                .unwrap()
                .used_times
                > 0
        );
        assert_eq!(plane.observe()[1].window, Some(6.0));
        assert!(plane.moved_bytes() > 0);
        plane.follow(None).unwrap();
        assert_eq!(windows(&plane), [256, 64]);
        assert!(plane.used().is_none() && !plane.is_following());
        looked(&mut plane, 7..=9);
        assert_eq!(windows(&plane), [256, 64]);
    }

    #[test]
    fn other_rules_begin_with_the_same_window() {
        let mut plane = plane(&[("nbd15", 64)]);
        plane.follow(Some(&rules(0, 600, 0))).unwrap();
        looked(&mut plane, 1..=3);
        plane.follow(Some(&rules(100, 0, 0))).unwrap();
        assert_eq!(windows(&plane), [64]);
        looked(&mut plane, 4..=6);
        assert_eq!(windows(&plane), [64]);
        plane.follow(None).unwrap();
        assert_eq!(windows(&plane), [64]);
    }

    #[test]
    fn what_a_queue_cannot_do_is_refused_and_touches_nothing() {
        let mut plane = plane(&[("nbd15", 64)]);
        let turns = rules(0, 600, 0).with_active_files(2).unwrap();
        let one = rules(0, 600, 0).rules().to_vec();
        let more = RuleSet::with_axes(one, 4, 2).unwrap();
        for (wrong, said) in [
            (rules(0, 600, 7), "rule 1: tau_us = 7"),
            (turns, "active_files = 2"),
            (more, "axes = 4"),
        ] {
            let fault = plane.follow(Some(&wrong)).unwrap_err();
            assert!(fault.starts_with(said), "{fault}");
        }
        assert_eq!(plane.queues.writes, 0);
        plane.queues.requests.clear();
        let fault = plane.follow(Some(&rules(0, 600, 0))).unwrap_err();
        assert_eq!(fault, "windows.devices = \"nbd15\": is not there");
    }

    #[test]
    fn nothing_is_recorded_of_what_is_only_counted() {
        let mut plane = plane(&[("nbd15", 64)]);
        plane.follow(Some(&rules(0, 600, 0))).unwrap();
        let fault = plane.record(Duration::from_secs(1)).unwrap_err();
        assert!(fault.contains("CONFIG_BLK_DEV_IO_TRACE"), "{fault}");
        assert!(!fault.contains('\n') && plane.is_following());
    }

    #[test]
    fn a_device_that_is_anothers_leaves_all_as_they_were() {
        let mut plane = plane(&[("nbd14", 128), ("nbd15", 64)]);
        plane.queues.refuses = Some("nbd15".to_owned());
        assert!(plane.follow(Some(&rules(0, 600, 0))).is_err());
        assert_eq!(windows(&plane), [128, 64]);
        assert!(!plane.is_following());
        // With rules before, these go on.
        plane.queues.refuses = None;
        plane.follow(Some(&rules(0, 600, 0))).unwrap();
        looked(&mut plane, 1..=3);
        plane.queues.refuses = Some("nbd15".to_owned());
        assert!(plane.follow(Some(&rules(0, 900, 0))).is_err());
        plane.queues.refuses = None;
        looked(&mut plane, 4..=6);
        assert_eq!(windows(&plane), [6, 6]);
    }

    #[test]
    fn what_was_put_back_without_us_is_set_again() {
        let mut plane = plane(&[("nbd15", 64)]);
        plane.follow(Some(&rules(0, 600, 0))).unwrap();
        looked(&mut plane, 1..=3);
        plane.queues.news = Some("the keeper has ended".to_owned());
        assert!(plane.watch().is_some());
        assert_eq!(windows(&plane), [64]);
        looked(&mut plane, 4..=4);
        assert_eq!(windows(&plane), [6]);
        assert_eq!(plane.watch(), None);
    }

    #[test]
    fn a_window_that_cannot_be_set_is_told_and_tried_again() {
        let mut plane = plane(&[("nbd15", 64)]);
        plane.follow(Some(&rules(0, 600, 0))).unwrap();
        plane.queues.refuses = Some("nbd15".to_owned());
        plane.look(1_000_000).unwrap();
        assert!(plane.look(2_000_000).unwrap_err().contains("is another's"));
        plane.queues.refuses = None;
        plane.look(3_000_000).unwrap();
        assert_eq!(windows(&plane), [6]);
    }
}
