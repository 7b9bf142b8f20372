//! What controls a stream: a fixed window and pace, rules, a published controller.

use std::ffi::{c_char, c_int};

use ascar_congestion::{Fault, Following, RivalSettings, RuleSet, Stream, hundredths};

use crate::pointers;
use crate::status::{Failure, guard};
use crate::stream::{StreamHandle, with_stream};

/// As the reader of rules has it; longer texts are told apart before they are looked at.
const RULES_BYTES_MAX: usize = 256 * 1024;
const NAME_BYTES_MAX: usize = 255;

/// `ascar_rule_options_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CRuleOptions {
    pub window: f64,
    pub extended: c_int,
    pub seed: u64,
}

/// `ascar_rival_settings_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CRivalSettings {
    pub latency_us_max: u32,
    pub aimd_decrease: f64,
    pub cubic_decrease: f64,
    pub cubic_growth: f64,
    pub vegas_alpha: f64,
    pub vegas_beta: f64,
    pub copa_delta: f64,
    pub gradient2_queue: f64,
    pub gradient2_smoothing: f64,
    pub bbr_window_gain: f64,
    pub bbr_probe_gain: f64,
}

impl From<&CRivalSettings> for RivalSettings {
    fn from(told: &CRivalSettings) -> Self {
        Self {
            latency_us_max: told.latency_us_max,
            aimd_decrease: told.aimd_decrease,
            cubic_decrease: told.cubic_decrease,
            cubic_growth: told.cubic_growth,
            vegas_alpha: told.vegas_alpha,
            vegas_beta: told.vegas_beta,
            copa_delta: told.copa_delta,
            gradient2_queue: told.gradient2_queue,
            gradient2_smoothing: told.gradient2_smoothing,
            bbr_window_gain: told.bbr_window_gain,
            bbr_probe_gain: told.bbr_probe_gain,
        }
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Self::argument(fault.to_string())
    }
}

/// `ascar_stream_set_fixed`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ascar_stream_set_fixed(
    stream: *mut StreamHandle,
    window: f64,
    pace_us: u32,
) -> c_int {
    let set = |state: &mut Stream| Ok(state.fix(hundredths(window)?, pace_us)?);
    // SAFETY: the header asks for a stream.
    unsafe { with_stream(stream, set) }
}

/// `ascar_stream_set_rules`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ascar_stream_set_rules(
    stream: *mut StreamHandle,
    rules: *const c_char,
    options: *const CRuleOptions,
) -> c_int {
    guard(|| {
        // SAFETY: the header asks for a stream, and for a C string.
        let (handle, text) = unsafe {
            (
                pointers::shared("stream", stream)?,
                pointers::text("rules", rules, RULES_BYTES_MAX)?,
            )
        };
        let mut following = Following::default();
        if !options.is_null() {
            // SAFETY: not NULL; the header asks for a structure.
            let told = unsafe { pointers::shared("options", options) }?;
            following = Following {
                window_x100: match told.window {
                    0.0 => None,
                    window => Some(hundredths(window)?),
                },
                extended: told.extended != 0,
                seed: told.seed,
            };
        }
        // Many rules take a while to check: requests of other threads do not wait for that.
        let rules =
            RuleSet::parse(text).map_err(|fault| Failure::argument(format!("rules: {fault}")))?;
        Ok(handle.lock().follow(rules, &following)?)
    })
}

/// `ascar_stream_set_rival`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ascar_stream_set_rival(
    stream: *mut StreamHandle,
    name: *const c_char,
    seed: u64,
    settings: *const CRivalSettings,
) -> c_int {
    let set = |state: &mut Stream| {
        // SAFETY: the header asks for a C string.
        let name = unsafe { pointers::text("name", name, NAME_BYTES_MAX) }?;
        let settings = match settings.is_null() {
            true => RivalSettings::default(),
            // SAFETY: not NULL; the header asks for a structure.
            false => unsafe { pointers::shared("settings", settings) }?.into(),
        };
        Ok(state.rival(name, seed, &settings)?)
    };
    // SAFETY: the header asks for a stream.
    unsafe { with_stream(stream, set) }
}
