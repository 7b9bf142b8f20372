//! Writes knobs, and puts them back.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::catalogue;
use crate::fault::{Fault, Result};
use crate::journal::{Change, Entry, Journal};
use crate::knob::Knob;
use crate::protocol::Scalar;
use crate::report::{LeftAlone, Report};

/// A knob and what it may be set to.
#[derive(Debug, Serialize)]
pub struct Reading {
    knob: String,
    value: Scalar,
    choices: Vec<String>,
    minimum: Option<i64>,
    maximum: Option<i64>,
}

/// What a write did.
#[derive(Debug, Serialize)]
pub struct Written {
    knob: String,
    old: Scalar,
    effective: Scalar,
    coupled: BTreeMap<String, Scalar>,
}

/// Reads a knob.
pub fn read(name: &str) -> Result<Reading> {
    let knob = catalogue::resolve(name)?;
    let text = knob.present()?;
    let bounds = knob.bounds();
    Ok(Reading {
        value: knob.scalar(&text),
        choices: knob.choices(),
        minimum: bounds.map(|bounds| bounds.0),
        maximum: bounds.map(|bounds| bounds.1),
        knob: knob.name,
    })
}

/// Sets a knob: checks, journals it with those it changes, writes, and reads all of them back. The caller holds
/// the knob's lock. What is in force afterwards may differ from `value` where the kernel rounds.
pub fn write(journal: &mut Journal, knob: &Knob, value: &Scalar) -> Result<Written> {
    let old = knob.present()?;
    let text = knob.check(value)?;
    let mut coupled = Vec::new();
    if text != old {
        coupled = knob.coupled();
        let before: Vec<Option<String>> = coupled.iter().map(Knob::read).collect();
        let mut changes = vec![change(knob, &old, Some(text.clone()))];
        for (other, old) in coupled.iter().zip(&before) {
            changes.extend(old.as_ref().map(|old| change(other, old, None)));
        }
        journal.record(changes)?;
        let written = knob.write(&text);
        if knob.rule.coupling == catalogue::Coupling::Limits {
            // Nobody who sets a limit of the queue asks for another read-ahead.
            for (other, old) in coupled.iter().zip(&before) {
                if let Some(old) = old.as_ref().filter(|_| other.read() != *old) {
                    // What reads back says whether it worked.
                    let _ = other.write(old);
                }
            }
        }
        // Also what an earlier write has changed and this one resets.
        let is_near = |story: &Story| story.knob.cluster() == knob.cluster();
        for story in stories(journal.entries()).into_iter().filter(is_near) {
            journal.found(story.n, story.knob.read())?;
        }
        if let Err(error) = written {
            return Err(Fault::failed(format!(
                "{} = {value}: the kernel refuses it: {error}",
                knob.name
            )));
        }
    }
    let effective = knob.present()?;
    if knob.rule.values == catalogue::Values::Listed && effective != text {
        return Err(Fault::failed(format!(
            "{} = {value}: reads {effective:?} after the write",
            knob.name
        )));
    }
    let coupled = coupled
        .iter()
        .filter_map(|knob| Some((knob.name.clone(), knob.scalar(&knob.read()?))))
        .collect();
    Ok(Written {
        old: knob.scalar(&old),
        effective: knob.scalar(&effective),
        coupled,
        knob: knob.name.clone(),
    })
}

fn change(knob: &Knob, old: &str, expected: Option<String>) -> Change {
    Change::Knob {
        target: knob.name.clone(),
        old: old.to_owned(),
        expected,
    }
}

/// What the journal says about one knob.
struct Story {
    knob: Knob,
    n: u64,
    /// Before the session's first write.
    old: String,
    /// What the last write asked for.
    expected: Option<String>,
    /// What it read after the last write; None while that is not known.
    found: Option<Option<String>>,
}

impl Story {
    /// Whether somebody else has written the knob meanwhile. When the keeper died between writing and reading
    /// back, the value in force is taken for its own.
    fn is_foreign(&self, now: Option<&str>) -> bool {
        match (&self.found, now) {
            (_, Some(now)) if now == self.old => false,
            // The device, file system or scheduler it belonged to is gone.
            (_, None) => false,
            (None, _) => false,
            (Some(found), now) => found.as_deref() != now,
        }
    }

