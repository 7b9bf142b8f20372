//! Running a session: the one place with a clock.

use std::ffi::c_int;
use std::sync::atomic::Ordering;
use std::time::Instant;

use ascar_pilot::session::{Ended, Session};

use crate::handle::{Handle, Ran, Settings};
use crate::pointers;
use crate::round::RoundHandle;
use crate::status::{Failure, Kind, Outcome, guard};
use crate::values::{CSummary, fixed};

const ROUND_DONE: c_int = 0;
const ROUND_STOP: c_int = 1;
/// A round that the clock saw no time pass in took less than its tick.
const TICK_S: f64 = 1e-9;
const ENDED_FAILED: c_int = 5;

/// Puts a session at rest again, whatever happens.
struct Rest<'a>(&'a Handle);

impl Drop for Rest<'_> {
    fn drop(&mut self) {
        self.0.lock().running = false;
        // A request ends the run that it was made in or before, not the next.
        self.0.stop.store(false, Ordering::Relaxed);
    }
}

/// `pilot_run`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pilot_run(session: *mut Handle) -> c_int {
    guard(|| {
        // SAFETY: the header asks for a session.
        let handle = unsafe { pointers::shared("session", session) }?;
        let (settings, session) = {
            let mut state = handle.idle()?;
            let session = Session::new(state.settings.plan())?;
            if state.settings.workload.is_none() {
                return Err(Failure::new(
                    Kind::State,
                    "the session has no workload; call pilot_set_workload first",
                ));
            }
            (state.running, state.ran) = (true, None);
            (state.settings.clone(), session)
        };
        let _rest = Rest(handle);
        let mut run = Run {
            handle,
            settings,
            session,
            start: Instant::now(),
        };
        let ended = run.rounds();
        let summary = run.summary(ended.as_ref().err());
        handle.lock().ran = Some(Ran {
            session: run.session,
            summary,
        });
        ended
    })
}

/// `pilot_stop`: an atomic store and nothing else, for signal handlers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pilot_stop(session: *mut Handle) -> c_int {
    if session.is_null() || !session.is_aligned() {
        return Kind::Argument as c_int;
    }
    // SAFETY: not NULL and aligned; the header asks for a session.
    unsafe { &*session }.stop.store(true, Ordering::Relaxed);
    0
}

/// A run under way. The session's lock is not held while the workload has the word.
struct Run<'a> {
    handle: &'a Handle,
    settings: Settings,
    session: Session,
    start: Instant,
}

/// How a round went.
enum Step {
    Counts,
    Stop,
}

impl Run<'_> {
    fn rounds(&mut self) -> Outcome<()> {
        if self.asked_to_stop() {
            self.session.judge(self.elapsed_s(), Some(Ended::Stopped))?;
            return Ok(());
        }
        loop {
            let step = self.round().inspect_err(|_| {
                // What was measured before is kept, and looked at a last time.
                let elapsed_s = self.start.elapsed().as_secs_f64();
                let _ = self.session.judge(elapsed_s, Some(Ended::Stopped));
            })?;
            let stop = matches!(step, Step::Stop) || self.asked_to_stop();
            let over = stop.then_some(Ended::Stopped);
            let ended = self.session.judge(self.elapsed_s(), over)?;
            if let Some((progress, user)) = self.settings.progress {
                let summary = self.summary(None);
                // SAFETY: the header asks for a function that takes its own `user` and a summary.
                unsafe { progress(user, &raw const summary) };
            }
            if ended.is_some() {
                return Ok(());
            }
        }
    }

    fn round(&mut self) -> Outcome<Step> {
        let Some((workload, user)) = self.settings.workload else {
            return Err(Failure::new(Kind::State, "the session has no workload"));
        };
        let work = self.session.next_work();
        let plan = self.session.plan();
        let left_s = (plan.limits.session_s - self.elapsed_s()).max(0.0);
        let mut round = RoundHandle::new(&plan.indicators, left_s);
        let start = Instant::now();
        // SAFETY: the header asks for a function that takes its own `user` and this round.
        let told = unsafe { workload(user, work.unwrap_or(0.0), &raw mut round) };
        let seconds = start.elapsed().as_secs_f64().max(TICK_S);
        let failed = |why: &str| Failure::new(Kind::Workload, format!("the workload {why}"));
        match told {
            ROUND_DONE => {
                let done = round.done(work, seconds).map_err(|fault| {
                    failed(&format!("gave what cannot be used: {}", fault.message))
                })?;
                self.session
                    .take(&done)
                    .map_err(|error| failed(&format!("gave what cannot be used: {error}")))?;
                Ok(Step::Counts)
            }
            ROUND_STOP => Ok(Step::Stop),
            other => Err(failed(&format!("failed: it returned {other}"))),
        }
    }

    fn elapsed_s(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    fn asked_to_stop(&self) -> bool {
        self.handle.stop.load(Ordering::Relaxed)
    }

    fn summary(&self, failure: Option<&Failure>) -> CSummary {
        let session = &self.session;
        let (ended, why) = match (failure, session.ended()) {
            (Some(failure), _) => (ENDED_FAILED, failure.message.clone()),
            (None, None) => (0, session.why()),
            (None, Some(Ended::Reached)) => (1, session.why()),
            (None, Some(Ended::Time)) => (2, session.why()),
            (None, Some(Ended::Rounds)) => (3, session.why()),
            (None, Some(Ended::Stopped)) => (4, session.why()),
        };
        CSummary {
            ended,
            reached: c_int::from(session.ended() == Some(Ended::Reached)),
            speed_decides: c_int::from(session.speed_decides()),
            rounds: session.rounds().len(),
            rounds_used: session.rounds().iter().filter(|done| done.used).count(),
            seconds: session.seconds(),
            seconds_left: session.left_s().unwrap_or(f64::NAN),
            why: fixed(&why),
        }
    }
}
