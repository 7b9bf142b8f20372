//! Making a session and telling it what to reach.

use std::ffi::{c_char, c_int, c_void};

use ascar_pilot::goal::{Goal, Published};
use ascar_pilot::indicator::Kind;
use ascar_pilot::session::Limits;
use ascar_pilot::work_amounts::Schedule;

use crate::handle::{Handle, Own, Progress, Settings, State, Wanted, Workload, with};
use crate::pointers::{self, Place};
use crate::status::{Failure, Outcome, guard};

const NAME_BYTES_MAX: usize = 255;
/// More than anyone reads; keeps a loop gone wrong from filling the memory.
const INDICATORS_MAX: usize = 1000;

/// `pilot_create`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pilot_create(preset: c_int, session: *mut *mut Handle) -> c_int {
    guard(|| {
        // SAFETY: the header asks for room for a pointer.
        let place = unsafe { Place::new("session", session) }?;
        let goal = Goal::PRESETS[preset_of(preset)?].1;
        let settings = Settings {
            goal,
            limits: Limits::default(),
            schedule: Schedule::over(1.0, 1.0),
            adjustable: false,
            indicators: Vec::new(),
            speed: None,
            workload: None,
            progress: None,
        };
        place.write(Box::into_raw(Box::new(Handle::new(settings))));
        Ok(())
    })
}

fn preset_of(preset: c_int) -> Outcome<usize> {
    let known = usize::try_from(preset).ok();
    known
        .filter(|&place| place < Goal::PRESETS.len())
        .ok_or_else(|| {
            Failure::argument(format!(
                "preset is {preset}; allowed: PILOT_QUICK, PILOT_NORMAL or PILOT_STRICT"
            ))
        })
}

/// `pilot_set_published`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pilot_set_published(session: *mut Handle, preset: c_int) -> c_int {
    let set = |state: &mut State| {
        let Published {
            goal,
            short_round_s,
            ..
        } = Goal::PUBLISHED[preset_of(preset)?];
        schedule(state, |schedule| {
            schedule.short_round_s = short_round_s;
            schedule.longest_round_s = schedule.longest_round_s.max(short_round_s);
        })?;
        state.settings.goal = goal;
        Ok(())
    };
    // SAFETY: the header asks for a session.
    unsafe { with(session, set) }
}

/// `pilot_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pilot_free(session: *mut Handle) -> c_int {
    if session.is_null() {
        return 0;
    }
    guard(|| {
        // SAFETY: the header asks for a session that is not freed.
        let handle = unsafe { pointers::shared("session", session) }?;
        drop(handle.idle()?);
        // SAFETY: it is from `pilot_create`, and nobody else uses it while it is freed.
        drop(unsafe { Box::from_raw(session) });
        Ok(())
    })
}

/// Changes the goal, if it is one then.
fn goal(state: &mut State, change: impl FnOnce(&mut Goal)) -> Outcome<()> {
    let mut goal = state.settings.goal;
    change(&mut goal);
    goal.check()?;
    state.settings.goal = goal;
    Ok(())
}

/// Changes the schedule of work amounts, if it is one then.
fn schedule(state: &mut State, change: impl FnOnce(&mut Schedule)) -> Outcome<()> {
    let mut schedule = state.settings.schedule;
    change(&mut schedule);
    schedule.check()?;
    state.settings.schedule = schedule;
    Ok(())
}

/// `pilot_set_interval_width`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pilot_set_interval_width(session: *mut Handle, width: f64) -> c_int {
    // SAFETY: the header asks for a session.
    unsafe {
        with(session, |state| {
            goal(state, |goal| goal.interval_width = width)
        })
    }
}

/// `pilot_set_confidence`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pilot_set_confidence(session: *mut Handle, confidence: f64) -> c_int {
    // SAFETY: the header asks for a session.
    unsafe {
        with(session, |state| {
            goal(state, |goal| goal.confidence = confidence)
        })
    }
}

/// `pilot_set_readings_min`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pilot_set_readings_min(session: *mut Handle, readings: usize) -> c_int {
    // SAFETY: the header asks for a session.
    unsafe {
        with(session, |state| {
            goal(state, |goal| goal.readings_min = readings)
        })
    }
}

/// `pilot_set_rounds`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pilot_set_rounds(
    session: *mut Handle,
    least: usize,
    most: usize,
) -> c_int {
    let set = |state: &mut State| {
        if most < least {
            return Err(Failure::argument(format!(
                "rounds are at least {least} and at most {most}; allowed: least <= most"
            )));
        }
        goal(state, |goal| goal.rounds_min = least)?;
        state.settings.limits.rounds_max = most;
        Ok(())
    };
    // SAFETY: the header asks for a session.
    unsafe { with(session, set) }
}

/// `pilot_set_session_limit`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pilot_set_session_limit(session: *mut Handle, seconds: f64) -> c_int {
    let set = |state: &mut State| {
        if !(seconds > 0.0 && seconds.is_finite()) {
            return Err(Failure::argument(format!(
                "session limit is {seconds} s; allowed: seconds, above 0"
            )));
        }
        state.settings.limits.session_s = seconds;
        Ok(())
    };
    // SAFETY: the header asks for a session.
    unsafe { with(session, set) }
}

