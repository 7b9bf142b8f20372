//! The congestion window in fixed point, requests times 100, and how often it may change (Li, 3.1.4).

use crate::fault::{Fault, Result};
use crate::rule::Action;

/// One request at least, whatever the rules say: else a stream would never hear of its server again.
pub const WINDOW_X100_MIN: u32 = 100;

/// 256 requests at most, as in the original.
pub const WINDOW_X100_MAX: u32 = 25_600;

/// Lustre's max_rpcs_in_flight when nobody sets it.
pub const WINDOW_X100_DEFAULT: u32 = 800;

/// `m * window + b` in hundredths, rounded towards zero, within the bounds.
#[must_use]
#[inline]
pub fn stepped(window_x100: u32, action: &Action) -> u32 {
    let window = i64::from(window_x100);
    let scaled = if action.m100 < 0 {
        window
    } else {
        window * i64::from(action.m100) / 100
    };
    let bounds = (i64::from(WINDOW_X100_MIN), i64::from(WINDOW_X100_MAX));
    (scaled + i64::from(action.b100)).clamp(bounds.0, bounds.1) as u32
}

/// A window of 1 to 256 requests in hundredths, rounded; refuses what is none.
pub fn hundredths(window: f64) -> Result<u32> {
    let least = f64::from(WINDOW_X100_MIN) / 100.0;
    let most = f64::from(WINDOW_X100_MAX) / 100.0;
    if !(least..=most).contains(&window) {
        return Err(Fault::setting("window", window, "1 to 256 requests"));
    }
    Ok((window * 100.0).round() as u32)
}
