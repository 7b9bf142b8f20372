//! Puts back what a journal says was changed.
//!
//! Everything here works from the journal alone, so that the living keeper, the next one and
//! `ascard keeper --restore` do the same.

use std::cell::RefCell;
use std::fs::File;
use std::path::Path;

use crate::cgroup::{self, Cgroup};
use crate::fault::{Fault, Result};
use crate::file_id::FileId;
use crate::files;
use crate::images;
use crate::journal::{self, Alone, Change, Entry, Journal, Stale, Standing};
use crate::kernel;
use crate::knobs;
use crate::load;
use crate::locks::Held;
use crate::loops;
use crate::mounts;
use crate::report::{Pending, Report};
use crate::reverted;

const STILL_BUSY: &str = " (still busy: it goes with its last user)";

/// Undoes everything of one session: knobs at once, then processes, mounts, devices, files.
pub fn restore(journal: &mut Journal) -> Report {
    restore_under(Held::default(), journal)
}

/// The same under locks, which go once the knobs are back: what is done after that gives up loop devices, which
/// another session may take, and turn, at once.
pub fn restore_under(locks: Held, journal: &mut Journal) -> Report {
    let mut report = Report::default();
    let rebooted = journal.header().boot_id != kernel::boot_id();
    files::restore(journal, &mut report, rebooted);
    if !rebooted {
        knobs::restore(journal, &mut report);
        drop(locks);
        stop(journal);
        each(journal, &mut report, kill);
        each(journal, &mut report, end_load);
        each(journal, &mut report, unmount);
        each(journal, &mut report, write_cache);
        each(journal, &mut report, detach);
        each(journal, &mut report, ungroup);
        each(journal, &mut report, uncontrol);
    } else {
        forget_runtime(journal, &mut report);
    }
    each(journal, &mut report, directory);
    // First all names go, then, when this is dropped, the content.
    let remains = RefCell::new(Vec::new());
    each(journal, &mut report, |change| {
        file(change, rebooted, &remains)
    });
    report
}

/// What cannot wait: load and write-back of scratch file systems end now. Safe to do more than once.
pub fn stop(journal: &mut Journal) {
    let changes: Vec<Change> = journal
        .entries()
        .iter()
        .map(|entry| entry.change.clone())
        .collect();
    for change in &changes {
        if let Change::Cgroup { target } = change {
            Cgroup::existing(target).signal();
        }
    }
    for change in &changes {
        if let Change::Mount {
            target,
            expected,
            scratch: true,
        } = change
            && is_ours(target, expected)
            && !mounts::shut_down(target)
        {
            forgo_write_cache(journal, expected);
        }
    }
}

/// Where a file system cannot be shut down, its writes at least need not reach the disk before its end: to a loop
/// device without a write cache the kernel sends no flushes, and the image goes anyway.
fn forgo_write_cache(journal: &mut Journal, device: &Path) {
    let name = device.file_name().unwrap_or_default();
    let queue = Path::new("/sys/block").join(name);
    let target = queue.join("queue/write_cache");
    let Some(old) = std::fs::read_to_string(&target)
        .ok()
        .map(|text| text.trim().to_owned())
    else {
        return;
    };
    if queue.join("loop").exists()
        && old == "write back"
        && journal
            .add(vec![Change::WriteCache {
                target: target.clone(),
                old,
            }])
            .is_ok()
    {
        let _ = std::fs::write(&target, "write through");
    }
}

/// Which sessions of dead keepers are undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Those that did not end well, and those that nobody has confirmed in time.
    Left,
    /// And those that can still be confirmed.
    Unconfirmed,
    /// And those that are to stay.
    Everything,
}

impl Scope {
    fn covers(self, stale: &Stale) -> bool {
        match (&stale.standing, self) {
            (Standing::Open, _) | (_, Self::Everything) => true,
            (Standing::Unconfirmed(_), Self::Unconfirmed) => true,
            (Standing::Unconfirmed(it), Self::Left) => it.left(stale.journal.header()).is_none(),
            (Standing::Held, _) => false,
        }
    }
}

/// Undoes what dead keepers left.
pub fn restore_stale(directory: &Path, scope: Scope) -> Result<Report> {
    let mut report = Report::default();
    if !directory.exists() {
        return Ok(report);
    }
    let alone = Alone::wait(directory)?;
    for stale in journal::stale(directory, &alone, scope == Scope::Everything)? {
        match stale {
            Ok(mut stale) if scope.covers(&stale) => {
                let restored = restore(&mut stale.journal);
                if matches!(stale.standing, Standing::Unconfirmed(_)) {
                    reverted::note(directory, stale.journal.header(), &restored);
                }
                report.extend(restored);
            }
            Ok(_) => {}
            Err(fault) => report.failed.push(fault.message),
        }
    }
    let waiting = journal::waiting(directory);
    report.unconfirmed = waiting.iter().filter_map(Pending::of).collect();
    Ok(report)
}

