//! A stream as its client holds it: the controller, the requests in flight, and the place of the one that leaves next.
//!
//! For each request, in this order:
//!
//! 1. [`Stream::ask`], until the answer is [`Admission::Now`]. The request has a place in window and pace before that, as
//!    soon as the window allows.
//! 2. [`Stream::sent`]: the request leaves now.
//! 3. [`Stream::replied`], [`Stream::timed_out`] or [`Stream::cancelled`].
//!
//! Nothing is allocated in these steps. The times of one stream never go back.

use std::fmt;
use std::sync::Arc;

use crate::any::{AnyController, RIVAL_NAMES};
use crate::controller::{Controller, InFlight, Reply, Window};
use crate::fault::{Fault, Result};
use crate::rivals::{Fixed, RivalSettings};
use crate::rule_set::{Deployment, RuleSet};
use crate::sequences::Sequences;
use crate::signals::{Signals, Tracker};
use crate::window::{WINDOW_X100_DEFAULT, WINDOW_X100_MAX, WINDOW_X100_MIN};

/// The latest time that a stream can be told, in microseconds: half of what the number holds, so that sums fit.
pub const NOW_US_MAX: u64 = u64::MAX >> 1;

/// Whether a request may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Now.
    Now,
    /// Not before this time. The request has its place.
    At(u64),
    /// Not before a request is over. At least one is in flight then.
    Full,
}

/// A request that leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sending {
    /// Which file; any one number for a device.
    pub file: u32,
    /// Where it begins.
    pub offset_bytes: u64,
    /// Bytes that it reads or writes; 0 of a flush.
    pub bytes: u32,
    /// Whether it writes.
    pub write: bool,
}

/// A request that left, as its client keeps it until it is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// When it left.
    pub sent_us: u64,
    /// Bytes that it reads or writes.
    pub bytes: u32,
    /// Whether it writes.
    pub write: bool,
    /// Whether it goes on where one before it ended; told of streams under extended rules only.
    pub sequential: bool,
}

/// How a stream follows rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Following {
    /// The window to begin with, in hundredths; `None`: the present one.
    pub window_x100: Option<u32>,
    /// The extended controller even where the rules bound the indicators of the thesis only.
    pub extended: bool,
    /// Tells the probes of streams apart.
    pub seed: u64,
}

/// A call that does not fit the stream. The stream stays as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misuse {
    /// The time is earlier than one told before.
    TimeWentBack {
        /// The time told.
        now_us: u64,
        /// The latest before.
        last_us: u64,
    },
    /// The time is above [`NOW_US_MAX`].
    TimeTooLate {
        /// The time told.
        now_us: u64,
    },
    /// A request leaves that has no place.
    NoPlace,
    /// A request leaves before its time.
    TooEarly {
        /// The time told.
        now_us: u64,
        /// When the request may leave.
        at_us: u64,
    },
    /// A request leaves that is not of the size asked for.
    OtherSize {
        /// Its size.
        bytes: u32,
        /// The size asked for.
        asked_bytes: u32,
    },
    /// No such request is in flight.
    NotInFlight,
}

impl Misuse {
    /// Whether the order of calls is wrong, not a value.
    #[must_use]
    pub fn is_of_order(&self) -> bool {
        matches!(
            self,
            Self::NoPlace | Self::TooEarly { .. } | Self::NotInFlight
        )
    }
}

impl fmt::Display for Misuse {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::TimeWentBack { now_us, last_us } => write!(
                out,
                "now_us is {now_us}; allowed: {last_us} or more, which the stream was told before"
            ),
            Self::TimeTooLate { now_us } => {
                write!(out, "now_us is {now_us}; allowed: at most {NOW_US_MAX}")
            }
            Self::NoPlace => write!(out, "the request has no place; ask first"),
            Self::TooEarly { now_us, at_us } => write!(
                out,
                "the request may leave at {at_us} us, and now_us is {now_us}; wait, then ask again"
            ),
            Self::OtherSize { bytes, asked_bytes } => write!(
                out,
                "bytes is {bytes}; allowed: {asked_bytes}, which was asked for"
            ),
            Self::NotInFlight => write!(
                out,
                "the request is not in flight; end each request that was sent once"
            ),
        }
    }
}

impl std::error::Error for Misuse {}

/// The place of the request that leaves next.
#[derive(Clone, Copy, Debug)]
struct Place {
    bytes: u32,
    /// When it may leave; `None` where the controller that said so is gone.
    at_us: Option<u64>,
}

/// A stream.
#[derive(Clone, Debug)]
pub struct Stream {
    controller: AnyController,
    /// The congestion state, where the controller keeps none.
    tracker: Option<Tracker>,
    /// The request that has its place is among them.
    in_flight: InFlight,
    place: Option<Place>,
    /// The time of a place that was given back: that of the request that asks next, else each that gives up would put
    /// those after it off by the pace.
    returned_us: Option<u64>,
    sequences: Sequences,
    now_us: u64,
    replies: u64,
    timeouts: u64,
}

