//! Which knobs exist, where they live, what they may be set to, and which others they change.

use std::path::{Path, PathBuf};

use crate::fault::{Fault, Result};
use crate::knob::Knob;

/// What a knob may be set to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// Whole numbers, both ends included.
    Range(i64, i64),
    /// Powers of two, both ends included; zero as well where it is the lower end.
    PowersOfTwo(i64, i64),
    /// Whole numbers from the lower end up to what a sibling file says.
    UpTo(i64, &'static str),
    /// One of the words that the knob's own file lists, the one in brackets being in force.
    Listed,
    /// Whole numbers up to this, kept in a file that has a line for each limited device; zero is no limit.
    Limit(i64),
}

/// What else a write changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coupling {
    /// Nothing.
    Alone,
    /// Writing one sets the other to zero.
    Zeroes(&'static str),
    /// A new scheduler brings its own queue depth and tunables, and may switch write-back throttling.
    Scheduler,
    /// mq-deadline derives `async_depth` from the queue depth.
    Depth,
    /// Is reset by a new scheduler.
    Scheduled,
    /// A limit of a queue, with which the kernel computes the read-ahead anew.
    Limits,
    /// Is computed anew with the limits of its queue.
    Limited,
    /// Lustre raises these siblings with it where they would be too low, and never lowers them again.
    Raises(&'static [&'static str]),
    /// Is raised by siblings.
    Raised,
}

/// A family of knobs. `<dev>` stands for a device's name.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// The knob's name.
    pub pattern: &'static str,
    /// Its file.
    pub path: &'static str,
    /// What is allowed.
    pub values: Values,
    /// What else changes.
    pub coupling: Coupling,
}

const fn rule(
    pattern: &'static str,
    path: &'static str,
    values: Values,
    coupling: Coupling,
) -> Rule {
    Rule {
        pattern,
        path,
        values,
        coupling,
    }
}

use Coupling::{Alone, Depth, Limited, Limits, Raised, Raises, Scheduled, Scheduler, Zeroes};
use Values::{Limit, Listed, PowersOfTwo, Range, UpTo};

/// Where a Lustre client has its parameters: what `lctl get_param` and `set_param` read and write. Newer clients have
/// them in sysfs.
const LUSTRE_ROOTS: [&str; 2] = ["/sys/fs/lustre", "/proc/fs/lustre"];

/// The whole allow-list, from `python/ascar/catalogues/linux.toml`: fixed when this is built, never read when it runs.
pub static RULES: &[Rule] = include!(concat!(env!("OUT_DIR"), "/rules.rs"));

/// Finds a knob by its name. Whether this machine has it shows when it is read.
pub fn resolve(name: &str) -> Result<Knob> {
    for rule in RULES {
        let device = match rule.pattern.split_once("<dev>") {
            None if rule.pattern == name => None,
            None => continue,
            Some((before, after)) => {
                match name
                    .strip_prefix(before)
                    .and_then(|rest| rest.strip_suffix(after))
                {
                    Some(device) if is_device_name(device) => Some(device.to_owned()),
                    _ => continue,
                }
            }
        };
        let path = match &device {
            Some(device) => rule.path.replace("<dev>", device),
            None => rule.path.to_owned(),
        };
        return Ok(Knob {
            name: name.to_owned(),
            device,
            path: here(path),
            rule,
        });
    }
    Err(Fault::input(format!(
        "knob = {name:?}: unknown; allowed are {}",
        patterns_like(name)
    )))
}

/// The file, where this machine's Lustre has it.
fn here(path: String) -> PathBuf {
    let [new, old] = LUSTRE_ROOTS;
    match path.strip_prefix(new) {
        Some(rest) if !Path::new(&path).exists() && Path::new(old).exists() => {
            PathBuf::from(format!("{old}{rest}"))
        }
        _ => PathBuf::from(path),
    }
}

/// The patterns a mistyped name may have meant: those of its family, or all.
fn patterns_like(name: &str) -> String {
    let family = name.split('.').next().unwrap_or_default();
    let patterns = || RULES.iter().map(|rule| rule.pattern);
    let related: Vec<_> = patterns()
        .filter(|pattern| pattern.split('.').next() == Some(family))
        .collect();
    if related.is_empty() {
        patterns().collect::<Vec<_>>().join(", ")
    } else {
        related.join(", ")
    }
}

/// Kernel names of devices, and numbers such as `0:45`: no dots, no slashes, so that a name cannot leave its directory.
fn is_device_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 128
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_!:".contains(&byte))
}
