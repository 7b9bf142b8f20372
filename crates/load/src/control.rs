//! Ending a load: asked for once, seen by all, and no wait outlasts it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::LoadError;
use crate::futex;

/// Shared by all threads of a load.
#[derive(Debug, Default)]
pub struct Control {
    stop: AtomicU32,
    finished: AtomicU32,
    error: OnceLock<LoadError>,
}

impl Control {
    /// Whether to end now.
    #[inline]
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed) != 0
    }

    /// Ask all to end, and wake those that wait here.
    pub fn stop(&self) {
        self.stop.store(1, Ordering::SeqCst);
        futex::wake_all(&self.stop);
    }

    /// The workload itself says that it is done.
    pub fn finish(&self) {
        self.finished.store(1, Ordering::SeqCst);
        self.stop();
    }

    /// Whether the workload itself said that it is done.
    pub fn finished(&self) -> bool {
        self.finished.load(Ordering::SeqCst) != 0
    }

    /// Something failed: the first failure is kept, and all end.
    pub fn fail(&self, error: LoadError) {
        let _ = self.error.set(error);
        self.stop();
    }

    /// The failure, if there was one.
    ///
    /// # Errors
    /// The first failure.
    pub fn result(&self) -> Result<(), LoadError> {
        self.error.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Sleep for a time, less when asked to end.
    pub fn sleep(&self, time: Duration) {
        let start = std::time::Instant::now();
        while !self.stopped() {
            let Some(left) = time.checked_sub(start.elapsed()) else {
                return;
            };
            if left.is_zero() {
                return;
            }
            futex::wait(&self.stop, 0, left);
        }
    }
}
