//! A round under way: what the workload says it has read.

use std::ffi::c_int;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ascar_pilot::indicator::Indicator;
use ascar_pilot::round::Round;
use ascar_pilot::units::Units;

use crate::pointers::{self, COUNT_MAX, Place};
use crate::status::{Failure, Kind, Outcome, guard};

/// What `pilot_round_t` is; several threads of a workload may use it at once.
#[derive(Debug)]
pub struct RoundHandle {
    indicators: Vec<Indicator>,
    left_s: f64,
    told: Mutex<Told>,
}

/// What the workload has said.
#[derive(Debug, Default)]
struct Told {
    readings: Vec<Option<f64>>,
    unit_readings: Vec<Vec<f64>>,
    units: Vec<Units>,
    seconds: Option<f64>,
    /// The first call that failed: a reading that is missing must not go unnoticed.
    fault: Option<Failure>,
}

impl RoundHandle {
    /// A round of these indicators, with so many seconds left to the session.
    pub fn new(indicators: &[Indicator], left_s: f64) -> Self {
        Self {
            indicators: indicators.to_vec(),
            left_s,
            told: Mutex::new(Told {
                readings: vec![None; indicators.len()],
                unit_readings: vec![Vec::new(); indicators.len()],
                units: vec![Units::default(); indicators.len()],
                ..Told::default()
            }),
        }
    }

    /// The round as it was, of this work and, if the workload did not say, duration.
    pub fn done(self, work_amount: Option<f64>, seconds: f64) -> Outcome<Round> {
        let told = self
            .told
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        match told.fault {
            Some(fault) => Err(fault),
            None => Ok(Round {
                seconds: told.seconds.unwrap_or(seconds),
                work_amount,
                readings: told.readings,
                unit_readings: told.unit_readings,
                units: told.units,
            }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn indicator(&self, index: usize) -> Outcome<&Indicator> {
        self.indicators.get(index).ok_or_else(|| {
            let count = self.indicators.len();
            Failure::argument(format!(
                "indicator is {index}; allowed: an index below {count}, as pilot_add_indicator gave it"
            ))
        })
    }
}

/// Does something with a round, and keeps in mind that it failed.
///
/// # Safety
///
/// A pointer that is not NULL is to the round that the workload was given.
unsafe fn with(round: *mut RoundHandle, act: impl FnOnce(&RoundHandle) -> Outcome<()>) -> c_int {
    guard(|| {
        // SAFETY: as promised; rounds are only ever shared.
        let round = unsafe { pointers::shared("round", round) }?;
        act(round).inspect_err(|failure| {
            round.lock().fault.get_or_insert_with(|| failure.clone());
        })
    })
}

/// `pilot_round_reading`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pilot_round_reading(
    round: *mut RoundHandle,
    indicator: usize,
    value: f64,
) -> c_int {
    let read = |round: &RoundHandle| {
        round.indicator(indicator)?.check(&[value])?;
        round.lock().readings[indicator] = Some(value);
        Ok(())
    };
    // SAFETY: the header asks for the workload's round.
    unsafe { with(round, read) }
}

/// `pilot_round_unit_readings`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pilot_round_unit_readings(
    round: *mut RoundHandle,
    indicator: usize,
    values: *const f64,
    count: usize,
) -> c_int {
    let read = |round: &RoundHandle| {
        // SAFETY: the header asks for `count` numbers.
        let values = unsafe { pointers::readings("values", values, count) }?;
        round.indicator(indicator)?.check(values)?;
        let mut told = round.lock();
        let known = &mut told.unit_readings[indicator];
        if known.len() + values.len() > COUNT_MAX {
            return Err(Failure::argument(format!(
                "unit readings of a round are more than {COUNT_MAX}; allowed: so many"
            )));
        }
        known.try_reserve(values.len()).map_err(|_| {
            let total = known.len() + values.len();
            Failure::new(Kind::Memory, format!("no memory for {total} unit readings"))
        })?;
        known.extend_from_slice(values);
        Ok(())
    };
    // SAFETY: the header asks for the workload's round.
    unsafe { with(round, read) }
}

/// `pilot_round_units`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pilot_round_units(
    round: *mut RoundHandle,
    indicator: usize,
    kinds: *const u32,
    work: *const f64,
    count: usize,
) -> c_int {
    let tell = |round: &RoundHandle| {
        round.indicator(indicator)?;
        // SAFETY: the header asks for `count` numbers in each that is not NULL.
        let (kinds, work) = unsafe {
            (
                pointers::numbers_or_none("kinds", kinds, count)?,
                pointers::numbers_or_none("work", work, count)?,
            )
        };
        let mut told = round.lock();
        let known = &mut told.units[indicator];
        let total = known.kinds.len().max(known.work.len()) + count;
        if total > COUNT_MAX {
            return Err(Failure::argument(format!(
                "units of a round are more than {COUNT_MAX}; allowed: so many"
            )));
        }
        if known.kinds.try_reserve(kinds.len()).is_err()
            || known.work.try_reserve(work.len()).is_err()
        {
            return Err(Failure::new(
                Kind::Memory,
                format!("no memory for {total} units"),
            ));
        }
        known.kinds.extend_from_slice(kinds);
        known.work.extend_from_slice(work);
        Ok(())
    };
    // SAFETY: the header asks for the workload's round.
    unsafe { with(round, tell) }
}

/// `pilot_round_seconds`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pilot_round_seconds(round: *mut RoundHandle, seconds: f64) -> c_int {
    let set = |round: &RoundHandle| {
        if !(seconds > 0.0 && seconds <= 1e100) {
            return Err(Failure::argument(format!(
                "seconds are {seconds}; allowed: a duration above 0"
            )));
        }
        round.lock().seconds = Some(seconds);
        Ok(())
    };
    // SAFETY: the header asks for the workload's round.
    unsafe { with(round, set) }
}

/// `pilot_round_seconds_left`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pilot_round_seconds_left(
    round: *mut RoundHandle,
    seconds: *mut f64,
) -> c_int {
    let tell = |round: &RoundHandle| {
        // SAFETY: the header asks for room for a number.
        unsafe { Place::new("seconds", seconds) }?.write(round.left_s);
        Ok(())
    };
    // SAFETY: the header asks for the workload's round.
    unsafe { with(round, tell) }
}
