//! What functions return, the message of the last error, and the wall that no panic passes.

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Everything went well.
pub const OK: c_int = 0;

/// Kinds of errors, numbered as in the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An argument cannot be used.
    Argument = 1,
    /// The session is running.
    Busy = 2,
    /// Not yet, or not in this session.
    State = 3,
    /// The workload failed.
    Workload = 4,
    /// There is not enough memory.
    Memory = 5,
    /// A defect of the library.
    Internal = 6,
}

/// Why a function could not do what it was asked to.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Its kind.
    pub kind: Kind,
    /// One line: what was wrong, and what is allowed.
    pub message: String,
}

/// A result behind the wall.
pub type Outcome<T> = Result<T, Failure>;

impl Failure {
    /// A failure of a kind.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }

    /// An argument that cannot be used.
    pub fn argument(message: impl Into<String>) -> Self {
        Self::new(Kind::Argument, message)
    }
}

impl From<ascar_statistics::Error> for Failure {
    fn from(error: ascar_statistics::Error) -> Self {
        Self::argument(error.to_string())
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::new(CString::default());
}

/// Carries out a function's body; whatever happens in it becomes a status.
#[inline]
pub fn guard(act: impl FnOnce() -> Outcome<()>) -> c_int {
    match catch_unwind(AssertUnwindSafe(act)) {
        Ok(Ok(())) => OK,
        Ok(Err(failure)) => {
            remember(&failure.message);
            failure.kind as c_int
        }
        Err(payload) => {
            remember(&format!("internal error: {}", told(&*payload)));
            Kind::Internal as c_int
        }
    }
}

fn told(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("unknown")
}

#[cold]
fn remember(message: &str) {
    let text = CString::new(message.replace('\0', "?")).unwrap_or_default();
    // A thread that is ending has no place for it any more.
    let _ = LAST.try_with(|last| *last.borrow_mut() = text);
}

/// `pilot_last_error` of the header.
#[unsafe(no_mangle)]
pub extern "C" fn pilot_last_error() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr())
        .unwrap_or(c"".as_ptr())
}

/// `pilot_version` of the header.
#[unsafe(no_mangle)]
pub extern "C" fn pilot_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// `ascar_last_error` of `congestion.h`: the same message.
#[unsafe(no_mangle)]
pub extern "C" fn ascar_last_error() -> *const c_char {
    pilot_last_error()
}

/// `ascar_version` of `congestion.h`: there is one version.
#[unsafe(no_mangle)]
pub extern "C" fn ascar_version() -> *const c_char {
    pilot_version()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    fn last() -> String {
        // SAFETY: the pointer is to a C string of this thread.
        unsafe { CStr::from_ptr(pilot_last_error()) }
            .to_string_lossy()
            .into_owned()
    }

    #[test]
    fn a_panic_stops_at_the_wall_and_is_told_in_its_thread_alone() {
        assert_eq!(last(), "");
        assert_eq!(
            guard(|| panic!("nothing at {}", 7)),
            Kind::Internal as c_int
        );
        assert_eq!(last(), "internal error: nothing at 7");
        assert_eq!(std::thread::spawn(last).join().unwrap(), "");
        assert_eq!(guard(|| Ok(())), OK);
        assert_eq!(last(), "internal error: nothing at 7");
        assert_eq!(
            guard(|| Err(Failure::argument("x is \0; allowed: y"))),
            Kind::Argument as c_int
        );
        assert_eq!(last(), "x is ?; allowed: y");
    }
}
