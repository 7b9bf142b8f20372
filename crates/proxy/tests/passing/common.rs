//! What both ends of a proxied connection need.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use ascar_congestion::{Action, RuleSet};
use ascar_proxy::streams::Streams;
use ascar_random::Random;

pub fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("ascar-proxy-{}-{name}", std::process::id()));
    std::fs::create_dir(&path).unwrap();
    path
}

/// Writes in pieces of random lengths.
pub fn write_cut(mut to: &UnixStream, mut bytes: &[u8], random: &mut Random) {
    while !bytes.is_empty() {
        let most = if random.below(3) == 0 { 40 } else { 100_000 };
        let count = (1 + random.below(most) as usize).min(bytes.len());
        to.write_all(&bytes[..count]).unwrap();
        bytes = &bytes[count..];
    }
}

/// Puts other rules in force again and again.
pub fn change_rules(streams: &Streams, is_over: &AtomicBool, seed: u64) {
    let mut random = Random::new(seed);
    while !is_over.load(Ordering::SeqCst) {
        let action = Action {
            m100: 0,
            b100: 100 + random.below(900) as i32,
            tau_us: [0, 20, 5_000_000][random.below(3) as usize],
        };
        let rules = (random.below(3) > 0).then(|| RuleSet::uniform(action));
        streams.follow(rules);
        thread::sleep(Duration::from_micros(random.below(3_000)));
    }
}
