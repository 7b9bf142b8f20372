//! No control: a window and a gap that somebody set. The default window is Lustre's, 8 requests.

use crate::controller::{Controller, Reply, Window};
use crate::pacer::Pacer;
use crate::signals::{Signals, Tracker};
use crate::window::{WINDOW_X100_DEFAULT, WINDOW_X100_MAX, WINDOW_X100_MIN};

/// A window and a gap as set; the congestion state is kept for whoever sets them.
#[derive(Clone, Debug)]
pub struct Fixed {
    tracker: Tracker,
    pacer: Pacer,
    window_x100: u32,
    gap_us: u32,
}

impl Default for Fixed {
    fn default() -> Self {
        Self::new(WINDOW_X100_DEFAULT, 0)
    }
}

impl Fixed {
    /// A window in hundredths of requests, made to fit 1 to 256 requests, and a gap (0: no rate limit).
    #[must_use]
    pub fn new(window_x100: u32, gap_us: u32) -> Self {
        let mut fixed = Self {
            tracker: Tracker::default(),
            pacer: Pacer::default(),
            window_x100: 0,
            gap_us,
        };
        fixed.set(window_x100, gap_us);
        fixed
    }

    /// Sets both at once; requests that have a place keep it.
    pub fn set(&mut self, window_x100: u32, gap_us: u32) {
        self.window_x100 = window_x100.clamp(WINDOW_X100_MIN, WINDOW_X100_MAX);
        self.gap_us = gap_us;
    }
}

impl Controller for Fixed {
    #[inline]
    fn reserve(&mut self, now_us: u64, _bytes: u32) -> u64 {
        self.pacer.reserve(now_us, self.gap_us.into())
    }

    #[inline]
    fn on_reply(&mut self, reply: &Reply) {
        self.tracker
            .on_reply(reply.sent_us, reply.now_us, reply.process_time_us());
    }

    fn on_timeout(&mut self, _sent_us: u64, _now_us: u64) {}

    #[inline]
    fn window(&self) -> Window {
        Window::of_requests_x100(self.window_x100)
    }

    fn gap_us(&self) -> u32 {
        self.gap_us
    }

    fn signals(&self) -> Option<Signals> {
        Some(self.tracker.signals())
    }
}
