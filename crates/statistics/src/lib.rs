//! Pilot's mathematics: from readings to numbers that can be defended.
//!
//! Pure: no I/O, no clock; whatever is random takes its seed as an argument. In the order of an analysis:
//!
//! | module | what it answers |
//! |---|---|
//! | `change_points` | where does the level of a series change? |
//! | `tail` | what remains of a warm-up that fades slowly? |
//! | `autocorrelation` | how much does one reading tell about the next? |
//! | `subsession` | the published rule: merge readings until they are uncorrelated |
//! | `mean_interval` | the interval of a correlated series' mean |
//! | `analysis` | all of it: stable phase, mean, interval, what was removed and why |
//! | `intervals` | means, ratios, proportions, percentiles of independent samples |
//! | `welch` | do two means differ, and how many samples would tell? |
//! | `sequential` | the same, asked again after every reading |
//! | `paired` | the same, asked again after every pair of runs |
//! | `variation` | how much do repeated runs scatter? |

pub mod analysis;
pub mod autocorrelation;
pub mod autoregression;
pub mod change_points;
pub mod distributions;
pub mod edm;
pub mod error;
pub mod intervals;
pub mod mean_interval;
pub mod moments;
pub mod paired;
pub mod sequential;
mod special;
pub mod stable_phase;
pub mod subsession;
pub mod tail;
pub mod variation;
pub mod welch;
pub mod work_per_second;

pub use error::{Error, Result};
