//! A thread of the load: goes round its steps until the end.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use ascar_random::Random;

use super::aio::Queue;
use super::arrivals::Arrivals;
use super::plan::{Plan, Step, largest_chunk};
use super::slot::{OpenFile, Place, Ring};
use super::tally::Tally;
use super::trace::Event;
use crate::LoadError;
use crate::data::layout::PathBuffer;
use crate::definition::Kind;
use crate::futex;
use crate::pattern::Aligned;

/// Stack of a thread: no step recurses, buffers are on the heap.
const STACK_BYTES: usize = 128 << 10;
/// Events handed to the record at a time.
const BATCH: usize = 4096;

/// Why a step was not done.
#[derive(Debug)]
pub(super) enum Undone {
    /// No file was to be had in time: begin the loop anew.
    Starved,
    /// The load ends.
    Stop,
    /// The work failed.
    Failed(LoadError),
}

impl From<LoadError> for Undone {
    fn from(error: LoadError) -> Self {
        Self::Failed(error)
    }
}

pub(super) struct Worker {
    pub(super) plan: Arc<Plan>,
    pub(super) group: usize,
    /// Number among all threads.
    pub(super) thread: usize,
    pub(super) tally: Arc<Tally>,
    /// One random stream a step, so that no step's choices depend on another's retries.
    pub(super) streams: Vec<Random>,
    pub(super) slots: Vec<Option<OpenFile>>,
    pub(super) rings: Vec<Ring>,
    pub(super) buffer: Aligned,
    pub(super) path: PathBuffer,
    pub(super) queue: Arc<Queue>,
    /// Limits: work counted at the last look, by step.
    pub(super) limited: Vec<u64>,
    /// By how much its delays have been too long so far.
    pub(super) late: Duration,
    arrivals: Arrivals,
    events: Vec<Event>,
    harvested: Vec<Event>,
}

/// Start all threads; they wait for the plan's gate.
///
/// # Errors
/// A thread cannot be started.
pub fn start(plan: &Arc<Plan>, tallies: &[Vec<Arc<Tally>>]) -> Result<(), LoadError> {
    ascar_privileges::raise_open_files();
    let mut thread = 0;
    for (group, tallies) in tallies.iter().enumerate() {
        for (instance, tally) in tallies.iter().enumerate() {
            let mut worker = Worker::new(plan, group, (instance, thread), tally);
            spawn(plan, move || worker.main())?;
            thread += 1;
        }
    }
    for _ in 0..plan.aio_threads() {
        let plan_of_thread = Arc::clone(plan);
        spawn(plan, move || plan_of_thread.aio.serve(&plan_of_thread))?;
    }
    Ok(())
}

/// Tells, however a thread ends, that it has.
struct Running(Arc<Plan>);

impl Drop for Running {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let text = "a thread of the load failed, as told above: a defect of the program, please report it";
            self.0.control.fail(LoadError::Work(text.into()));
        }
        self.0.running.fetch_sub(1, Ordering::SeqCst);
        futex::wake_all(&self.0.running);
    }
}

fn spawn(plan: &Arc<Plan>, work: impl FnOnce() + Send + 'static) -> Result<(), LoadError> {
    plan.running.fetch_add(1, Ordering::SeqCst);
    let running = Running(Arc::clone(plan));
    let spawned = std::thread::Builder::new()
        .stack_size(STACK_BYTES)
        .spawn(move || {
            let _running = running;
            work();
        });
    spawned.map(|_| ()).map_err(|error| {
        let threads = plan.definition.threads();
        LoadError::Work(format!(
            "cannot start {threads} threads: {error}; lower --threads"
        ))
    })
}

impl Worker {
    fn new(
        plan: &Arc<Plan>,
        group: usize,
        (instance, thread): (usize, usize),
        tally: &Arc<Tally>,
    ) -> Worker {
        let steps = &plan.steps[group];
        let slots = steps
            .iter()
            .map(|step| step.flowop.fd.unwrap_or(0) + 1)
            .max()
            .unwrap_or(1);
        let stream = |step: usize| {
            Random::of(
                plan.seed,
                &[0x10AD, group as u64, instance as u64, step as u64],
            )
        };
        let reads = steps.iter().any(|step| step.flowop.kind.reads());
        Worker {
            group,
            thread,
            tally: Arc::clone(tally),
            streams: (0..steps.len()).map(stream).collect(),
            slots: vec![None; slots],
            rings: steps.iter().map(|_| Ring::default()).collect(),
            buffer: Aligned::new(if reads {
                largest_chunk(&plan.definition, Kind::reads)
            } else {
                0
            }),
            path: PathBuffer::new(),
            queue: Arc::default(),
            limited: vec![0; steps.len()],
            late: Duration::ZERO,
            arrivals: Arrivals::new(plan, group, instance),
            events: Vec::new(),
            harvested: Vec::new(),
            plan: Arc::clone(plan),
        }
    }

