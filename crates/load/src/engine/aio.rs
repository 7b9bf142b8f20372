//! aiowrite: writes done by a pool of threads, their ends told to the thread that began them.

use std::collections::VecDeque;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::control::Control;
use crate::engine::now_ns;
use crate::engine::plan::Plan;
use crate::engine::trace::Event;
use crate::futex;

/// Most writes that one thread has begun and not ended.
const MOST_PENDING: u32 = 1024;
/// Waits look this often whether the load is to end.
const SLICE: Duration = Duration::from_millis(50);

/// A write to do.
pub struct Job {
    /// Descriptor, kept open by the thread that began it until nothing is pending.
    pub fd: RawFd,
    /// What is to be told when it is done; `nanos` is filled in then.
    pub event: Event,
    /// Whose it is.
    pub queue: Arc<Queue>,
}

/// The writes of one thread.
#[derive(Default)]
pub struct Queue {
    pending: AtomicU32,
    done: Mutex<Vec<Event>>,
}

impl Queue {
    /// Writes begun and not ended.
    pub fn pending(&self) -> u32 {
        self.pending.load(Ordering::Acquire)
    }

    /// Wait until at most so many are pending; false when the load ended first.
    pub fn wait(&self, at_most: u32, control: &Control) -> bool {
        loop {
            let pending = self.pending();
            if pending <= at_most {
                return true;
            }
            if control.stopped() {
                return false;
            }
            futex::wait(&self.pending, pending, SLICE);
        }
    }

    /// Take the ends that were told since the last time.
    pub fn harvest(&self, into: &mut Vec<Event>) {
        into.append(&mut self.done.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn end(&self, event: Event) {
        self.done
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(event);
        self.pending.fetch_sub(1, Ordering::Release);
        futex::wake_all(&self.pending);
    }
}

/// Writes of all threads, in the order they were begun.
#[derive(Default)]
pub struct Pool {
    jobs: Mutex<VecDeque<Job>>,
    filled: Condvar,
}

impl Pool {
    /// Begin a write; waits while the thread has too many pending. False when the load ended first.
    pub fn submit(&self, job: Job, control: &Control) -> bool {
        if !job.queue.wait(MOST_PENDING - 1, control) {
            return false;
        }
        job.queue.pending.fetch_add(1, Ordering::Acquire);
        self.jobs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push_back(job);
        self.filled.notify_one();
        true
    }

    /// Do writes until the load ends.
    pub fn serve(&self, plan: &Plan) {
        while !plan.control.stopped() {
            let jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
            let (mut jobs, _) = self
                .filled
                .wait_timeout_while(jobs, SLICE, |jobs| {
                    jobs.is_empty() && !plan.control.stopped()
                })
                .unwrap_or_else(PoisonError::into_inner);
            let Some(job) = jobs.pop_front() else {
                continue;
            };
            drop(jobs);
            let mut event = job.event;
            if let Err(error) = plan.write_at(
                job.fd,
                event.file,
                event.offset,
                event.bytes,
                event.begun_ns,
            ) {
                plan.control.fail(error);
            }
            event.nanos = now_ns() - event.begun_ns;
            job.queue.end(event);
        }
    }
}
