//! What a stream shows: window, pace, indicators, the use of its rules.

use std::ffi::{c_char, c_int};
use std::sync::Arc;

use ascar_congestion::{Deployment, Stream};

use crate::pointers::{Place, Room};
use crate::status::{Failure, Kind, Outcome};
use crate::stream::{StreamHandle, with_stream};

/// `ascar_stream_state_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CStreamState {
    pub window: f64,
    pub pace_us: u32,
    pub requests_in_flight: u32,
    pub bytes_in_flight: u64,
    pub replies: u64,
    pub timeouts: u64,
    pub rules: u32,
    pub ack_ewma_us: u32,
    pub send_ewma_us: u32,
    pub slow_ack_ewma_us: u32,
    pub timeouts_per_1000: u32,
    pub writes_per_1000: u32,
    pub sequential_per_1000: u32,
    pub request_kib: u32,
    pub pt_ratio: f64,
}

impl From<&Stream> for CStreamState {
    fn from(stream: &Stream) -> Self {
        let (in_flight, signals) = (stream.in_flight(), stream.signals());
        let rules = stream.deployment().map(|it| it.rules.rules().len());
        Self {
            window: f64::from(stream.window().requests_x100) / 100.0,
            pace_us: stream.gap_us(),
            requests_in_flight: in_flight.requests,
            bytes_in_flight: in_flight.bytes,
            replies: stream.replies(),
            timeouts: stream.timeouts(),
            rules: rules.unwrap_or(0) as u32,
            ack_ewma_us: signals.ack_us,
            send_ewma_us: signals.send_us,
            slow_ack_ewma_us: signals.slow_ack_us,
            timeouts_per_1000: signals.timeouts_per_1000,
            writes_per_1000: signals.writes_per_1000,
            sequential_per_1000: signals.sequential_per_1000,
            request_kib: signals.request_kib,
            pt_ratio: f64::from(signals.ratio100) / 100.0,
        }
    }
}

/// `ascar_stream_state`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ascar_stream_state(
    stream: *mut StreamHandle,
    state: *mut CStreamState,
) -> c_int {
    let read = |stream: &mut Stream| {
        // SAFETY: the header asks for room for the structure.
        let place = unsafe { Place::new("state", state) }?;
        place.write(CStreamState::from(&*stream));
        Ok(())
    };
    // SAFETY: the header asks for a stream.
    unsafe { with_stream(stream, read) }
}

fn deployment(stream: &Stream) -> Outcome<&Arc<Deployment>> {
    stream.deployment().ok_or_else(|| {
        Failure::new(
            Kind::State,
            "no rules are in force; call ascar_stream_set_rules first",
        )
    })
}

/// `ascar_stream_rule_uses`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ascar_stream_rule_uses(
    stream: *mut StreamHandle,
    uses: *mut u64,
    capacity: usize,
    found: *mut usize,
) -> c_int {
    let read = |stream: &mut Stream| {
        // SAFETY: the header asks for room for so many counts, and for a number.
        let room = unsafe { Room::new("uses", uses, capacity, found) }?;
        let observed = deployment(stream)?.usage.observed();
        let uses: Vec<u64> = observed.iter().map(|rule| rule.used_times).collect();
        room.write(&uses);
        Ok(())
    };
    // SAFETY: the header asks for a stream.
    unsafe { with_stream(stream, read) }
}

/// `ascar_stream_rules`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ascar_stream_rules(
    stream: *mut StreamHandle,
    text: *mut c_char,
    capacity: usize,
    found: *mut usize,
) -> c_int {
    let read = |stream: &mut Stream| {
        // SAFETY: the header asks for room for so many bytes, and for a number.
        let room = unsafe { Room::new("text", text, capacity, found) }?;
        let written = deployment(stream)?.observed_rules().to_text();
        let mut bytes: Vec<c_char> = written.bytes().map(|byte| byte as c_char).collect();
        bytes.push(0);
        let needed = bytes.len();
        if let Some(end) = capacity.checked_sub(1).filter(|end| *end < needed) {
            bytes[end] = 0;
        }
        room.write(&bytes);
        Ok(())
    };
    // SAFETY: the header asks for a stream.
    unsafe { with_stream(stream, read) }
}
