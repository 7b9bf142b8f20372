//! A Lustre client's parameters, the texts that `lctl get_param` prints. Names are shortened: `lustrefs-OST0000-osc-ffff88105db50000`
//! is `lustrefs-OST0000`, for the rest changes with every mount.
//!
//! A stock client has no EWMA of acknowledgements and no ratio of process times: both are made here, from how many
//! requests were completed and how long they waited (thesis 3.1.2).

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::Collector;
use super::text::{number, read};
use crate::sample::Sample;

/// Where they may be; the later Lustre is, the more is in sysfs, and the histograms are in debugfs.
const ROOTS: [&str; 3] = [
    "/sys/fs/lustre",
    "/proc/fs/lustre",
    "/sys/kernel/debug/lustre",
];
/// How often we look for devices that came or went.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// Most devices of a kind.
const DEVICES_MAX: usize = 1024;
/// States of a connection, in the order of their numbers.
const STATES: [&str; 11] = [
    "FULL",
    "NEW",
    "CLOSED",
    "DISCONN",
    "CONNECTING",
    "REPLAY",
    "REPLAY_LOCKS",
    "REPLAY_WAIT",
    "RECOVER",
    "EVICTED",
    "IDLE",
];

#[derive(Debug)]
pub struct Lustre {
    roots: Vec<PathBuf>,
    devices: Vec<Device>,
    looked: Option<Instant>,
    /// The shortest mean wait seen, by device.
    wait_min_us: HashMap<String, f64>,
}

#[derive(Debug)]
struct Device {
    kind: &'static str,
    name: String,
    /// The same device in several trees.
    folders: Vec<PathBuf>,
}

impl Device {
    fn text(&self, file: &str) -> Option<String> {
        self.folders
            .iter()
            .find_map(|folder| read(&folder.join(file)))
    }
}

impl Lustre {
    pub fn new(root: Option<PathBuf>) -> Self {
        let roots = match root {
            Some(root) => vec![root],
            None => ROOTS.iter().map(PathBuf::from).collect(),
        };
        Self {
            roots,
            devices: Vec::new(),
            looked: None,
            wait_min_us: HashMap::new(),
        }
    }

    fn look(&mut self) {
        self.devices.clear();
        for kind in ["osc", "mdc", "llite"] {
            for folder in self.roots.iter().flat_map(|root| folders(&root.join(kind))) {
                let Some(full) = folder.file_name().and_then(|name| name.to_str()) else {
                    continue;
                };
                let name = short(full).to_owned();
                let known = self
                    .devices
                    .iter()
                    .position(|it| it.kind == kind && it.name == name);
                match known {
                    Some(place) => self.devices[place].folders.push(folder),
                    None if self.devices.len() < 3 * DEVICES_MAX => self.devices.push(Device {
                        kind,
                        name,
                        folders: vec![folder],
                    }),
                    None => {}
                }
            }
        }
    }
}

fn folders(path: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(path)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .take(DEVICES_MAX)
        .collect();
    found.sort();
    found
}

/// Without the mount's address.
pub fn short(name: &str) -> &str {
    let Some((before, address)) = name.rsplit_once('-') else {
        return name;
    };
    let is_address = address.len() >= 8 && address.bytes().all(|it| it.is_ascii_hexdigit());
    if !is_address {
        return name;
    }
    before
        .strip_suffix("-osc")
        .or(before.strip_suffix("-mdc"))
        .unwrap_or(before)
}

impl Collector for Lustre {
    fn sample(&mut self, sample: &mut Sample) {
        if self.looked.is_none_or(|at| at.elapsed() >= LOOK_EVERY) {
            self.looked = Some(Instant::now());
            self.look();
        }
        for device in &self.devices {
            let key = |what: &str| format!("lustre.{}.{what}", device.name);
            match device.kind {
                "llite" => sample_llite(device, sample),
                kind => {
                    let prefix = if kind == "mdc" { "mdc." } else { "" };
                    let key = |what: &str| key(&format!("{prefix}{what}"));
                    sample_requests(device, &key, &mut self.wait_min_us, sample);
                }
            }
        }
    }
}