    fn expected_text(&self) -> String {
        self.found
            .clone()
            .flatten()
            .or_else(|| self.expected.clone())
            .unwrap_or_default()
    }
}

/// Puts every journaled knob back, cluster by cluster, and reads all of them back.
pub fn restore(journal: &mut Journal, report: &mut Report) {
    let mut clusters: BTreeMap<String, Vec<Story>> = BTreeMap::new();
    for story in stories(journal.entries()) {
        clusters
            .entry(story.knob.cluster())
            .or_default()
            .push(story);
    }
    for (_, mut cluster) in clusters {
        cluster.sort_by_key(|story| story.knob.rank());
        let numbers: Vec<u64> = cluster.iter().map(|story| story.n).collect();
        let failed_before = report.failed.len();
        restore_cluster(&cluster, report);
        if report.failed.len() > failed_before {
            continue;
        }
        if let Err(fault) = journal.undone(&numbers) {
            report.failed.push(fault.message);
        }
    }
}

fn stories(entries: &[Entry]) -> Vec<Story> {
    let story = |entry: &Entry| {
        let Change::Knob {
            target,
            old,
            expected,
        } = &entry.change
        else {
            return None;
        };
        let knob = catalogue::resolve(target).ok()?;
        let (old, expected, found) = (old.clone(), expected.clone(), entry.found.clone());
        Some(Story {
            knob,
            n: entry.n,
            old,
            expected,
            found,
        })
    };
    entries.iter().filter_map(story).collect()
}

fn restore_cluster(cluster: &[Story], report: &mut Report) {
    let now: Vec<Option<String>> = cluster.iter().map(|story| story.knob.read()).collect();
    let changed = |(story, now): &(&Story, &Option<String>)| now.as_ref() != Some(&story.old);
    let foreign = |(story, now): (&Story, &Option<String>)| story.is_foreign(now.as_deref());
    if !is_begun(cluster, &now) && cluster.iter().zip(&now).any(foreign) {
        for (story, now) in cluster.iter().zip(&now).filter(changed) {
            if let Some(now) = now {
                report.left_alone.push(LeftAlone {
                    target: story.knob.name.clone(),
                    expected: story.expected_text(),
                    found: now.clone(),
                });
            }
        }
        return;
    }
    // Once more where a later write disturbed an earlier one.
    for _ in 0..2 {
        for story in cluster {
            if story.knob.read().is_some_and(|now| now != story.old) && !is_zeroed(story, cluster) {
                // The read-back below says whether it worked.
                let _ = story.knob.write(&story.old);
            }
        }
    }
    for (story, before) in cluster.iter().zip(&now) {
        match story.knob.read() {
            Some(now) if now != story.old => report.failed.push(format!(
                "{}: is {now:?}, was {:?}: set it back by hand",
                story.knob.name, story.old
            )),
            Some(_) if before.as_ref() != Some(&story.old) => {
                report.restored.push(story.knob.name.clone())
            }
            _ => {}
        }
    }
}

/// Whether a scheduler, or a limit of the queue, that was changed reads as before already: a restore that was killed has
/// got so far. With it the kernel has reset what belongs to it, which therefore says nothing of somebody else's writes.
fn is_begun(cluster: &[Story], now: &[Option<String>]) -> bool {
    cluster.iter().zip(now).any(|(story, now)| {
        matches!(
            story.knob.rule.coupling,
            catalogue::Coupling::Scheduler | catalogue::Coupling::Limits
        ) && story
            .expected
            .as_ref()
            .is_some_and(|expected| *expected != story.old)
            && now.as_ref() == Some(&story.old)
    })
}

/// Of a pair that zero each other the one that was zero is not written: writing the other one zeroes it.
fn is_zeroed(story: &Story, cluster: &[Story]) -> bool {
    matches!(story.knob.rule.coupling, catalogue::Coupling::Zeroes(_))
        && story.old == "0"
        && cluster
            .iter()
            .any(|other| other.knob.name != story.knob.name && other.old != "0")
}
