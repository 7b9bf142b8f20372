//! Threads: what each does next, step after step, and how many times.

use ascar_random::Random;

use super::Cluster;
use crate::events::{Kind, Nanos};
use crate::lists::NONE;
use crate::scenario::Operation;

/// Where a thread stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Activity {
    /// Its next step is due.
    Next,
    /// The next unit of an operation on file data is due.
    Unit,
    /// It sends a unit's requests past the cache.
    Issue,
    /// It waits for a unit's requests.
    Answers,
    /// It puts a unit into the cache.
    Fill,
    /// It takes a unit out of the cache.
    Fetch,
    /// A unit has been copied or answered.
    UnitDone,
    /// Its step is done.
    StepDone,
    /// It does nothing any more.
    Stopped,
}

/// An operation on file data.
#[derive(Debug, Clone, Copy)]
pub(super) struct Transfer {
    /// The file.
    pub file: u32,
    /// Whether data is written.
    pub write: bool,
    /// Past the cache.
    pub direct: bool,
    /// Whether the data is in the page cache.
    pub cached: bool,
    /// Whether what follows will be read, too.
    pub ahead: bool,
    /// Where it began.
    pub begin: u64,
    /// Where it is.
    pub cursor: u64,
    /// Where its present unit ends.
    pub unit_end: u64,
    /// Bytes of the present unit.
    pub unit_bytes: u64,
    /// Where it ends.
    pub end: u64,
    /// Bytes a unit.
    pub unit: u64,
    /// Requests of the present unit without an answer.
    pub outstanding: u32,
}

/// Chunks of a file that have been asked for ahead of the reader.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadAhead {
    /// The file; [`NONE`] before the first.
    pub file: u32,
    /// Which file of the thread's this is; requests carry it.
    pub generation: u8,
    /// The chunk that the reader is in.
    pub base: u32,
    /// Chunks from there on that were asked for.
    pub issued: u32,
    /// Which of these have come, as bits.
    pub arrived: u64,
}

/// A thread.
#[derive(Debug)]
pub(super) struct Thread {
    pub client: u32,
    pub program: u32,
    pub group: u32,
    /// Its number on its client.
    pub number: u32,
    /// Its number among all threads of its workload that share a file.
    pub rank: u32,
    pub activity: Activity,
    pub step: u32,
    pub iteration: u32,
    pub random: Random,
    /// The file that it has open.
    pub open: u32,
    /// Where it reads or writes in sequence.
    pub position: u64,
    /// Times that it has added to a shared file.
    pub appended: u64,
    pub transfer: Transfer,
    pub ahead: ReadAhead,
    /// How long its metadata operation takes alone.
    pub service_ns: Nanos,
    /// When its metadata operation left.
    pub sent_ns: Nanos,
    /// Whether it waits for file data.
    pub active: bool,
    /// When its present operation was asked for.
    pub asked_ns: Nanos,
    /// Where what it does is counted.
    pub counted: u32,
    /// When its next pass is asked for, where passes arrive; 0 before the first.
    pub due_ns: Nanos,
    pub next: u32,
}

impl Thread {
    /// A thread that has done nothing yet.
    pub fn new(client: u32, program: u32, random: Random) -> Thread {
        let transfer = Transfer {
            file: NONE,
            write: false,
            direct: false,
            cached: false,
            ahead: false,
            begin: 0,
            cursor: 0,
            unit_end: 0,
            unit_bytes: 0,
            end: 0,
            unit: 1,
            outstanding: 0,
        };
        let ahead = ReadAhead {
            file: NONE,
            generation: 0,
            base: 0,
            issued: 0,
            arrived: 0,
        };
        Thread {
            client,
            program,
            group: 0,
            number: 0,
            rank: 0,
            activity: Activity::Next,
            step: 0,
            iteration: 0,
            random,
            open: NONE,
            position: 0,
            appended: 0,
            transfer,
            ahead,
            service_ns: 0,
            sent_ns: 0,
            active: false,
            asked_ns: 0,
            counted: 0,
            due_ns: 0,
            next: NONE,
        }
    }
}

impl Cluster {
    /// Let a thread go on until it has to wait.
    pub(super) fn proceed(&mut self, thread: u32) {
        while self.advance(thread) {}
    }

    /// One move of a thread; false when it has to wait.
    #[inline]
    fn advance(&mut self, thread: u32) -> bool {
        match self.threads[thread].activity {
            Activity::Next => self.begin(thread),
            Activity::Unit => self.begin_unit(thread),
            Activity::Issue => self.issue(thread),
            Activity::Fill => self.fill(thread),
            Activity::Fetch => self.fetch(thread),
            Activity::UnitDone => self.end_unit(thread),
            Activity::StepDone => self.end_step(thread),
            Activity::Answers | Activity::Stopped => false,
        }
    }