/// A line of `stats`: `name  count samples [unit] min max sum sumsq`.
fn stats(text: &str) -> impl Iterator<Item = (&str, f64, Option<f64>)> {
    text.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [name, count, "samples", _, rest @ ..] = words.as_slice() else {
            return None;
        };
        let sum = rest.get(2).and_then(|word| word.parse().ok());
        Some((*name, count.parse().ok()?, sum))
    })
}

fn sample_requests(
    device: &Device,
    key: &dyn Fn(&str) -> String,
    wait_min_us: &mut HashMap<String, f64>,
    sample: &mut Sample,
) {
    if let Some(text) = device.text("stats") {
        let found: Vec<_> = stats(&text).collect();
        let get = |name: &str| {
            found
                .iter()
                .find(|it| it.0 == name)
                .map(|it| (it.1, it.2.unwrap_or(0.0)))
        };
        let is_osc = device.kind == "osc";
        for (name, what) in [
            ("read_bytes", "read_bytes_per_s"),
            ("write_bytes", "write_bytes_per_s"),
        ] {
            if is_osc {
                // A client that has not read yet has no line for it.
                sample.rate(&key(what), get(name).map_or(0.0, |it| it.1));
            }
        }
        if let Some((count, sum_us)) = get("req_waittime") {
            sample.rate(&key("replies_per_s"), count);
            sample.ratio(&key("wait_us"), sum_us, count, 1.0);
            // The gap between two replies, of the time that passed.
            if let Some((growth, seconds)) = sample.growth(&key("\u{0}gap"), count) {
                let gap = if growth > 0.0 {
                    seconds * 1e6 / growth
                } else {
                    0.0
                };
                sample.level(&key("reply_gap_us"), gap);
            }
            let wait = f64::from(sample.value(&key("wait_us")));
            if wait > 0.0 {
                let least = wait_min_us.entry(key("")).or_insert(wait);
                *least = least.min(wait);
                sample.level(&key("wait_ratio_percent"), 100.0 * wait / *least);
            }
        }
        if let Some((count, sum)) = get("req_active") {
            sample.ratio(&key("active_mean"), sum, count, 1.0);
        }
    }
    for file in [
        "max_rpcs_in_flight",
        "max_pages_per_rpc",
        "max_dirty_mb",
        "cur_dirty_bytes",
        "cur_grant_bytes",
        "checksums",
        "max_mod_rpcs_in_flight",
    ] {
        if let Some(value) = device.text(file).as_deref().and_then(number) {
            sample.level(&key(file), value);
        }
    }
    if let Some(text) = device.text("rpc_stats") {
        for line in text.lines() {
            let Some((name, value)) = line.split_once(':') else {
                continue;
            };
            let what = match name.trim() {
                "read RPCs in flight" => "reads_in_flight",
                "write RPCs in flight" => "writes_in_flight",
                "pending write pages" => "pending_write_pages",
                "pending read pages" => "pending_read_pages",
                "modify_RPCs_in_flight" => "modifies_in_flight",
                // The histograms begin.
                "1" | "0" => break,
                _ => continue,
            };
            if let Some(value) = number(value) {
                sample.level(&key(what), value);
            }
        }
    }
    if let Some(text) = device.text("import") {
        for line in text.lines() {
            let Some((name, value)) = line.trim().split_once(':') else {
                continue;
            };
            match (name, value.trim()) {
                ("state", state) => {
                    let place = STATES
                        .iter()
                        .position(|it| *it == state)
                        .unwrap_or(STATES.len());
                    sample.level(&key("state"), place as f64);
                }
                ("inflight", value) => {
                    if let Some(value) = number(value) {
                        sample.level(&key("in_flight"), value);
                    }
                }
                ("timeouts", value) => {
                    if let Some(value) = number(value) {
                        sample.rate(&key("timeouts_per_s"), value);
                    }
                }
                _ => {}
            }
        }
    }
}

