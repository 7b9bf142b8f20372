//! Flowops that move data: read, write, whole files, appends, writes in the background.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::aio::Job;
use super::now_ns;
use super::plan::{CHUNK_BYTES, Plan, Step};
use super::slot::{OpenFile, Place};
use super::trace::Event;
use super::worker::{Undone, Worker};
use crate::LoadError;
use crate::pattern::ALIGNMENT;

/// Most files that an `opennext` flowop keeps open.
const MOST_OPEN: usize = 32;

/// Round up where the page cache is bypassed.
fn aligned(bytes: u64, direct: bool) -> u64 {
    if direct {
        bytes.next_multiple_of(ALIGNMENT as u64)
    } else {
        bytes
    }
}

/// The end of a transfer: the event of one that began then.
fn event(step: usize, file: &OpenFile, begun_ns: u64, offset: u64, bytes: u64) -> Event {
    Event {
        begun_ns,
        nanos: now_ns() - begun_ns,
        step,
        file: (file.tree, file.entry),
        offset,
        bytes,
    }
}

impl Worker {
    /// The open file that a step works on; opens one where none is.
    fn file(&mut self, plan: &Plan, place: usize, step: &Step) -> Result<Place, Undone> {
        if step.flowop.opennext {
            return self.ring(plan, place, step);
        }
        let keep = Place::Slot(step.flowop.fd.unwrap_or(0));
        if self.at(keep).is_some() {
            return Ok(keep);
        }
        self.open_at(plan, place, step, keep)?;
        Ok(keep)
    }

    /// The next file of the ring; small sets are gone round in order, from a start of the thread's own.
    fn ring(&mut self, plan: &Plan, place: usize, step: &Step) -> Result<Place, Undone> {
        let at = step.flowop.fileset.expect("checked");
        let tree = &plan.trees[at];
        if self.rings[place].files.is_empty() {
            let size = (tree.entries() as usize).min(MOST_OPEN);
            self.rings[place].files = vec![None; size];
            self.rings[place].next = self.streams[place].below(size as u64) as usize;
        }
        let ring = &mut self.rings[place];
        let next = ring.next;
        ring.next = (next + 1) % ring.files.len();
        let keep = Place::Ring(place, next);
        if self.at(keep).is_some() {
            return Ok(keep);
        }
        if tree.entries() as usize <= MOST_OPEN && tree.acquire(next as u32) {
            self.open_entry(plan, place, step, keep, next as u32)?;
            return Ok(keep);
        }
        self.open_at(plan, place, step, keep)?;
        Ok(keep)
    }

    /// Bytes of the next operation; at least one.
    fn size(&mut self, place: usize, step: &Step, direct: bool) -> u64 {
        let bytes = step.flowop.iosize_bytes.draw(&mut self.streams[place]) as u64;
        aligned(bytes.max(1), direct)
    }

    /// Where the next operation of so many bytes begins, below the working set or the file's size.
    fn position(&mut self, plan: &Plan, place: usize, step: &Step, keep: Place, bytes: u64) -> u64 {
        let file = self.at(keep).expect("opened before");
        let nominal = plan.trees[file.tree].layout.size_bytes[file.entry as usize];
        let end = if step.flowop.workingset_bytes > 0 {
            step.flowop.workingset_bytes
        } else {
            nominal
        };
        if step.flowop.random {
            let position = self.streams[place].below(end / bytes) * bytes;
            // The next sequential operation goes on from here.
            self.at(keep).as_mut().expect("opened before").position = position + bytes;
            return position;
        }
        let file = self.at(keep).as_mut().expect("opened before");
        // A set of size 0 without a working set grows.
        if end > 0 && file.position + bytes > end {
            file.position = 0;
        }
        let position = file.position;
        file.position += bytes;
        position
    }

    /// The file that the next operation works on, and the offset and the bytes of the operation.
    fn piece(
        &mut self,
        plan: &Plan,
        place: usize,
        step: &Step,
    ) -> Result<(OpenFile, u64, u64), Undone> {
        let keep = self.file(plan, place, step)?;
        let file = self.at(keep).expect("opened before");
        let bytes = self.size(place, step, file.direct);
        let offset = self.position(plan, place, step, keep, bytes);
        Ok((file, offset, bytes))
    }

