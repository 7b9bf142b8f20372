//! What a stream asks of its controller, whichever it is.
//!
//! A stream is one client-server pair (Li, 3.1.2). For each request, in this order:
//!
//! 1. [`Controller::admits`]: may one more be in flight? If not, wait for a reply.
//! 2. [`Controller::reserve`]: when may it leave? It holds its place in the window from now on.
//! 3. It leaves at that time; the caller stamps `sent_us` *then*, and calls [`Controller::on_send`].
//! 4. [`Controller::on_reply`] when its reply comes, or [`Controller::on_timeout`] when it never did.
//!
//! Stamping at step 3, and not before the wait, keeps the pacer's gap out of the process time.

use crate::signals::Signals;

/// What is in flight on a stream: reserved or sent, and not replied to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InFlight {
    /// Requests.
    pub requests: u32,
    /// Their bytes.
    pub bytes: u64,
}

/// One reply of the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// When its request really left.
    pub sent_us: u64,
    /// When the reply came.
    pub now_us: u64,
    /// Bytes that the request read or wrote.
    pub bytes: u32,
    /// What was in flight just before the reply, this request among it.
    pub in_flight: InFlight,
    /// Whether the request wrote.
    pub write: bool,
    /// Whether it went on where one before it had ended; [`crate::Sequences`] tells.
    pub sequential: bool,
}

impl Reply {
    /// The process time in microseconds, at least one: clocks are coarse, ratios divide by it.
    #[must_use]
    pub fn process_time_us(&self) -> u32 {
        let elapsed = self.now_us.saturating_sub(self.sent_us).max(1);
        u32::try_from(elapsed).unwrap_or(u32::MAX)
    }
}

/// How much may be in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Requests, times 100: 250 lets two requests be in flight.
    pub requests_x100: u32,
    /// Bytes; `u64::MAX` where only requests count.
    pub bytes: u64,
}

impl Window {
    /// A window of whole and hundredth requests, whatever their size.
    #[must_use]
    pub const fn of_requests_x100(requests_x100: u32) -> Self {
        Self {
            requests_x100,
            bytes: u64::MAX,
        }
    }

    /// A window of bytes, whatever their number of requests.
    #[must_use]
    pub const fn of_bytes(bytes: u64) -> Self {
        Self {
            requests_x100: u32::MAX,
            bytes,
        }
    }

    /// Whether one more request of so many bytes fits. An idle stream may always send one.
    #[must_use]
    pub fn admits(&self, in_flight: InFlight, bytes: u32) -> bool {
        if in_flight.requests == 0 {
            return true;
        }
        let requests = (u64::from(in_flight.requests) + 1) * 100;
        requests <= u64::from(self.requests_x100)
            && in_flight.bytes.saturating_add(u64::from(bytes)) <= self.bytes
    }
}

/// Controls one stream. Time is microseconds of any clock that never goes back.
pub trait Controller: Send {
    /// When a request that is ready now may leave, at or after `now_us`; takes that place.
    fn reserve(&mut self, now_us: u64, bytes: u32) -> u64;

    /// The request left the client.
    fn on_send(&mut self, now_us: u64, bytes: u32) {
        let _ = (now_us, bytes);
    }

    /// A reply came.
    fn on_reply(&mut self, reply: &Reply);

    /// A request that left at `sent_us` was given up.
    fn on_timeout(&mut self, sent_us: u64, now_us: u64);

    /// How much may be in flight at present.
    fn window(&self) -> Window;

    /// The least gap between two requests at present, in microseconds: tau of Li, 3.1.4.
    fn gap_us(&self) -> u32;

    /// The congestion state, of controllers that keep one.
    fn signals(&self) -> Option<Signals> {
        None
    }

    /// Whether one more request may be in flight.
    fn admits(&self, in_flight: InFlight, bytes: u32) -> bool {
        self.window().admits(in_flight, bytes)
    }
}