impl Default for Stream {
    /// The default window, and no pace.
    fn default() -> Self {
        Self::new(AnyController::Fixed(Fixed::default()))
    }
}

impl Stream {
    /// A stream without requests.
    #[must_use]
    pub fn new(controller: AnyController) -> Self {
        let mut stream = Self {
            controller,
            tracker: None,
            in_flight: InFlight::default(),
            place: None,
            returned_us: None,
            sequences: Sequences::default(),
            now_us: 0,
            replies: 0,
            timeouts: 0,
        };
        stream.track();
        stream
    }

    /// Puts another controller in force. What is in flight stays so, and the request that waits for its pace asks the new
    /// controller.
    pub fn hold(&mut self, controller: AnyController) {
        self.controller = controller;
        self.track();
        self.returned_us = None;
        if let Some(place) = &mut self.place {
            place.at_us = None;
        }
    }

    /// Holds the stream to a fixed window, in hundredths, and a pace; refuses a window out of range.
    pub fn fix(&mut self, window_x100: u32, gap_us: u32) -> Result<()> {
        check_window(window_x100)?;
        self.hold(AnyController::Fixed(Fixed::new(window_x100, gap_us)));
        Ok(())
    }

    /// Follows rules from now on, with their use counted from zero; refuses limits that only a client with files keeps.
    pub fn follow(&mut self, rules: RuleSet, following: &Following) -> Result<()> {
        if rules.active_files() > 0 {
            let allowed = "none: a stream does not know which files wait; leave it out";
            return Err(Fault::setting(
                "active_files",
                rules.active_files(),
                allowed,
            ));
        }
        following.window_x100.map_or(Ok(()), check_window)?;
        let window_x100 = following.window_x100.unwrap_or_else(|| self.window_x100());
        let deployment = Arc::new(Deployment::new(rules));
        let Following { extended, seed, .. } = *following;
        self.hold(AnyController::by_rules(
            deployment,
            window_x100,
            extended,
            seed,
        ));
        Ok(())
    }

    /// Follows a controller of [`RIVAL_NAMES`], which begins with its own window.
    pub fn rival(&mut self, name: &str, seed: u64, settings: &RivalSettings) -> Result<()> {
        settings.check()?;
        let Some(controller) = AnyController::tuned(name, seed, settings) else {
            let found: String = name.chars().take(40).collect();
            return Err(Fault::Unknown {
                name: "controller",
                value: found,
                allowed: &RIVAL_NAMES,
            });
        };
        self.hold(controller);
        Ok(())
    }

    /// Whether a request of so many bytes may leave. Asked again, the same request has the same place; asked for another
    /// size, the place is the other request's if the window has room for it, and given back otherwise.
    #[inline]
    pub fn ask(&mut self, now_us: u64, bytes: u32) -> std::result::Result<Admission, Misuse> {
        self.check_time(now_us)?;
        self.now_us = now_us;
        let kept_us = match self.place {
            Some(place) if place.bytes == bytes => place.at_us,
            _ => {
                self.give_back();
                if !self.controller.admits(self.in_flight, bytes) {
                    return Ok(Admission::Full);
                }
                self.in_flight.requests += 1;
                self.in_flight.bytes += u64::from(bytes);
                let gap_us = self.controller.gap_us().into();
                let returned_us = self.returned_us.take();
                returned_us.filter(|at_us| now_us < at_us.saturating_add(gap_us))
            }
        };
        let at_us = kept_us.unwrap_or_else(|| self.controller.reserve(now_us, bytes));
        self.place = Some(Place {
            bytes,
            at_us: Some(at_us),
        });
        Ok(match at_us <= now_us {
            true => Admission::Now,
            false => Admission::At(at_us),
        })
    }

    /// The request that asked does not leave: its place in window and pace is the next one's.
    #[inline]
    pub fn give_back(&mut self) {
        if let Some(place) = self.place.take() {
            self.returned_us = place.at_us;
            self.in_flight.requests -= 1;
            self.in_flight.bytes -= u64::from(place.bytes);
        }
    }

    /// The request that may leave now does.
    #[inline]
    pub fn sent(&mut self, now_us: u64, sending: &Sending) -> std::result::Result<Sent, Misuse> {
        self.check_time(now_us)?;
        let place = self.place.ok_or(Misuse::NoPlace)?;
        let bytes = sending.bytes;
        if place.bytes != bytes {
            return Err(Misuse::OtherSize {
                bytes,
                asked_bytes: place.bytes,
            });
        }
        match place.at_us {
            Some(at_us) if at_us > now_us => return Err(Misuse::TooEarly { now_us, at_us }),
            Some(_) => {}
            // It may have been told to leave just before; the new controller's pace counts from here.
            None => {
                self.controller.reserve(now_us, bytes);
            }
        }
        self.now_us = now_us;
        self.place = None;
        self.controller.on_send(now_us, bytes);
        let is_told = matches!(self.controller, AnyController::Extended(_)) && bytes > 0;
        let begins = (sending.file, sending.offset_bytes);
        Ok(Sent {
            sent_us: now_us,
            bytes,
            write: sending.write && bytes > 0,
            sequential: is_told && self.sequences.on_send(begins.0, begins.1, bytes),
        })
    }