    pub(super) fn read(&mut self, plan: &Plan, place: usize, step: &Step) -> Result<(), Undone> {
        let (file, offset, bytes) = self.piece(plan, place, step)?;
        let begun_ns = now_ns();
        let got = self.read_at(plan, &file, offset, bytes, bytes)?;
        let event = event(place, &file, begun_ns, offset, got);
        Ok(self.done(plan, step, event)?)
    }

    /// Read up to so many bytes in pieces of `chunk`; fewer at the file's end or the load's.
    fn read_at(
        &mut self,
        plan: &Plan,
        file: &OpenFile,
        offset: u64,
        bytes: u64,
        chunk: u64,
    ) -> Result<u64, LoadError> {
        let buffer = self.buffer.bytes_mut();
        let chunk = chunk.min(buffer.len() as u64);
        let mut done = 0;
        while done < bytes {
            let want = chunk.min(bytes - done) as usize;
            // SAFETY: the buffer is writable and at least `want` long.
            let got = unsafe {
                libc::pread64(
                    file.fd,
                    buffer.as_mut_ptr().cast(),
                    want,
                    (offset + done) as i64,
                )
            };
            if got < 0 {
                return Err(plan.failed(
                    "read",
                    (file.tree, file.entry),
                    &io::Error::last_os_error(),
                ));
            }
            done += got as u64;
            if (got as usize) < want || (done < bytes && plan.control.stopped()) {
                break;
            }
        }
        Ok(done)
    }

    pub(super) fn read_whole(
        &mut self,
        plan: &Plan,
        place: usize,
        step: &Step,
    ) -> Result<(), Undone> {
        let keep = self.file(plan, place, step)?;
        let file = self.at(keep).expect("opened before");
        let chunk = self.whole_chunk(place, step, file.direct);
        let begun_ns = now_ns();
        let got = self.read_at(plan, &file, 0, u64::MAX, chunk)?;
        if plan.control.stopped() {
            return Err(Undone::Stop);
        }
        let event = event(place, &file, begun_ns, 0, got);
        Ok(self.done(plan, step, event)?)
    }

    /// Bytes of one piece of a whole file: the step's iosize; 0 means as much as goes at once.
    fn whole_chunk(&mut self, place: usize, step: &Step, direct: bool) -> u64 {
        let bytes = step.flowop.iosize_bytes.draw(&mut self.streams[place]) as u64;
        aligned(
            if bytes == 0 {
                CHUNK_BYTES
            } else {
                bytes.min(CHUNK_BYTES)
            },
            direct,
        )
    }

    pub(super) fn write(&mut self, plan: &Plan, place: usize, step: &Step) -> Result<(), Undone> {
        let (file, offset, bytes) = self.piece(plan, place, step)?;
        let draw = self.streams[place].draw();
        let begun_ns = now_ns();
        let wrote = plan.write_at(file.fd, (file.tree, file.entry), offset, bytes, draw)?;
        if wrote < bytes {
            return Err(Undone::Stop);
        }
        let event = event(place, &file, begun_ns, offset, wrote);
        plan.trees[file.tree].size_bytes[file.entry as usize].fetch_max(offset + wrote, Relaxed);
        Ok(self.done(plan, step, event)?)
    }

    pub(super) fn write_whole(
        &mut self,
        plan: &Plan,
        place: usize,
        step: &Step,
    ) -> Result<(), Undone> {
        let keep = self.file(plan, place, step)?;
        let file = self.at(keep).expect("opened before");
        let source = step
            .flowop
            .srcfd
            .and_then(|fd| self.slots[fd])
            .unwrap_or(file);
        let bytes = aligned(
            plan.trees[source.tree].layout.size_bytes[source.entry as usize],
            file.direct,
        );
        let chunk = self.whole_chunk(place, step, file.direct);
        let draw = self.streams[place].draw();
        let begun_ns = now_ns();
        let mut done = 0;
        while done < bytes {
            let piece = chunk.min(bytes - done);
            let draw = draw.wrapping_add(done);
            done += plan.write_at(file.fd, (file.tree, file.entry), done, piece, draw)?;
            if done < bytes && plan.control.stopped() {
                return Err(Undone::Stop);
            }
        }
        let event = event(place, &file, begun_ns, 0, done);
        plan.trees[file.tree].size_bytes[file.entry as usize].fetch_max(done, Relaxed);
        Ok(self.done(plan, step, event)?)
    }

