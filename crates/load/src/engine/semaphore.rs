//! semblock and sempost: counting semaphores whose posters may be held back.
//!
//! As in Filebench, a semblock of value v takes v posts at once; a blocking post waits while posts run more than
//! `highwater` ahead of the blocks that were begun. All instances of one semblock share one semaphore.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::control::Control;

/// Waits look this often whether the load is to end.
const SLICE: Duration = Duration::from_millis(50);

#[derive(Debug)]
struct State {
    posts: u64,
    room: u64,
    blocked: u32,
    held: u32,
}

/// One semblock's semaphore.
#[derive(Debug)]
pub struct Semaphore {
    state: Mutex<State>,
    posted: Condvar,
    roomy: Condvar,
}

impl Semaphore {
    /// No posts yet.
    #[must_use]
    pub fn new(highwater: u64) -> Semaphore {
        Semaphore {
            state: Mutex::new(State {
                posts: 0,
                room: highwater,
                blocked: 0,
                held: 0,
            }),
            posted: Condvar::new(),
            roomy: Condvar::new(),
        }
    }

    /// Take so many posts; false when the load ended first.
    pub fn block(&self, value: u64, control: &Control) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.room += value;
        if state.held > 0 {
            self.roomy.notify_all();
        }
        while state.posts < value {
            if control.stopped() {
                return false;
            }
            state.blocked += 1;
            state = self
                .posted
                .wait_timeout(state, SLICE)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
            state.blocked -= 1;
        }
        state.posts -= value;
        if state.posts >= value && state.blocked > 0 {
            self.posted.notify_one();
        }
        true
    }

    /// Post so often; a blocking post waits for room. False when the load ended first.
    pub fn post(&self, value: u64, blocking: bool, control: &Control) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while blocking && state.room < value {
            if control.stopped() {
                return false;
            }
            state.held += 1;
            state = self
                .roomy
                .wait_timeout(state, SLICE)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
            state.held -= 1;
        }
        state.room = state.room.saturating_sub(value);
        state.posts += value;
        if state.blocked > 0 {
            self.posted.notify_one();
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn blocks_take_exactly_what_was_posted() {
        let (semaphore, control, taken) =
            (Semaphore::new(50), Control::default(), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while semaphore.block(10, &control) {
                        taken.fetch_add(10, Ordering::Relaxed);
                    }
                });
            }
            let posters: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        (0..2500).for_each(|_| assert!(semaphore.post(1, true, &control)))
                    })
                })
                .collect();
            for poster in posters {
                poster.join().unwrap();
            }
            while taken.load(Ordering::Relaxed) < 10_000 {
                std::thread::yield_now();
            }
            control.stop();
        });
        assert_eq!(taken.load(Ordering::Relaxed), 10_000);
    }

    #[test]
    fn a_held_post_ends_with_the_load() {
        let (semaphore, control) = (Semaphore::new(2), Control::default());
        assert!(semaphore.post(2, true, &control));
        std::thread::scope(|scope| {
            let held = scope.spawn(|| semaphore.post(1, true, &control));
            std::thread::sleep(Duration::from_millis(20));
            control.stop();
            assert!(!held.join().unwrap());
        });
    }
}
