//! Which file a step works on, and which part of it: offsets and sizes.

use super::Cluster;
use super::threads::{Activity, Transfer};
use crate::lists::NONE;
use crate::scenario::Operation;

/// A thread that finds no file for its step tries the next one after so long.
const NO_FILE_NS: u64 = 1_000_000;

/// What an operation on file data is to do.
struct Span {
    file: u32,
    begin: u64,
    end: u64,
    unit: u64,
    ahead: bool,
}

impl Cluster {
    /// A read or write of one size, at random or in sequence.
    pub(super) fn begin_data(&mut self, index: u32) -> bool {
        let thread = &mut self.threads[index];
        let step = &self.programs[thread.program as usize].groups[thread.group as usize].steps
            [thread.step as usize];
        let set_number = self.clients[thread.client as usize].sets[step.set as usize];
        let set = &self.files.sets[set_number as usize];
        let file = if step.file_per_thread || set.entries == 1 {
            set.first + thread.number % set.entries
        } else if thread.open != NONE {
            thread.open
        } else {
            match self.files.choose(set_number, &mut thread.random) {
                Some(file) => file,
                None => return self.no_file(index),
            }
        };
        let (size, random) = (step.size, step.random);
        let file_size = self.files.files[file as usize].size;
        let length = size.min(file_size);
        let begin = if random {
            thread.random.below(file_size / length) * length
        } else {
            if thread.position + length > file_size {
                let cache = &mut self.clients[thread.client as usize].page_cache;
                cache.pass(&mut self.files.files[file as usize], thread.position);
                thread.position = 0;
            }
            let position = thread.position;
            thread.position += length;
            position
        };
        self.begin_transfer(
            index,
            Span {
                file,
                begin,
                end: begin + length,
                unit: length,
                ahead: !random,
            },
        )
    }

    /// The open file from beginning to end.
    pub(super) fn begin_whole_file(&mut self, index: u32) -> bool {
        let Some(file) = self.open_file(index) else {
            return self.no_file(index);
        };
        let unit = self.step_size(index);
        let end = self.files.files[file as usize].size;
        self.begin_transfer(
            index,
            Span {
                file,
                begin: 0,
                end,
                unit,
                ahead: true,
            },
        )
    }

    /// More at the end of the open file; on a shared file each thread its part, in the order of ranks.
    pub(super) fn begin_append(&mut self, index: u32) -> bool {
        let Some(file) = self.open_file(index) else {
            return self.no_file(index);
        };
        let size = self.step_size(index);
        let thread = &mut self.threads[index];
        let step = &self.programs[thread.program as usize].groups[thread.group as usize].steps
            [thread.step as usize];
        let set = self.clients[thread.client as usize].sets[step.set as usize];
        if self.files.sets[set as usize].shared {
            let participants = u64::from(self.barriers[thread.program as usize].needed.max(1));
            let turn = participants * size;
            // When the file has its full size, it is begun anew.
            let turns = (self.files.files[file as usize].size / turn).max(1);
            let begin = thread.appended % turns * turn + u64::from(thread.rank) * size;
            thread.appended += 1;
            return self.begin_transfer(
                index,
                Span {
                    file,
                    begin,
                    end: begin + size,
                    unit: size,
                    ahead: false,
                },
            );
        }
        let length = match step.operation {
            Operation::AppendFileRand => 1 + thread.random.below(size),
            _ => size,
        };
        let cache = &mut self.clients[thread.client as usize].page_cache;
        let file_data = &mut self.files.files[file as usize];
        let begin = file_data.size;
        file_data.size = begin + length;
        cache.resize(file_data, begin);
        self.begin_transfer(
            index,
            Span {
                file,
                begin,
                end: begin + length,
                unit: length,
                ahead: false,
            },
        )
    }

    fn step_size(&self, index: u32) -> u64 {
        let thread = &self.threads[index];
        self.programs[thread.program as usize].groups[thread.group as usize].steps
            [thread.step as usize]
            .size
    }

    /// The file that the thread has open, or a random one.
    fn open_file(&mut self, index: u32) -> Option<u32> {
        let thread = &mut self.threads[index];
        if thread.open != NONE {
            return Some(thread.open);
        }
        let step = &self.programs[thread.program as usize].groups[thread.group as usize].steps
            [thread.step as usize];
        let set = self.clients[thread.client as usize].sets[step.set as usize];
        self.files.choose(set, &mut thread.random)
    }

    /// There is no file for this step: the thread goes on with the next a little later.
    pub(super) fn no_file(&mut self, index: u32) -> bool {
        let at = self.now + NO_FILE_NS;
        self.resume_at(index, at, Activity::StepDone)
    }

    fn begin_transfer(&mut self, index: u32, span: Span) -> bool {
        self.note(index, (span.file, span.begin, span.end - span.begin));
        let thread = &mut self.threads[index];
        let step = &self.programs[thread.program as usize].groups[thread.group as usize].steps
            [thread.step as usize];
        let write = matches!(
            step.operation,
            Operation::Write
                | Operation::WriteWholeFile
                | Operation::AppendFile
                | Operation::AppendFileRand
        );
        let set = self.clients[thread.client as usize].sets[step.set as usize];
        let shared = self.files.sets[set as usize].shared;
        let at_random = step.random && matches!(step.operation, Operation::Read | Operation::Write);
        let cache = &self.clients[thread.client as usize].page_cache;
        let file = &self.files.files[span.file as usize];
        let cached = !shared && cache.holds(file, (span.begin, span.end), !at_random);
        thread.transfer = Transfer {
            file: span.file,
            write,
            // What others may have changed is read from the servers.
            direct: step.direct || (shared && !write),
            cached,
            ahead: span.ahead,
            begin: span.begin,
            cursor: span.begin,
            unit_end: span.begin,
            unit_bytes: 0,
            end: span.end,
            unit: span.unit,
            outstanding: 0,
        };
        if !span.ahead {
            thread.ahead.file = NONE;
        }
        thread.activity = Activity::Unit;
        self.set_active(index, true);
        true
    }
}