    pub(super) fn append(&mut self, plan: &Plan, place: usize, step: &Step) -> Result<(), Undone> {
        use crate::definition::Kind;
        let keep = self.file(plan, place, step)?;
        let file = self.at(keep).expect("opened before");
        let mut bytes = self.size(place, step, false);
        if step.flowop.kind == Kind::AppendFileRand {
            bytes = 1 + self.streams[place].below(bytes);
        }
        let bytes = aligned(bytes, file.direct);
        let draw = self.streams[place].draw();
        let begun_ns = now_ns();
        let offset = reserve(plan, step, &file, bytes)?;
        let wrote = plan.write_at(file.fd, (file.tree, file.entry), offset, bytes, draw)?;
        if wrote < bytes {
            return Err(Undone::Stop);
        }
        let event = event(place, &file, begun_ns, offset, wrote);
        Ok(self.done(plan, step, event)?)
    }

    pub(super) fn aio_write(
        &mut self,
        plan: &Plan,
        place: usize,
        step: &Step,
    ) -> Result<(), Undone> {
        let (file, offset, bytes) = self.piece(plan, place, step)?;
        let event = Event {
            begun_ns: now_ns(),
            nanos: 0,
            step: place,
            file: (file.tree, file.entry),
            offset,
            bytes,
        };
        plan.trees[file.tree].size_bytes[file.entry as usize].fetch_max(offset + bytes, Relaxed);
        let job = Job {
            fd: file.fd,
            event,
            queue: Arc::clone(&self.queue),
        };
        let begun = plan.aio.submit(job, &plan.control);
        self.harvest(plan)?;
        begun.then_some(()).ok_or(Undone::Stop)
    }

    pub(super) fn aio_wait(&mut self, plan: &Plan, place: usize) -> Result<(), Undone> {
        let begun_ns = now_ns();
        let ended = self.queue.wait(0, &plan.control);
        self.harvest(plan)?;
        self.tally.steps[place].add(now_ns() - begun_ns, 0);
        ended.then_some(()).ok_or(Undone::Stop)
    }
}

/// Reserve room at a file's end, so that threads that append to one file never write over each other.
///
/// With a working set, the file is cut back to the size it was filled with once it has that size, as a log is; or
/// emptied, where nothing would fit behind that.
fn reserve(plan: &Plan, step: &Step, file: &OpenFile, bytes: u64) -> Result<u64, LoadError> {
    let size = &plan.trees[file.tree].size_bytes[file.entry as usize];
    let limit = step.flowop.workingset_bytes;
    let filled = plan.trees[file.tree].layout.size_bytes[file.entry as usize];
    loop {
        let seen = size.load(Relaxed);
        let end = aligned(seen, file.direct);
        if limit > 0 && end > 0 && end + bytes > limit {
            let kept = aligned(filled.min(seen), file.direct);
            let begin = if kept + bytes > limit { 0 } else { kept };
            if size
                .compare_exchange(seen, begin + bytes, Relaxed, Relaxed)
                .is_err()
            {
                continue;
            }
            // SAFETY: the descriptor is open for writing; ftruncate touches no memory.
            if unsafe { libc::ftruncate(file.fd, begin as i64) } < 0 {
                return Err(plan.failed(
                    "cut back",
                    (file.tree, file.entry),
                    &io::Error::last_os_error(),
                ));
            }
            return Ok(begin);
        }
        if size
            .compare_exchange_weak(seen, end + bytes, Relaxed, Relaxed)
            .is_ok()
        {
            return Ok(end);
        }
    }
}
