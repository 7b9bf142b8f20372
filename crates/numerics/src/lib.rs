//! What a Gaussian process is fitted with.
//!
//! Pure: no I/O, no clock, nothing random.
//!
//! | module | what it has |
//! |---|---|
//! | `cholesky` | the factor of a covariance; solutions, determinant and inverse by it |
//! | `bounded` | the minimum of a smooth function within bounds (L-BFGS-B) |
//! | `line_search` | the step along one of its directions |

pub mod bounded;
pub mod cholesky;
mod line_search;
