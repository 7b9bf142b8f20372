//! Any of the controllers, in one type of known size: what a table of streams holds.

use crate::controller::{Controller, InFlight, Reply, Window};
use crate::faithful::Faithful;
use crate::rivals::Fixed;
use crate::signals::Signals;

/// One controller, whichever.
#[derive(Clone, Debug)]
pub enum AnyController {
    /// Rules, as the original follows them.
    Faithful(Faithful),
    /// A window and a gap as set.
    Fixed(Fixed),
}

macro_rules! each {
    ($any:expr, $controller:ident => $call:expr) => {
        match $any {
            AnyController::Faithful($controller) => $call,
            AnyController::Fixed($controller) => $call,
        }
    };
}

impl Controller for AnyController {
    #[inline]
    fn reserve(&mut self, now_us: u64, bytes: u32) -> u64 {
        each!(self, controller => controller.reserve(now_us, bytes))
    }

    #[inline]
    fn on_send(&mut self, now_us: u64, bytes: u32) {
        each!(self, controller => controller.on_send(now_us, bytes));
    }

    #[inline]
    fn on_reply(&mut self, reply: &Reply) {
        each!(self, controller => controller.on_reply(reply));
    }

    fn on_timeout(&mut self, sent_us: u64, now_us: u64) {
        each!(self, controller => controller.on_timeout(sent_us, now_us));
    }

    #[inline]
    fn window(&self) -> Window {
        each!(self, controller => controller.window())
    }

    #[inline]
    fn gap_us(&self) -> u32 {
        each!(self, controller => controller.gap_us())
    }

    #[inline]
    fn signals(&self) -> Option<Signals> {
        each!(self, controller => controller.signals())
    }

    #[inline]
    fn admits(&self, in_flight: InFlight, bytes: u32) -> bool {
        each!(self, controller => controller.admits(in_flight, bytes))
    }
}
