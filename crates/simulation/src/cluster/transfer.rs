//! File data past the cache, and the units of every operation.

use super::Cluster;
use super::threads::Activity;
use crate::events::Nanos;
use crate::files::Piece;
use crate::lists::NONE;
use crate::requests::{Place, Purpose, Request};
use crate::scenario::Operation;

impl Cluster {
    #[inline]
    pub(super) fn begin_unit(&mut self, index: u32) -> bool {
        let thread = &mut self.threads[index];
        let transfer = &mut thread.transfer;
        if transfer.cursor >= transfer.end {
            self.end_transfer(index);
            return true;
        }
        transfer.unit_end = (transfer.cursor + transfer.unit).min(transfer.end);
        transfer.unit_bytes = transfer.unit_end - transfer.cursor;
        thread.activity = match (transfer.direct, transfer.write) {
            (true, _) => Activity::Issue,
            (false, true) => Activity::Fill,
            (false, false) => Activity::Fetch,
        };
        true
    }

    /// Send the requests of a unit past the cache, as locks allow, and wait for the answers.
    pub(super) fn issue(&mut self, index: u32) -> bool {
        loop {
            let transfer = self.threads[index].transfer;
            if transfer.cursor >= transfer.unit_end {
                break;
            }
            let (piece, object, lock_number) = self.next_piece(index);
            let Some(lock) = self.lock_for(index, lock_number, &piece, transfer.write) else {
                return false;
            };
            if lock != NONE {
                self.locks.begin_use(lock);
            }
            let thread = &mut self.threads[index];
            thread.transfer.cursor += u64::from(piece.length);
            thread.transfer.outstanding += 1;
            let stream = thread.client * self.servers.len() as u32 + piece.server;
            let request = Request {
                stream,
                server: piece.server,
                thread: index,
                object,
                offset: piece.offset,
                length: piece.length,
                write: transfer.write,
                sequential: false,
                purpose: Purpose::Direct,
                place: Place::Client,
                generation: 0,
                chunk: 0,
                lock,
                asked_ns: self.now,
                sent_ns: 0,
                next: NONE,
            };
            self.enqueue(request);
        }
        let thread = &mut self.threads[index];
        let done = thread.transfer.outstanding == 0;
        thread.activity = if done {
            Activity::UnitDone
        } else {
            Activity::Answers
        };
        done
    }

    /// An answer to a thread's request past the cache.
    #[inline]
    pub(super) fn answered(&mut self, index: u32) {
        let thread = &mut self.threads[index];
        thread.transfer.outstanding -= 1;
        if thread.transfer.outstanding == 0 && thread.activity == Activity::Answers {
            thread.activity = Activity::UnitDone;
            self.proceed(index);
        }
    }

    /// The next part of a thread's transfer that is one request: where it lies, its object, and the number of its lock.
    pub(super) fn next_piece(&self, index: u32) -> (Piece, u32, u32) {
        let thread = &self.threads[index];
        let transfer = &thread.transfer;
        let file = &self.files.files[transfer.file as usize];
        let request_bytes = self.clients[thread.client as usize].request_bytes;
        let piece =
            self.files
                .stripes
                .piece(file, transfer.cursor, transfer.unit_end, request_bytes);
        let lock = self.locks.number(file.lock_base, piece.stripe);
        (piece, file.object_base + piece.stripe, lock)
    }

    /// Let a thread wait for its unit to be copied between application and cache.
    pub(super) fn copy(&mut self, index: u32) -> bool {
        let thread = &self.threads[index];
        let client = &self.clients[thread.client as usize];
        let time = (thread.transfer.unit_bytes as f64 * client.copy_ns_per_byte) as Nanos;
        let at = self.now + time;
        self.resume_at(index, at, Activity::UnitDone)
    }

    /// Count a unit's bytes as the thread's.
    #[inline]
    pub(super) fn end_unit(&mut self, index: u32) -> bool {
        let thread = &mut self.threads[index];
        let transfer = &thread.transfer;
        let bytes = transfer.unit_bytes;
        self.clients[thread.client as usize].bytes += bytes;
        let group = &mut self.counters.groups[thread.counted as usize];
        if transfer.write {
            group.written_bytes += bytes;
        } else {
            group.read_bytes += bytes;
            if transfer.cached && !transfer.direct {
                self.counters.cache_hit_bytes += bytes;
            }
        }
        thread.activity = Activity::Unit;
        true
    }

    /// Remember what the page cache now holds.
    fn end_transfer(&mut self, index: u32) {
        let thread = &mut self.threads[index];
        thread.activity = Activity::StepDone;
        let transfer = &thread.transfer;
        if transfer.direct {
            return;
        }
        let steps = &self.programs[thread.program as usize].groups[thread.group as usize].steps;
        let step = &steps[thread.step as usize];
        let client = &mut self.clients[thread.client as usize];
        let shared = self.files.sets[client.sets[step.set as usize] as usize].shared;
        let file = &mut self.files.files[transfer.file as usize];
        let (cache, bytes) = (&mut client.page_cache, transfer.end - transfer.begin);
        match step.operation {
            // What others may change is not read out of the cache, but takes its room.
            _ if shared => cache.take_in(bytes),
            Operation::WriteWholeFile | Operation::ReadWholeFile => cache.use_whole(file),
            Operation::AppendFile | Operation::AppendFileRand if transfer.cached => {
                cache.use_whole(file);
            }
            _ => cache.use_part(file, bytes, (transfer.cached, !step.random)),
        }
    }
}