    /// Let a thread go on with `activity` at `at`.
    #[inline]
    pub(super) fn resume_at(&mut self, thread: u32, at: Nanos, activity: Activity) -> bool {
        self.threads[thread].activity = activity;
        self.events.push(at, Kind::Thread, thread);
        false
    }

    #[inline]
    fn begin(&mut self, index: u32) -> bool {
        let thread = &mut self.threads[index];
        if self.now >= self.clients[thread.client as usize].stop_ns {
            thread.activity = Activity::Stopped;
            return false;
        }
        let group = &self.programs[thread.program as usize].groups[thread.group as usize];
        let begins_pass = thread.step == 0 && thread.iteration == 0;
        match group.arrival_gap_ns {
            Some(gap_ns) if begins_pass => {
                if thread.due_ns == 0 {
                    thread.due_ns = self.now.saturating_add(gap(gap_ns, &mut thread.random));
                }
                if self.now < thread.due_ns {
                    let due_ns = thread.due_ns;
                    return self.resume_at(index, due_ns, Activity::Next);
                }
                // It may be late: the wait for the pass before is the application's.
                thread.asked_ns = thread.due_ns;
                thread.due_ns = thread
                    .due_ns
                    .saturating_add(gap(gap_ns, &mut thread.random));
            }
            Some(_) => {}
            None => thread.asked_ns = self.now,
        }
        let step = &group.steps[thread.step as usize];
        if step.probability < 1.0 && thread.random.unit() >= step.probability {
            return self.skip(index);
        }
        match step.operation {
            Operation::Read | Operation::Write => self.begin_data(index),
            Operation::WriteWholeFile | Operation::ReadWholeFile => self.begin_whole_file(index),
            Operation::AppendFile | Operation::AppendFileRand => self.begin_append(index),
            Operation::CreateFile
            | Operation::OpenFile
            | Operation::CloseFile
            | Operation::DeleteFile
            | Operation::StatFile => self.begin_metadata(index),
            Operation::Delay => {
                let at = self.now + step.delay_ns;
                self.resume_at(index, at, Activity::StepDone)
            }
            Operation::Barrier => self.begin_barrier(index),
            Operation::Sync => self.begin_sync(index),
        }
    }

    /// Go on with the next step; what was skipped is not counted.
    pub(super) fn skip(&mut self, index: u32) -> bool {
        let thread = &mut self.threads[index];
        let steps = &self.programs[thread.program as usize].groups[thread.group as usize].steps;
        thread.iteration += 1;
        if thread.iteration >= steps[thread.step as usize].iterations {
            thread.iteration = 0;
            thread.step += 1;
            if thread.step as usize == steps.len() {
                thread.step = 0;
                self.counters.groups[thread.counted as usize].passes += 1;
            }
        }
        thread.activity = Activity::Next;
        true
    }

    fn end_step(&mut self, index: u32) -> bool {
        let thread = &mut self.threads[index];
        self.counters.groups[thread.counted as usize].operations += 1;
        let steps = &self.programs[thread.program as usize].groups[thread.group as usize].steps;
        if steps[thread.step as usize].operation.is_on_data() {
            self.counters.transferred(self.now, thread.asked_ns);
        }
        thread.asked_ns = self.now;
        if let Some(recorder) = &mut self.recorder {
            recorder.end(index, self.now);
        }
        self.set_active(index, false);
        self.skip(index)
    }

    /// Count the time during which any thread waits for file data.
    pub(super) fn set_active(&mut self, index: u32, active: bool) {
        let thread = &mut self.threads[index];
        if thread.active == active {
            return;
        }
        thread.active = active;
        self.counters.set_active(self.now, active);
    }

    fn begin_barrier(&mut self, index: u32) -> bool {
        let program = self.threads[index].program as usize;
        self.threads[index].activity = Activity::StepDone;
        let barrier = &mut self.barriers[program];
        barrier.waiting.push(&mut self.threads, index);
        barrier.arrived += 1;
        if barrier.arrived < barrier.needed {
            return false;
        }
        barrier.arrived = 0;
        // A message to the last and one back.
        let there = self.network.message_at(self.now);
        let at = self.network.message_at(there);
        while let Some(waiting) = self.barriers[program].waiting.pop(&mut self.threads) {
            self.events.push(at, Kind::Thread, waiting);
        }
        false
    }

    fn begin_sync(&mut self, index: u32) -> bool {
        let client = self.threads[index].client;
        self.threads[index].activity = Activity::StepDone;
        self.note(index, (NONE, 0, 0));
        self.flush_client(client);
        let client = &mut self.clients[client as usize];
        if client.dirty == 0 {
            return true;
        }
        client.sync_waiters.push(&mut self.threads, index);
        self.set_active(index, true);
        false
    }
}

/// Time to the next arrival of a Poisson process; at least a nanosecond.
fn gap(mean_ns: f64, random: &mut Random) -> Nanos {
    (random.exponential(mean_ns) as Nanos).max(1)
}