    fn main(&mut self) {
        let plan = Arc::clone(&self.plan);
        // Delays and rates end when they are due, not up to 50 us later.
        // SAFETY: changes this thread's timer slack only.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
        while plan.gate.load(Ordering::SeqCst) == 0 && !plan.control.stopped() {
            futex::wait(&plan.gate, 0, Duration::from_millis(50));
        }
        if let Err(error) = self.rounds(&plan) {
            plan.control.fail(error);
        }
        self.end(&plan);
    }

    fn rounds(&mut self, plan: &Plan) -> Result<(), LoadError> {
        let steps = &plan.steps[self.group];
        'round: loop {
            self.arrivals.wait(plan);
            for (place, step) in steps.iter().enumerate() {
                for _ in 0..step.flowop.iters {
                    if plan.control.stopped() {
                        return Ok(());
                    }
                    match self.step(plan, place, step) {
                        Ok(()) => {}
                        Err(Undone::Stop) => return Ok(()),
                        Err(Undone::Failed(error)) => return Err(error),
                        Err(Undone::Starved) => {
                            plan.starved.fetch_add(1, Ordering::Relaxed);
                            self.close_slots(plan);
                            continue 'round;
                        }
                    }
                }
            }
        }
    }

    #[inline]
    fn step(&mut self, plan: &Plan, place: usize, step: &Step) -> Result<(), Undone> {
        match step.flowop.kind {
            Kind::StatFile => self.stat_file(plan, place, step),
            Kind::Read => self.read(plan, place, step),
            Kind::Write => self.write(plan, place, step),
            Kind::ReadWholeFile => self.read_whole(plan, place, step),
            Kind::WriteWholeFile => self.write_whole(plan, place, step),
            Kind::AppendFile | Kind::AppendFileRand => self.append(plan, place, step),
            Kind::OpenFile => self.open_file(plan, place, step),
            Kind::CreateFile => self.create_file(plan, place, step),
            Kind::CloseFile => self.close_file(plan, place, step),
            Kind::DeleteFile => self.delete_file(plan, place, step),
            Kind::Fsync => self.fsync(plan, place, step),
            Kind::FsyncSet => self.fsync_set(plan, place, step),
            Kind::AioWrite => self.aio_write(plan, place, step),
            Kind::AioWait => self.aio_wait(plan, place),
            Kind::Delay => self.delay(plan, place, step),
            Kind::EventLimit => self.event(plan, place),
            Kind::Hog => self.hog(plan, place, step),
            Kind::OpsLimit | Kind::IopsLimit | Kind::BwLimit => self.limit(plan, place, step),
            Kind::SemBlock => self.sem_block(plan, place, step),
            Kind::SemPost => self.sem_post(plan, place, step),
            Kind::FinishOnBytes | Kind::FinishOnCount => self.finish(plan, place, step),
        }
    }

    /// An operation on a file is done: count it, and record it when asked.
    #[inline]
    pub(super) fn done(
        &mut self,
        plan: &Plan,
        step: &Step,
        mut event: Event,
    ) -> Result<(), LoadError> {
        event.nanos += self.arrivals.take_wait();
        self.count(plan, step, event)
    }

    #[inline]
    fn count(&mut self, plan: &Plan, step: &Step, event: Event) -> Result<(), LoadError> {
        self.tally.steps[event.step].add(event.nanos, event.bytes);
        if !step.credits.is_empty() {
            plan.credit(step, event.bytes);
        }
        if plan.trace.is_some() {
            self.events.push(event);
            if self.events.len() >= BATCH {
                self.record(plan)?;
            }
        }
        Ok(())
    }

    #[cold]
    fn record(&mut self, plan: &Plan) -> Result<(), LoadError> {
        let group = self.group;
        match &plan.trace {
            Some(trace) => trace.append(self.thread, &mut self.events, |event| {
                plan.label(group, event)
            }),
            None => Ok(()),
        }
    }

    /// Count the writes in the background that have ended.
    pub(super) fn harvest(&mut self, plan: &Plan) -> Result<(), LoadError> {
        let mut harvested = std::mem::take(&mut self.harvested);
        self.queue.harvest(&mut harvested);
        for event in harvested.drain(..) {
            // Of an earlier pass: the wait of the present one is not theirs.
            self.count(plan, &plan.steps[self.group][event.step], event)?;
        }
        self.harvested = harvested;
        Ok(())
    }

    pub(super) fn at(&mut self, place: Place) -> &mut Option<OpenFile> {
        match place {
            Place::Slot(fd) => &mut self.slots[fd],
            Place::Ring(step, at) => &mut self.rings[step].files[at],
        }
    }

    fn end(&mut self, plan: &Plan) {
        let recorded = self.harvest(plan).and_then(|()| self.record(plan));
        plan.waiting
            .fetch_add(self.arrivals.not_begun(), Ordering::Relaxed);
        if let Err(error) = recorded {
            plan.control.fail(error);
        }
        // A write in the background may still use a descriptor: then all stay open until the process ends.
        if self.queue.pending() == 0 {
            self.close_slots(plan);
            for step in 0..self.rings.len() {
                for at in 0..self.rings[step].files.len() {
                    self.close_place(plan, Place::Ring(step, at));
                }
            }
        }
    }
}
