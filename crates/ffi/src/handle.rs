//! A session's settings and state.

use std::ffi::{c_int, c_void};
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ascar_pilot::goal::Goal;
use ascar_pilot::indicator::{Indicator, Kind};
use ascar_pilot::session::{Limits, Plan, Session};
use ascar_pilot::work_amounts::Schedule;

use crate::pointers;
use crate::round::RoundHandle;
use crate::status::{self, Failure, Outcome, guard};
use crate::values::CSummary;

/// `pilot_workload_t`; an exception that leaves it ends the program, as it cannot be passed on.
pub type Workload = unsafe extern "C-unwind" fn(*mut c_void, f64, *mut RoundHandle) -> c_int;
/// `pilot_progress_t`.
pub type Progress = unsafe extern "C-unwind" fn(*mut c_void, *const CSummary);

/// A goal of an indicator's own; the rest is the session's.
#[derive(Clone, Copy, Debug)]
pub struct Own {
    pub interval_width: f64,
    pub confidence: f64,
    pub readings_min: usize,
}

/// An indicator that is wanted.
#[derive(Clone, Debug)]
pub struct Wanted {
    pub name: String,
    pub kind: Kind,
    pub must_reach: bool,
    pub own: Option<Own>,
}

impl Own {
    /// The session's goal with these figures.
    pub fn over(self, goal: Goal) -> Goal {
        Goal {
            interval_width: self.interval_width,
            confidence: self.confidence,
            readings_min: self.readings_min,
            ..goal
        }
    }
}

/// What a session is told before it runs.
#[derive(Clone, Debug)]
pub struct Settings {
    pub goal: Goal,
    pub limits: Limits,
    pub schedule: Schedule,
    pub adjustable: bool,
    pub indicators: Vec<Wanted>,
    /// What the speed must reach, whatever else decides.
    pub speed: Option<Own>,
    pub workload: Option<(Workload, *mut c_void)>,
    pub progress: Option<(Progress, *mut c_void)>,
}

impl Settings {
    /// What is measured, with the goal as it is now.
    pub fn plan(&self) -> Plan {
        let goal_of = |wanted: &Wanted| wanted.own.map_or(self.goal, |own| own.over(self.goal));
        let indicators = self.indicators.iter().map(|wanted| Indicator {
            name: wanted.name.clone(),
            kind: wanted.kind,
            goal: wanted.must_reach.then(|| goal_of(wanted)),
        });
        Plan {
            indicators: indicators.collect(),
            goal: self.goal,
            speed: self.speed.map(|own| own.over(self.goal)),
            work: self.adjustable.then_some(self.schedule),
            limits: self.limits,
        }
    }
}

/// What the last run came to.
#[derive(Debug)]
pub struct Ran {
    pub session: Session,
    pub summary: CSummary,
}

/// Settings and what came of them.
#[derive(Debug)]
pub struct State {
    pub settings: Settings,
    pub running: bool,
    pub ran: Option<Ran>,
}

impl State {
    /// What the last run came to; a failure before the first.
    pub fn ran(&self) -> Outcome<&Ran> {
        self.ran.as_ref().ok_or_else(|| {
            Failure::new(
                status::Kind::State,
                "the session has not run; call pilot_run first",
            )
        })
    }
}

/// What `pilot_session_t` is.
#[derive(Debug)]
pub struct Handle {
    state: Mutex<State>,
    /// Asked to end. Outside the lock, for signal handlers.
    pub stop: AtomicBool,
}

impl Handle {
    /// A session that has not run.
    pub fn new(settings: Settings) -> Self {
        Self {
            state: Mutex::new(State {
                settings,
                running: false,
                ran: None,
            }),
            stop: AtomicBool::new(false),
        }
    }

    /// The state; no invariant spans a panic, so a poisoned lock is as good as another.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state of a session that is not running.
    pub fn idle(&self) -> Outcome<MutexGuard<'_, State>> {
        let state = self.lock();
        if state.running {
            return Err(Failure::new(
                status::Kind::Busy,
                "the session is running; wait until pilot_run has returned",
            ));
        }
        Ok(state)
    }
}

/// Does something with a session that is not running.
///
/// # Safety
///
/// A pointer that is not NULL is from `pilot_create` and not freed.
pub unsafe fn with(session: *mut Handle, act: impl FnOnce(&mut State) -> Outcome<()>) -> c_int {
    guard(|| {
        // SAFETY: as promised; sessions are only ever shared.
        let handle = unsafe { pointers::shared("session", session) }?;
        act(&mut *handle.idle()?)
    })
}