    /// A request was answered, with success or not.
    #[inline]
    pub fn replied(&mut self, sent: &Sent, now_us: u64) -> std::result::Result<(), Misuse> {
        self.check_over(sent, now_us)?;
        self.now_us = now_us;
        let reply = Reply {
            sent_us: sent.sent_us,
            now_us,
            bytes: sent.bytes,
            in_flight: self.in_flight,
            write: sent.write,
            sequential: sent.sequential,
        };
        self.controller.on_reply(&reply);
        if let Some(tracker) = &mut self.tracker {
            tracker.on_reply(sent.sent_us, now_us, reply.process_time_us());
        }
        self.replies += 1;
        self.release(sent);
        Ok(())
    }

    /// A request was given up: its reply never came in time.
    pub fn timed_out(&mut self, sent: &Sent, now_us: u64) -> std::result::Result<(), Misuse> {
        self.check_over(sent, now_us)?;
        self.now_us = now_us;
        self.controller.on_timeout(sent.sent_us, now_us);
        self.timeouts += 1;
        self.release(sent);
        Ok(())
    }

    /// A request never left after all, or went down with its connection: it says nothing of the server.
    pub fn cancelled(&mut self, sent: &Sent) -> std::result::Result<(), Misuse> {
        self.check_over(sent, self.now_us)?;
        self.release(sent);
        Ok(())
    }

    /// The controller.
    #[must_use]
    pub fn controller(&self) -> &AnyController {
        &self.controller
    }

    /// The rules in force, with the counters of their use.
    #[must_use]
    pub fn deployment(&self) -> Option<&Arc<Deployment>> {
        match &self.controller {
            AnyController::Faithful(faithful) => Some(faithful.deployment()),
            AnyController::Extended(extended) => Some(extended.deployment()),
            _ => None,
        }
    }

    /// How much may be in flight.
    #[must_use]
    pub fn window(&self) -> Window {
        self.controller.window()
    }

    /// The least gap between two requests, in microseconds.
    #[must_use]
    pub fn gap_us(&self) -> u32 {
        self.controller.gap_us()
    }

    /// What is in flight; a request that has its place is.
    #[must_use]
    pub fn in_flight(&self) -> InFlight {
        self.in_flight
    }

    /// The congestion state, whatever the controller; the further indicators are zero but under extended rules.
    #[must_use]
    pub fn signals(&self) -> Signals {
        let own = self.tracker.as_ref().map(Tracker::signals);
        own.or_else(|| self.controller.signals())
            .unwrap_or_default()
    }

    /// Requests answered so far.
    #[must_use]
    pub fn replies(&self) -> u64 {
        self.replies
    }

    /// Requests given up so far.
    #[must_use]
    pub fn timeouts(&self) -> u64 {
        self.timeouts
    }

    fn track(&mut self) {
        self.tracker = match self.controller.signals() {
            Some(_) => None,
            None => Some(Tracker::default()),
        };
    }

    fn window_x100(&self) -> u32 {
        match self.controller.window().requests_x100 {
            // Bytes count, not requests.
            u32::MAX => WINDOW_X100_DEFAULT,
            window_x100 => window_x100.clamp(WINDOW_X100_MIN, WINDOW_X100_MAX),
        }
    }

    #[inline]
    fn check_time(&self, now_us: u64) -> std::result::Result<(), Misuse> {
        if now_us > NOW_US_MAX {
            return Err(Misuse::TimeTooLate { now_us });
        }
        let last_us = self.now_us;
        if now_us < last_us {
            return Err(Misuse::TimeWentBack { now_us, last_us });
        }
        Ok(())
    }

    /// Whether a request may end now: at least one of its size is in flight, and left before.
    #[inline]
    fn check_over(&self, sent: &Sent, now_us: u64) -> std::result::Result<(), Misuse> {
        self.check_time(now_us)?;
        let (waiting, waiting_bytes) = match self.place {
            Some(place) => (1, place.bytes.into()),
            None => (0, 0),
        };
        let is_known = self.in_flight.requests > waiting
            && self.in_flight.bytes - waiting_bytes >= u64::from(sent.bytes)
            && sent.sent_us <= self.now_us;
        is_known.then_some(()).ok_or(Misuse::NotInFlight)
    }

    #[inline]
    fn release(&mut self, sent: &Sent) {
        self.in_flight.requests -= 1;
        self.in_flight.bytes -= u64::from(sent.bytes);
    }
}

fn check_window(window_x100: u32) -> Result<()> {
    if (WINDOW_X100_MIN..=WINDOW_X100_MAX).contains(&window_x100) {
        return Ok(());
    }
    let value = f64::from(window_x100) / 100.0;
    Err(Fault::setting("window", value, "1 to 256 requests"))
}
