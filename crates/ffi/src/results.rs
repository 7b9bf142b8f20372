//! What the last run of a session came to.

use std::ffi::c_int;

use ascar_pilot::findings::Finding;

use crate::handle::{Handle, Ran, with};
use crate::pointers::{Place, Room};
use crate::status::{Failure, Kind, Outcome};
use crate::values::{CDone, CFinding, CMeasurement, CSpeed, CSummary};

fn finding(ran: &Ran, indicator: usize) -> Outcome<&Finding> {
    let findings = ran.session.findings();
    findings.get(indicator).ok_or_else(|| {
        let count = findings.len();
        Failure::argument(format!(
            "indicator is {indicator}; allowed: an index below {count}, the indicators of the last run"
        ))
    })
}

/// `pilot_summary`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pilot_summary(session: *mut Handle, summary: *mut CSummary) -> c_int {
    // SAFETY: the header asks for a session and for room for a summary.
    unsafe {
        with(session, |state| {
            let place = Place::new("summary", summary)?;
            place.write(state.ran()?.summary);
            Ok(())
        })
    }
}

/// `pilot_finding`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pilot_finding(
    session: *mut Handle,
    indicator: usize,
    found: *mut CFinding,
) -> c_int {
    // SAFETY: the header asks for a session and for room for a finding.
    unsafe {
        with(session, |state| {
            let place = Place::new("finding", found)?;
            let ran = state.ran()?;
            let plan = ran.session.plan();
            let goal = plan.indicators.get(indicator).and_then(|one| one.goal);
            let confidence = goal.unwrap_or(plan.goal).confidence;
            place.write(CFinding::of(finding(ran, indicator)?, confidence));
            Ok(())
        })
    }
}

/// `pilot_finding_change_points`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pilot_finding_change_points(
    session: *mut Handle,
    indicator: usize,
    points: *mut usize,
    capacity: usize,
    found: *mut usize,
) -> c_int {
    // SAFETY: the header asks for a session and for that room.
    unsafe {
        with(session, |state| {
            let room = Room::new("points", points, capacity, found)?;
            let measurement = finding(state.ran()?, indicator)?.measurement.as_ref();
            room.write(measurement.map_or(&[], |known| &known.change_points));
            Ok(())
        })
    }
}

/// `pilot_finding_kind`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pilot_finding_kind(
    session: *mut Handle,
    indicator: usize,
    kind: u32,
    share: *mut f64,
    measurement: *mut CMeasurement,
) -> c_int {
    // SAFETY: the header asks for a session and for that room.
    unsafe {
        with(session, |state| {
            let share = Place::new("share", share)?;
            let place = Place::new("measurement", measurement)?;
            let kinds = &finding(state.ran()?, indicator)?.kinds;
            let known = kinds.iter().find(|one| one.kind == kind);
            let Some((known, found)) = known.and_then(|one| Some((one, one.measurement.as_ref()?)))
            else {
                return Err(Failure::argument(format!(
                    "kind is {kind}; allowed: one of which pilot_round_units told stable units"
                )));
            };
            share.write(known.share);
            place.write(found.into());
            Ok(())
        })
    }
}

/// `pilot_speed`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pilot_speed(session: *mut Handle, speed: *mut CSpeed) -> c_int {
    // SAFETY: the header asks for a session and for room for a speed.
    unsafe {
        with(session, |state| {
            let place = Place::new("speed", speed)?;
            let session = &state.ran()?.session;
            if session.plan().work.is_none() {
                return Err(Failure::new(
                    Kind::State,
                    "the session's work cannot be adjusted; call pilot_set_work_amount before it runs",
                ));
            }
            place.write(CSpeed::of(session.speed(), session.speed_goal().confidence));
            Ok(())
        })
    }
}

/// `pilot_done`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pilot_done(session: *mut Handle, round: usize, done: *mut CDone) -> c_int {
    // SAFETY: the header asks for a session and for room for a round.
    unsafe {
        with(session, |state| {
            let place = Place::new("done", done)?;
            let rounds = state.ran()?.session.rounds();
            let Some(known) = rounds.get(round) else {
                let count = rounds.len();
                return Err(Failure::argument(format!(
                    "round is {round}; allowed: an index below {count}, the rounds of the last run"
                )));
            };
            place.write(CDone {
                work_amount: known.work_amount.unwrap_or(0.0),
                seconds: known.seconds,
                used: c_int::from(known.used),
            });
            Ok(())
        })
    }
}
