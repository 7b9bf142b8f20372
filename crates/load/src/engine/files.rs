//! Flowops on whole files: create, open, close, delete, stat, fsync.

use std::io;
use std::time::Duration;

use super::now_ns;
use super::plan::{Plan, Step};
use super::slot::{OpenFile, Place};
use super::trace::Event;
use super::worker::{Undone, Worker};
use crate::LoadError;
use crate::data::tree::{Tree, UNKNOWN_BYTES};

/// How long a step waits for a file before its round is given up.
const PATIENCE_NS: u64 = 1_000_000_000;
/// Waits look this often whether the load is to end.
const SLICE: Duration = Duration::from_millis(50);

/// An event that began and ended at these times, without bytes.
fn event(step: usize, file: (usize, u32), begun_ns: u64) -> Event {
    Event {
        begun_ns,
        nanos: now_ns() - begun_ns,
        step,
        file,
        offset: 0,
        bytes: 0,
    }
}

/// Try until a file is had, the load ends, or patience does.
pub(super) fn wait_for(
    plan: &Plan,
    tree: &Tree,
    mut pick: impl FnMut(&Tree) -> Option<u32>,
) -> Result<u32, Undone> {
    if let Some(entry) = pick(tree) {
        return Ok(entry);
    }
    let begun = now_ns();
    loop {
        let changes = tree.changes();
        if let Some(entry) = pick(tree) {
            return Ok(entry);
        }
        if plan.control.stopped() {
            return Err(Undone::Stop);
        }
        if now_ns() - begun > PATIENCE_NS {
            return Err(Undone::Starved);
        }
        tree.wait_change(changes, SLICE);
    }
}

impl Worker {
    pub(super) fn open_file(
        &mut self,
        plan: &Plan,
        place: usize,
        step: &Step,
    ) -> Result<(), Undone> {
        let fd = step.flowop.fd.unwrap_or(0);
        let event = self.open_at(plan, place, step, Place::Slot(fd))?;
        Ok(self.done(plan, step, event)?)
    }

    /// Open a file chosen at random and keep it at a place.
    pub(super) fn open_at(
        &mut self,
        plan: &Plan,
        place: usize,
        step: &Step,
        keep: Place,
    ) -> Result<Event, Undone> {
        let at = step.flowop.fileset.expect("checked");
        let tree = &plan.trees[at];
        let draw = self.streams[place].draw();
        let entry = wait_for(plan, tree, |tree| tree.pick(draw))?;
        Ok(self.open_entry(plan, place, step, keep, entry)?)
    }

    /// Open a file that is in use already, and keep it at a place.
    pub(super) fn open_entry(
        &mut self,
        plan: &Plan,
        place: usize,
        step: &Step,
        keep: Place,
        entry: u32,
    ) -> Result<Event, LoadError> {
        let at = step.flowop.fileset.expect("checked");
        let tree = &plan.trees[at];
        let opened = self.open_path(tree, place, step, (at, entry));
        let (file, event) = opened.map_err(|error| {
            tree.release(entry);
            plan.failed("open", (at, entry), &error)
        })?;
        let size = &tree.size_bytes[entry as usize];
        if size.load(std::sync::atomic::Ordering::Relaxed) == UNKNOWN_BYTES {
            learn_size(file.fd, size);
        }
        *self.at(keep) = Some(file);
        Ok(event)
    }

    /// Open a file by its path, with the flags of the step.
    fn open_path(
        &mut self,
        tree: &Tree,
        place: usize,
        step: &Step,
        (at, entry): (usize, u32),
    ) -> Result<(OpenFile, Event), io::Error> {
        let name = tree.layout.path(entry, &mut self.path);
        let begun_ns = now_ns();
        // SAFETY: the name ends with NUL, the directory is open.
        let fd = unsafe { libc::openat(tree.root(), name.as_ptr(), step.open_flags, 0o644) };
        let event = event(place, (at, entry), begun_ns);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        let file = OpenFile {
            fd,
            tree: at,
            entry,
            position: 0,
            direct: step.flowop.directio,
            removed: false,
        };
        Ok((file, event))
    }

    pub(super) fn create_file(
        &mut self,
        plan: &Plan,
        place: usize,
        step: &Step,
    ) -> Result<(), Undone> {
        let at = step.flowop.fileset.expect("checked");
        let tree = &plan.trees[at];
        let draw = self.streams[place].draw();
        if step.runs_dry && tree.present() == tree.entries() as usize {
            plan.control.finish();
            return Err(Undone::Stop);
        }
        let entry = wait_for(plan, tree, |tree| tree.pick_to_create(draw))?;
        let opened = self.open_path(tree, place, step, (at, entry));
        let (file, event) = opened.map_err(|error| plan.failed("create", (at, entry), &error))?;
        tree.created(entry);
        self.slots[step.flowop.fd.unwrap_or(0)] = Some(file);
        Ok(self.done(plan, step, event)?)
    }

    pub(super) fn close_file(
        &mut self,
        plan: &Plan,
        place: usize,
        step: &Step,
    ) -> Result<(), Undone> {
        if !self.queue.wait(0, &plan.control) {
            return Err(Undone::Stop);
        }
        let file = self.slots[step.flowop.fd.unwrap_or(0)]
            .take()
            .expect("checked");
        let begun_ns = now_ns();
        // SAFETY: the descriptor is this thread's own, and was taken out of its slot.
        let status = unsafe { libc::close(file.fd) };
        let event = event(place, (file.tree, file.entry), begun_ns);
        let error = io::Error::last_os_error();
        if !file.removed {
            plan.trees[file.tree].release(file.entry);
        }
        if status < 0 {
            return Err(plan.failed("close", (file.tree, file.entry), &error).into());
        }
        Ok(self.done(plan, step, event)?)
    }