fn sample_llite(device: &Device, sample: &mut Sample) {
    let key = |what: &str| format!("lustre.{}.{what}", device.name);
    if let Some(text) = device.text("stats") {
        for (name, count, sum) in stats(&text) {
            match name {
                "read_bytes" | "write_bytes" => {
                    sample.rate(&key(&format!("{name}_per_s")), sum.unwrap_or(0.0));
                    sample.rate(
                        &key(&format!("{}_calls_per_s", &name[..name.len() - 6])),
                        count,
                    );
                }
                "open" | "close" | "getattr" | "setattr" | "readdir" | "truncate" | "unlink"
                | "create" | "fsync" => {
                    sample.rate(&key(&format!("{name}_per_s")), count);
                }
                _ => {}
            }
        }
    }
    if let Some(text) = device.text("read_ahead_stats") {
        for (name, count, _) in stats_of_words(&text) {
            if matches!(name.as_str(), "hits" | "misses") {
                sample.rate(&key(&format!("read_ahead_{name}_per_s")), count);
            }
        }
    }
    for file in [
        "max_read_ahead_mb",
        "max_read_ahead_per_file_mb",
        "statahead_max",
    ] {
        if let Some(value) = device.text(file).as_deref().and_then(number) {
            sample.level(&key(file), value);
        }
    }
    let cached = device.text("max_cached_mb").unwrap_or_default();
    if let Some(used) = cached
        .lines()
        .find_map(|line| line.trim().strip_prefix("used_mb:"))
        .and_then(number)
    {
        sample.level(&key("cached_bytes"), used * 1_048_576.0);
    }
}

