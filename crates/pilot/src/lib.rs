//! A Pilot session: rounds until every performance indicator is known well enough (ASCAR thesis, section 4.2).
//!
//! Pure: no I/O, no clock; rounds and elapsed time are arguments. The Python package `ascar.pilot` and the C library are
//! callers of it.
//!
//! | module | what it answers |
//! |---|---|
//! | `goal` | how well is a number to be known? |
//! | `indicator` | what is measured, and how is it averaged? |
//! | `round` | what did one round do? |
//! | `units` | what do work units that differ say together? |
//! | `work_amounts` | how much work does the next round do? |
//! | `measurement` | a mean with what is known about it |
//! | `stopping` | is an interval that was looked at again and again wide enough? |
//! | `findings` | what do the rounds say about one indicator? |
//! | `speed` | and about the speed? |
//! | `outlook` | how long will it still take? |
//! | `session` | all of it: the next round, and when to end |

pub mod findings;
pub mod goal;
pub mod indicator;
pub mod measurement;
pub mod outlook;
pub mod round;
pub mod session;
pub mod speed;
pub mod stopping;
pub mod units;
pub mod work_amounts;

pub use ascar_statistics::{Error, Result};
