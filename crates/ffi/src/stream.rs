//! A stream's handle and its requests, as `include/congestion.h` has them.

use std::ffi::c_int;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ascar_congestion::{Admission, Misuse, Sending, Sent, Stream};

use crate::pointers::{self, Place};
use crate::status::{self, Failure, Outcome, guard};

/// What `ascar_stream_ask` says while the window is full.
const AFTER_REPLY: u64 = u64::MAX;
const WRITES: u32 = 1;
const SEQUENTIAL: u32 = 2;

/// What `ascar_stream_t` is.
#[derive(Debug, Default)]
pub struct StreamHandle(Mutex<Stream>);

impl StreamHandle {
    /// The stream. No step of it is left half done where one panics, so a poisoned lock is as good as another.
    pub fn lock(&self) -> MutexGuard<'_, Stream> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `ascar_sending_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CSending {
    pub offset_bytes: u64,
    pub bytes: u32,
    pub file: u32,
    pub writes: c_int,
}

/// `ascar_request_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CRequest {
    pub sent_us: u64,
    /// The address of the handle.
    pub stream: u64,
    pub bytes: u32,
    pub traits: u32,
}

impl CRequest {
    fn new(sent: &Sent, stream: u64) -> Self {
        let traits = [(sent.write, WRITES), (sent.sequential, SEQUENTIAL)];
        Self {
            sent_us: sent.sent_us,
            stream,
            bytes: sent.bytes,
            traits: traits
                .iter()
                .map(|(is_set, bit)| u32::from(*is_set) * bit)
                .sum(),
        }
    }

    /// The request, if it is one of this stream that is not over.
    fn of(&self, stream: u64) -> Outcome<Sent> {
        if self.stream != stream || self.traits > WRITES | SEQUENTIAL {
            let why = match self.stream {
                0 => "the request is over, or never left; end each request once",
                _ => "the request is not this stream's; give what ascar_stream_sent wrote",
            };
            return Err(Failure::new(status::Kind::State, why));
        }
        Ok(Sent {
            sent_us: self.sent_us,
            bytes: self.bytes,
            write: self.traits & WRITES != 0,
            sequential: self.traits & SEQUENTIAL != 0,
        })
    }
}

impl From<Misuse> for Failure {
    fn from(misuse: Misuse) -> Self {
        let kind = match misuse.is_of_order() {
            true => status::Kind::State,
            false => status::Kind::Argument,
        };
        Self::new(kind, misuse.to_string())
    }
}

/// Does something with a stream.
///
/// # Safety
///
/// A pointer that is not NULL is from `ascar_stream_create` and not freed.
#[inline]
pub unsafe fn with_stream(
    stream: *mut StreamHandle,
    act: impl FnOnce(&mut Stream) -> Outcome<()>,
) -> c_int {
    guard(|| {
        // SAFETY: as promised; streams are only ever shared.
        let handle = unsafe { pointers::shared("stream", stream) }?;
        act(&mut handle.lock())
    })
}

/// `ascar_stream_create`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ascar_stream_create(stream: *mut *mut StreamHandle) -> c_int {
    guard(|| {
        // SAFETY: the header asks for room for a pointer.
        let place = unsafe { Place::new("stream", stream) }?;
        place.write(Box::into_raw(Box::default()));
        Ok(())
    })
}

/// `ascar_stream_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ascar_stream_free(stream: *mut StreamHandle) -> c_int {
    if stream.is_null() {
        return status::OK;
    }
    guard(|| {
        // SAFETY: the header asks for a stream that is not freed.
        unsafe { pointers::shared("stream", stream) }?;
        // SAFETY: it is from `ascar_stream_create`, and nobody else uses it while it is freed.
        drop(unsafe { Box::from_raw(stream) });
        Ok(())
    })
}

/// `ascar_stream_ask`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ascar_stream_ask(
    stream: *mut StreamHandle,
    now_us: u64,
    bytes: u32,
    at_us: *mut u64,
) -> c_int {
    let ask = |state: &mut Stream| {
        // SAFETY: the header asks for room for a number.
        let place = unsafe { Place::new("at_us", at_us) }?;
        place.write(match state.ask(now_us, bytes)? {
            Admission::Now => now_us,
            Admission::At(at_us) => at_us,
            Admission::Full => AFTER_REPLY,
        });
        Ok(())
    };
    // SAFETY: the header asks for a stream.
    unsafe { with_stream(stream, ask) }
}

/// `ascar_stream_give_back`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ascar_stream_give_back(stream: *mut StreamHandle) -> c_int {
    let give_back = |state: &mut Stream| {
        state.give_back();
        Ok(())
    };
    // SAFETY: the header asks for a stream.
    unsafe { with_stream(stream, give_back) }
}

/// `ascar_stream_sent`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ascar_stream_sent(
    stream: *mut StreamHandle,
    now_us: u64,
    sending: *const CSending,
    request: *mut CRequest,
) -> c_int {
    let send = |state: &mut Stream| {
        // SAFETY: the header asks for a structure, and for room for another.
        let (sending, place) = unsafe {
            (
                pointers::shared("sending", sending)?,
                Place::new("request", request)?,
            )
        };
        let sent = state.sent(
            now_us,
            &Sending {
                file: sending.file,
                offset_bytes: sending.offset_bytes,
                bytes: sending.bytes,
                write: sending.writes != 0,
            },
        )?;
        place.write(CRequest::new(&sent, stream.addr() as u64));
        Ok(())
    };
    // SAFETY: the header asks for a stream.
    unsafe { with_stream(stream, send) }
}

/// Ends a request.
///
/// # Safety
///
/// As [`with_stream`] asks; a `request` that is not NULL points to a structure that nobody else uses during the call.
#[inline]
unsafe fn end(
    stream: *mut StreamHandle,
    request: *mut CRequest,
    act: impl FnOnce(&mut Stream, &Sent) -> Result<(), Misuse>,
) -> c_int {
    let end = |state: &mut Stream| {
        // SAFETY: as promised; it is copied before anything is written.
        let (place, found) = unsafe {
            (
                Place::new("request", request)?,
                *pointers::shared("request", request)?,
            )
        };
        act(state, &found.of(stream.addr() as u64)?)?;
        place.write(CRequest { stream: 0, ..found });
        Ok(())
    };
    // SAFETY: as promised.
    unsafe { with_stream(stream, end) }
}

/// `ascar_stream_replied`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ascar_stream_replied(
    stream: *mut StreamHandle,
    request: *mut CRequest,
    now_us: u64,
) -> c_int {
    // SAFETY: the header asks for a stream and a request.
    unsafe { end(stream, request, |state, sent| state.replied(sent, now_us)) }
}

/// `ascar_stream_timed_out`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ascar_stream_timed_out(
    stream: *mut StreamHandle,
    request: *mut CRequest,
    now_us: u64,
) -> c_int {
    // SAFETY: the header asks for a stream and a request.
    unsafe { end(stream, request, |state, sent| state.timed_out(sent, now_us)) }
}

/// `ascar_stream_cancelled`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ascar_stream_cancelled(
    stream: *mut StreamHandle,
    request: *mut CRequest,
) -> c_int {
    // SAFETY: the header asks for a stream and a request.
    unsafe { end(stream, request, |state, sent| state.cancelled(sent)) }
}