    /// Close what is open at a place, untimed.
    pub(super) fn close_place(&mut self, plan: &Plan, place: Place) {
        if let Some(file) = self.at(place).take() {
            // SAFETY: the descriptor is this thread's own, and was taken out of its place.
            unsafe { libc::close(file.fd) };
            if !file.removed {
                plan.trees[file.tree].release(file.entry);
            }
        }
    }

    /// Close all numbered files, untimed.
    pub(super) fn close_slots(&mut self, plan: &Plan) {
        if self.queue.wait(0, &plan.control) {
            for fd in 0..self.slots.len() {
                self.close_place(plan, Place::Slot(fd));
            }
        }
    }

    pub(super) fn delete_file(
        &mut self,
        plan: &Plan,
        place: usize,
        step: &Step,
    ) -> Result<(), Undone> {
        let draw = self.streams[place].draw();
        let open = step
            .flowop
            .fd
            .filter(|fd| self.slots[*fd].is_some_and(|file| !file.removed));
        let (at, entry) = match (open, step.flowop.fileset) {
            (Some(fd), _) => {
                let file = self.slots[fd].expect("just seen");
                // Others that have it open may wait to remove it too: waiting for each other would be in vain.
                if !plan.trees[file.tree].take_used(file.entry) {
                    plan.starved
                        .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    return Ok(());
                }
                (file.tree, file.entry)
            }
            (None, Some(at)) => {
                let tree = &plan.trees[at];
                if step.runs_dry && tree.present() == 0 {
                    plan.control.finish();
                    return Err(Undone::Stop);
                }
                (at, wait_for(plan, tree, |tree| tree.pick_to_delete(draw))?)
            }
            (None, None) => return Err(Undone::Starved),
        };
        let tree = &plan.trees[at];
        let name = tree.layout.path(entry, &mut self.path);
        let begun_ns = now_ns();
        // SAFETY: the name ends with NUL, the directory is open.
        let status = unsafe { libc::unlinkat(tree.root(), name.as_ptr(), 0) };
        let event = event(place, (at, entry), begun_ns);
        if status < 0 {
            return Err(plan
                .failed("delete", (at, entry), &io::Error::last_os_error())
                .into());
        }
        tree.deleted(entry);
        if let Some(file) = open.and_then(|fd| self.slots[fd].as_mut()) {
            file.removed = true;
        }
        Ok(self.done(plan, step, event)?)
    }

    pub(super) fn stat_file(
        &mut self,
        plan: &Plan,
        place: usize,
        step: &Step,
    ) -> Result<(), Undone> {
        // SAFETY: all-zero bytes are a valid stat.
        let mut stat: libc::stat = unsafe { std::mem::zeroed() };
        let open = step.flowop.fd.and_then(|fd| self.slots[fd]);
        if let Some(file) = open {
            let begun_ns = now_ns();
            // SAFETY: `stat` is writable.
            let status = unsafe { libc::fstat(file.fd, &raw mut stat) };
            let event = event(place, (file.tree, file.entry), begun_ns);
            if status < 0 {
                return Err(plan
                    .failed("stat", event.file, &io::Error::last_os_error())
                    .into());
            }
            return Ok(self.done(plan, step, event)?);
        }
        let Some(at) = step.flowop.fileset else {
            return Err(Undone::Starved);
        };
        let tree = &plan.trees[at];
        let draw = self.streams[place].draw();
        let entry = wait_for(plan, tree, |tree| tree.pick(draw))?;
        let name = tree.layout.path(entry, &mut self.path);
        let begun_ns = now_ns();
        // SAFETY: the name ends with NUL, the directory is open, `stat` is writable.
        let status = unsafe { libc::fstatat(tree.root(), name.as_ptr(), &raw mut stat, 0) };
        let event = event(place, (at, entry), begun_ns);
        let error = io::Error::last_os_error();
        tree.release(entry);
        if status < 0 {
            return Err(plan.failed("stat", (at, entry), &error).into());
        }
        Ok(self.done(plan, step, event)?)
    }

    pub(super) fn fsync(&mut self, plan: &Plan, place: usize, step: &Step) -> Result<(), Undone> {
        let file = self.slots[step.flowop.fd.unwrap_or(0)].expect("checked");
        self.flush(plan, place, step, file)
    }

    fn flush(
        &mut self,
        plan: &Plan,
        place: usize,
        step: &Step,
        file: OpenFile,
    ) -> Result<(), Undone> {
        let begun_ns = now_ns();
        // SAFETY: the descriptor is this thread's own; fsync touches no memory.
        let status = unsafe { libc::fsync(file.fd) };
        let event = event(place, (file.tree, file.entry), begun_ns);
        if status < 0 {
            return Err(plan
                .failed("fsync", event.file, &io::Error::last_os_error())
                .into());
        }
        Ok(self.done(plan, step, event)?)
    }

    pub(super) fn fsync_set(
        &mut self,
        plan: &Plan,
        place: usize,
        step: &Step,
    ) -> Result<(), Undone> {
        for fd in 0..self.slots.len() {
            match self.slots[fd] {
                Some(file) if Some(file.tree) == step.flowop.fileset => {
                    self.flush(plan, place, step, file)?;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Learn the size of a file that an earlier run may have changed. Who comes second keeps what the first learned.
#[cold]
fn learn_size(fd: i32, size: &std::sync::atomic::AtomicU64) {
    use std::sync::atomic::Ordering::Relaxed;
    // SAFETY: all-zero bytes are a valid stat.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: `stat` is writable; a failure leaves the size 0.
    unsafe { libc::fstat(fd, &raw mut stat) };
    let _ = size.compare_exchange(UNKNOWN_BYTES, stat.st_size as u64, Relaxed, Relaxed);
}
