//! `ascar._core`: the Rust half of the Python package. Conversions only.

mod analysis;
mod change_points;
mod comparing;
mod convert;
mod credentials;
mod distributions;
mod endpoint;
mod expressions;
mod forest;
mod guard;
mod intervals;
mod numerics;
mod pilot;
mod rule_sets;
mod simulation;
mod stream;
mod variation;
mod work_per_second;

use pyo3::prelude::*;

/// The Rust half of the Python package.
#[pymodule]
mod _core {
    use super::*;

    #[pymodule_export]
    use super::analysis::{
        Analysis, analyze, autocorrelation, effective_sample_size, subsession_size,
    };
    #[pymodule_export]
    use super::change_points::{ChangePointDetector, change_points, edm_change_points};
    #[pymodule_export]
    use super::comparing::{
        SequentialComparison, Welch, pairs_half_width, sequential_compare,
        sequential_first_decision, sequential_mean, sequential_pairs, welch, welch_sample_size,
        welch_samples,
    };
    #[pymodule_export]
    use super::credentials::sign_in;
    #[pymodule_export]
    use super::distributions::{
        beta_quantile, chi_squared_above, chi_squared_quantile_above, f_above, mills_ratio,
        noncentral_t_below, normal_below, normal_below_log, normal_quantile, student_t_quantile,
    };
    #[pymodule_export]
    use super::endpoint::RuleEndpoint;
    #[pymodule_export]
    use super::expressions::{Expression, expression_literal};
    #[pymodule_export]
    use super::forest::Forest;
    #[pymodule_export]
    use super::guard::Guard;
    #[pymodule_export]
    use super::intervals::{
        harmonic_mean_interval, mean_interval, percentile_interval, proportion_interval,
    };
    #[pymodule_export]
    use super::numerics::{
        cholesky_factor, cholesky_solve, cholesky_solve_and_invert, cholesky_solve_transposed,
        minimize_bounded,
    };
    #[pymodule_export]
    use super::pilot::{
        PilotSession, Speed, WorkAmounts, pilot_analyze, pilot_look_is_due, pilot_presets,
        pilot_published, speed_of,
    };
    #[pymodule_export]
    use super::rule_sets::{read_rule_set, write_rule_set};
    #[pymodule_export]
    use super::simulation::{Simulation, check_scenario, describe_scenario};
    #[pymodule_export]
    use super::stream::{Stream, StreamRequest, StreamState};
    #[pymodule_export]
    use super::variation::{
        distribution_range, kolmogorov_smirnov, pearson, relative_range,
        relative_standard_deviation, throughput_windows,
    };

    #[pymodule_export]
    use super::work_per_second::{WorkPerSecond, work_per_second};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("KEPT_S_MAX", ascar_plane::KEPT_S_MAX)?;
        module.add("TRIAL_S_MAX", ascar_plane::TRIAL_S_MAX)?;
        module.add("EXPRESSION_DEPTH_MAX", ascar_expression::DEPTH_MAX)?;
        module.add("EXPRESSION_LENGTH_MAX", ascar_expression::LENGTH_MAX)?;
        module.add("EXPRESSION_RESERVED", ascar_expression::RESERVED)
    }
}