/// `read_ahead_stats` names its lines by several words: `failed grab_cache_page  3 samples [pages]`.
fn stats_of_words(text: &str) -> impl Iterator<Item = (String, f64, ())> {
    text.lines().filter_map(|line| {
        let (before, _) = line.split_once(" samples [")?;
        let (name, count) = before.trim().rsplit_once(char::is_whitespace)?;
        Some((name.trim().to_owned(), count.parse().ok()?, ()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Tree(PathBuf);

    impl Tree {
        fn new(name: &str) -> Self {
            let path =
                std::env::temp_dir().join(format!("ascar-lustre-{name}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&path);
            Self(path)
        }

        fn put(&self, file: &str, text: &str) {
            let path = self.0.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    const OSC: &str = "osc/fs-OST0000-osc-ffff9a0b1c2d3e4f";

    fn osc(tree: &Tree, requests: u64, wait_us: u64, written: u64, units: (&str, &str)) {
        let (us, requests_unit) = units;
        tree.put(
            &format!("{OSC}/stats"),
            &format!(
                "snapshot_time  1600000000.5 secs.nsecs\nreq_waittime  {requests} samples [{us}] 69 134 {wait_us} 9\n\
                 req_active  {requests} samples [{requests_unit}] 1 17 {} 1\nwrite_bytes  7 samples [bytes] 4096 4 {written} 1\n",
                requests * 3
            ),
        );
    }

    #[test]
    fn a_client_of_either_version_is_read() {
        for units in [("usec", "reqs"), ("usecs", "reqs")] {
            let tree = Tree::new(units.0);
            tree.put(&format!("{OSC}/max_rpcs_in_flight"), "8\n");
            tree.put(&format!("{OSC}/cur_dirty_bytes"), "4096\n");
            tree.put(
                &format!("{OSC}/rpc_stats"),
                "snapshot_time: 1 (secs.nsecs)\nread RPCs in flight:  2\nwrite RPCs in flight: 6\npending write pages:  1244\n\n\
                 \t\tread\t\twrite\npages per rpc  rpcs\n1:\t\t 0 0 0 | 99 0 0\nread RPCs in flight: 77\n",
            );
            tree.put(
                &format!("{OSC}/import"),
                "import:\n    state: DISCONN\n    connection:\n       failover_nids: [ \"1@tcp\" ]\n    rpcs:\n       inflight: 8\n       timeouts: 0\n       avg_waittime: 6054 usec\n",
            );
            tree.put(
                "llite/fs-ffff9a0b1c2d3e4f/stats",
                "open   5 samples [regs]\nread_bytes 1 samples [bytes] 1 1 4194304\n",
            );
            tree.put(
                "llite/fs-ffff9a0b1c2d3e4f/max_cached_mb",
                "users: 9\nmax_cached_mb: 32064\nused_mb: 3\n",
            );
            let mut lustre = Lustre::new(Some(tree.0.clone()));
            let mut sample = Sample::new(vec![], vec![], None);
            let start = Instant::now();
            for (second, requests, wait_us) in
                [(0, 100, 10_000), (1, 200, 40_000), (2, 250, 45_000)]
            {
                osc(&tree, requests, wait_us, requests * 1000, units);
                sample.begin(start + Duration::from_secs(second));
                lustre.sample(&mut sample);
            }
            for (name, expected) in [
                ("fs-OST0000.write_bytes_per_s", 50_000.0),
                ("fs-OST0000.read_bytes_per_s", 0.0),
                ("fs-OST0000.replies_per_s", 50.0),
                ("fs-OST0000.wait_us", 100.0),
                ("fs-OST0000.wait_ratio_percent", 100.0),
                ("fs-OST0000.reply_gap_us", 20_000.0),
                ("fs-OST0000.active_mean", 3.0),
                ("fs-OST0000.max_rpcs_in_flight", 8.0),
                ("fs-OST0000.reads_in_flight", 2.0),
                ("fs-OST0000.pending_write_pages", 1244.0),
                ("fs-OST0000.state", 3.0),
                ("fs-OST0000.in_flight", 8.0),
                ("fs-OST0000.timeouts_per_s", 0.0),
                ("fs.open_per_s", 0.0),
                ("fs.cached_bytes", 3_145_728.0),
            ] {
                assert_eq!(sample.value(&format!("lustre.{name}")), expected, "{name}");
            }
        }
    }

    #[test]
    fn a_wait_that_doubles_shows_in_the_ratio() {
        let tree = Tree::new("ratio");
        let mut lustre = Lustre::new(Some(tree.0.clone()));
        let mut sample = Sample::new(vec![], vec![], None);
        let start = Instant::now();
        for (second, wait_us) in [(0, 0), (1, 1000), (2, 3000)] {
            osc(&tree, second * 10, wait_us, 0, ("usec", "reqs"));
            sample.begin(start + Duration::from_secs(second));
            lustre.sample(&mut sample);
        }
        assert_eq!(sample.value("lustre.fs-OST0000.wait_ratio_percent"), 200.0);
    }

    #[test]
    fn garbage_and_nothing_are_no_indicators() {
        let tree = Tree::new("garbage");
        tree.put(
            &format!("{OSC}/stats"),
            "\u{0}\u{1}\nreq_waittime many samples [usec]\nwrite_bytes\n",
        );
        tree.put(&format!("{OSC}/max_rpcs_in_flight"), "");
        tree.put(&format!("{OSC}/import"), "state\n: :\n");
        let mut sample = Sample::new(vec![], vec![], None);
        sample.begin(Instant::now());
        Lustre::new(Some(tree.0.clone())).sample(&mut sample);
        Lustre::new(Some("/nowhere".into())).sample(&mut sample);
        assert!(
            sample.values().iter().all(|value| value.is_nan()),
            "{:?}",
            sample.names()
        );
    }

    #[test]
    fn names_lose_the_address_of_the_mount() {
        assert_eq!(
            short("lustrefs-OST0000-osc-ffff88105db50000"),
            "lustrefs-OST0000"
        );
        assert_eq!(
            short("lustrefs-MDT0000-mdc-ffff88105db50000"),
            "lustrefs-MDT0000"
        );
        assert_eq!(short("lustrefs-ffff88105db50000"), "lustrefs");
        assert_eq!(short("plain"), "plain");
    }
}
