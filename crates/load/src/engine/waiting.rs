//! Flowops that wait, compute or end: delay, hog, limits, semaphores, finish.

use std::hint::black_box;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::now_ns;
use super::plan::{Plan, Step};
use super::worker::{Undone, Worker};
use crate::definition::Kind;

/// Bytes of one event of bwlimit.
const EVENT_BYTES: f64 = 1_048_576.0;
/// Steps of a hog between two looks at whether the run is over.
const HOG_STEPS: u64 = 1_000_000;
/// More than this a thread does not catch up with.
const LATENESS_MOST: Duration = Duration::from_secs(1);

impl Worker {
    /// Count a step that moves no data.
    fn waited(&mut self, place: usize, begun_ns: u64, ended: bool) -> Result<(), Undone> {
        if !ended {
            return Err(Undone::Stop);
        }
        self.tally.steps[place].add(now_ns() - begun_ns, 0);
        Ok(())
    }

    pub(super) fn delay(&mut self, plan: &Plan, place: usize, step: &Step) -> Result<(), Undone> {
        let begun_ns = now_ns();
        let seconds = step.flowop.value.draw(&mut self.streams[place]);
        // A sleep that ended late, on a busy machine, makes the next one shorter: so their mean is what was asked for.
        let wanted = Duration::from_secs_f64(seconds.clamp(0.0, 1e9));
        plan.control.sleep(wanted.saturating_sub(self.late));
        let slept = Duration::from_nanos(now_ns() - begun_ns);
        self.late = (self.late + slept)
            .saturating_sub(wanted)
            .min(LATENESS_MOST);
        self.waited(place, begun_ns, !plan.control.stopped())
    }

    /// Take one event, as often as it is come by.
    pub(super) fn event(&mut self, plan: &Plan, place: usize) -> Result<(), Undone> {
        let Some(pacer) = &plan.pacer else {
            return Ok(());
        };
        let begun_ns = now_ns();
        pacer.take(1.0, &plan.control);
        self.waited(place, begun_ns, !plan.control.stopped())
    }

    /// Store a byte so many times, as Filebench's hog does.
    pub(super) fn hog(&mut self, plan: &Plan, place: usize, step: &Step) -> Result<(), Undone> {
        let begun_ns = now_ns();
        let mut left = step.flowop.value.draw(&mut self.streams[place]) as u64;
        let mut byte = 0_u8;
        while left > 0 && !plan.control.stopped() {
            let now = left.min(HOG_STEPS);
            for _ in 0..now {
                *black_box(&mut byte) = 1;
            }
            left -= now;
        }
        self.waited(place, begun_ns, !plan.control.stopped())
    }

    pub(super) fn limit(&mut self, plan: &Plan, place: usize, step: &Step) -> Result<(), Undone> {
        let Some(pacer) = &plan.pacer else {
            return Ok(());
        };
        let begun_ns = now_ns();
        let bandwidth = step.flowop.kind == Kind::BwLimit;
        let of = |counted: &usize| {
            let tally = &self.tally.steps[*counted];
            if bandwidth {
                tally.bytes.load(Relaxed)
            } else {
                tally.ops.load(Relaxed)
            }
        };
        let total: u64 = step.counted.iter().map(of).sum();
        let new = total - self.limited[step.account];
        self.limited[step.account] = total;
        pacer.take(
            if bandwidth {
                new as f64 / EVENT_BYTES
            } else {
                new as f64
            },
            &plan.control,
        );
        self.waited(place, begun_ns, !plan.control.stopped())
    }

    pub(super) fn sem_block(
        &mut self,
        plan: &Plan,
        place: usize,
        step: &Step,
    ) -> Result<(), Undone> {
        let begun_ns = now_ns();
        let value = step.flowop.value.draw(&mut self.streams[place]) as u64;
        let ended = plan.semaphores[step.semaphore].block(value, &plan.control);
        self.waited(place, begun_ns, ended)
    }

    pub(super) fn sem_post(
        &mut self,
        plan: &Plan,
        place: usize,
        step: &Step,
    ) -> Result<(), Undone> {
        let begun_ns = now_ns();
        let value = step.flowop.value.draw(&mut self.streams[place]) as u64;
        let ended =
            plan.semaphores[step.semaphore].post(value, step.flowop.blocking, &plan.control);
        self.waited(place, begun_ns, ended)
    }

    pub(super) fn finish(&mut self, plan: &Plan, place: usize, step: &Step) -> Result<(), Undone> {
        let begun_ns = now_ns();
        let limit = step.flowop.value.draw(&mut self.streams[place]);
        if plan.counters[step.counter].load(Relaxed) as f64 >= limit {
            plan.control.finish();
            return Err(Undone::Stop);
        }
        self.waited(place, begun_ns, true)
    }
}