/// `pilot_set_work_amount`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pilot_set_work_amount(
    session: *mut Handle,
    least: f64,
    most: f64,
    whole: c_int,
) -> c_int {
    let set = |state: &mut State| {
        schedule(state, |schedule| {
            (schedule.low, schedule.high, schedule.whole) = (least, most, whole != 0);
        })?;
        state.settings.adjustable = true;
        Ok(())
    };
    // SAFETY: the header asks for a session.
    unsafe { with(session, set) }
}

/// `pilot_set_short_round`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pilot_set_short_round(session: *mut Handle, seconds: f64) -> c_int {
    let set = |state: &mut State| schedule(state, |schedule| schedule.short_round_s = seconds);
    // SAFETY: the header asks for a session.
    unsafe { with(session, set) }
}

/// `pilot_set_longest_round`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pilot_set_longest_round(session: *mut Handle, seconds: f64) -> c_int {
    let set = |state: &mut State| schedule(state, |schedule| schedule.longest_round_s = seconds);
    // SAFETY: the header asks for a session.
    unsafe { with(session, set) }
}

/// `pilot_set_first_result`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pilot_set_first_result(session: *mut Handle, seconds: f64) -> c_int {
    let set = |state: &mut State| schedule(state, |schedule| schedule.first_result_s = seconds);
    // SAFETY: the header asks for a session.
    unsafe { with(session, set) }
}

/// `pilot_add_indicator`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pilot_add_indicator(
    session: *mut Handle,
    name: *const c_char,
    kind: c_int,
    must_reach: c_int,
    index: *mut usize,
) -> c_int {
    let add = |state: &mut State| {
        // SAFETY: the header asks for a C string.
        let name = unsafe { pointers::text("name", name, NAME_BYTES_MAX) }?;
        let kind = kind_of(kind)?;
        let place = match index.is_null() {
            true => None,
            // SAFETY: the header asks for room for a number.
            false => Some(unsafe { Place::new("index", index) }?),
        };
        let known = &mut state.settings.indicators;
        if known.iter().any(|other| other.name == name) {
            return Err(Failure::argument(format!(
                "indicator {name:?} already exists; give it another name"
            )));
        }
        if known.len() == INDICATORS_MAX {
            return Err(Failure::argument(format!(
                "indicator {name:?} is one too many; allowed: {INDICATORS_MAX}"
            )));
        }
        known.push(Wanted {
            name: name.to_owned(),
            kind,
            must_reach: must_reach != 0,
            own: None,
        });
        if let Some(place) = place {
            place.write(known.len() - 1);
        }
        // Earlier results are of fewer indicators; their indexes stay right.
        Ok(())
    };
    // SAFETY: the header asks for a session.
    unsafe { with(session, add) }
}

/// A goal that can be reached, on the session's figures.
fn own(state: &State, width: f64, confidence: f64, readings_min: usize) -> Outcome<Own> {
    let own = Own {
        interval_width: width,
        confidence,
        readings_min,
    };
    own.over(state.settings.goal).check()?;
    Ok(own)
}

/// `pilot_set_goal`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pilot_set_goal(
    session: *mut Handle,
    indicator: usize,
    width: f64,
    confidence: f64,
    readings_min: usize,
) -> c_int {
    let set = |state: &mut State| {
        let own = own(state, width, confidence, readings_min)?;
        let count = state.settings.indicators.len();
        let Some(wanted) = state.settings.indicators.get_mut(indicator) else {
            return Err(Failure::argument(format!(
                "indicator is {indicator}; allowed: an index below {count}, as pilot_add_indicator gave it"
            )));
        };
        (wanted.must_reach, wanted.own) = (true, Some(own));
        Ok(())
    };
    // SAFETY: the header asks for a session.
    unsafe { with(session, set) }
}

/// `pilot_set_speed_goal`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pilot_set_speed_goal(
    session: *mut Handle,
    width: f64,
    confidence: f64,
) -> c_int {
    let set = |state: &mut State| {
        let rounds_min = state.settings.goal.readings_min;
        state.settings.speed = Some(own(state, width, confidence, rounds_min)?);
        Ok(())
    };
    // SAFETY: the header asks for a session.
    unsafe { with(session, set) }
}

fn kind_of(kind: c_int) -> Outcome<Kind> {
    match kind {
        0 => Ok(Kind::Ordinary),
        1 => Ok(Kind::Ratio),
        2 => Ok(Kind::Binary),
        other => Err(Failure::argument(format!(
            "kind is {other}; allowed: PILOT_ORDINARY, PILOT_RATIO or PILOT_BINARY"
        ))),
    }
}

/// `pilot_set_workload`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pilot_set_workload(
    session: *mut Handle,
    workload: Option<Workload>,
    user: *mut c_void,
) -> c_int {
    let set = |state: &mut State| {
        let Some(workload) = workload else {
            return Err(Failure::argument("workload is NULL; allowed: a function"));
        };
        state.settings.workload = Some((workload, user));
        Ok(())
    };
    // SAFETY: the header asks for a session.
    unsafe { with(session, set) }
}

/// `pilot_set_progress`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pilot_set_progress(
    session: *mut Handle,
    progress: Option<Progress>,
    user: *mut c_void,
) -> c_int {
    let set = |state: &mut State| {
        state.settings.progress = progress.map(|progress| (progress, user));
        Ok(())
    };
    // SAFETY: the header asks for a session.
    unsafe { with(session, set) }
}