/// What became of one change: None means that this step is not about it.
type Undone = Option<Result<Option<String>>>;

/// Undoes the changes that a step is about, the last one first.
fn each(journal: &mut Journal, report: &mut Report, step: impl Fn(&Change) -> Undone) {
    let entries: Vec<Entry> = journal.entries().iter().rev().cloned().collect();
    for entry in entries {
        match step(&entry.change) {
            None => {}
            Some(Ok(what)) => {
                report.restored.extend(what);
                if let Err(fault) = journal.undone(&[entry.n]) {
                    report.failed.push(fault.message);
                }
            }
            Some(Err(fault)) => report.failed.push(fault.message),
        }
    }
}

/// After a reboot there is nothing to put back but files.
fn forget_runtime(journal: &mut Journal, report: &mut Report) {
    let is_runtime = |change: &Change| {
        !matches!(
            change,
            Change::File { .. }
                | Change::Directory { .. }
                | Change::Content { .. }
                | Change::Command { .. }
        )
    };
    if let Err(fault) = journal.undone_where(is_runtime) {
        report.failed.push(fault.message);
    }
}

fn is_ours(mountpoint: &Path, device: &Path) -> bool {
    mounts::at(mountpoint)
        .is_ok_and(|mount| mount.is_some_and(|mount| Path::new(&mount.source) == device))
}

/// Empties a control group. It is removed later: its processes may still be dying.
fn kill(change: &Change) -> Undone {
    if let Change::Cgroup { target } = change {
        Cgroup::existing(target).kill();
    }
    None
}

/// Ends the load that was left behind on a file system which is unmounted next.
fn end_load(change: &Change) -> Undone {
    if let Change::Mount { target, .. } = change {
        load::kill_below(target);
    }
    None
}

fn unmount(change: &Change) -> Undone {
    let Change::Mount {
        target, expected, ..
    } = change
    else {
        return None;
    };
    Some(unmount_all(expected, |mount| mount == target))
}

/// Unmounts this device from the places meant. One that is covered by somebody else's mount is left to fail.
fn unmount_all(device: &Path, is_meant: impl Fn(&Path) -> bool) -> Result<Option<String>> {
    let mut what = None;
    for mount in mounts::list()?.into_iter().rev() {
        if Path::new(&mount.source) == device && is_meant(&mount.mountpoint) {
            let place = mount.mountpoint.display();
            if !is_ours(&mount.mountpoint, device) {
                return Err(Fault::failed(format!(
                    "{place}: something else is mounted there: unmount it first"
                )));
            }
            let still = if mounts::unmount_surely(&mount.mountpoint)? {
                ""
            } else {
                STILL_BUSY
            };
            what = Some(format!("mount {place}{still}"));
        }
    }
    Ok(what)
}

fn write_cache(change: &Change) -> Undone {
    let Change::WriteCache { target, old } = change else {
        return None;
    };
    // The device may be gone.
    let _ = std::fs::write(target, old);
    Some(Ok(None))
}

fn detach(change: &Change) -> Undone {
    let Change::Attach { expected, .. } = change else {
        return None;
    };
    Some(detach_all(expected))
}

fn detach_all(file: &FileId) -> Result<Option<String>> {
    let mut what = None;
    for device in loops::backed_by(file) {
        unmount_all(&device, |_| true)?;
        let still = if loops::detach(&device, file)? {
            ""
        } else {
            STILL_BUSY
        };
        what = Some(format!("loop device {}{still}", device.display()));
    }
    Ok(what)
}

fn file(change: &Change, rebooted: bool, remains: &RefCell<Vec<File>>) -> Undone {
    let Change::File { target, expected } = change else {
        return None;
    };
    let removed = images::remove(target, expected, rebooted).map(|removed| {
        let was_there = removed.is_some();
        remains.borrow_mut().extend(removed);
        was_there.then(|| format!("file {}", target.display()))
    });
    Some(removed)
}

fn ungroup(change: &Change) -> Undone {
    let Change::Cgroup { target } = change else {
        return None;
    };
    Some(
        Cgroup::existing(target)
            .remove()
            .map(|()| Some(format!("control group {}", target.display()))),
    )
}

fn uncontrol(change: &Change) -> Undone {
    let Change::Controller { target } = change else {
        return None;
    };
    Some(
        cgroup::disable_controller(target)
            .map(|()| Some(format!("controller in {}", target.display()))),
    )
}

fn directory(change: &Change) -> Undone {
    let Change::Directory { target } = change else {
        return None;
    };
    // Only an empty one goes; what it is a leftover of has been reported.
    Some(Ok(std::fs::remove_dir(target)
        .ok()
        .map(|()| format!("directory {}", target.display()))))
}
