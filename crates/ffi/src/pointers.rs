//! From C's pointers to references and back: the only place that follows them.
//!
//! What can be told from a pointer alone is checked: NULL, misaligned, a count that no memory holds. That it points
//! to what the header asks for is the caller's promise, and the safety condition of every function here.

use std::ffi::{CStr, c_char};
use std::slice;

use crate::status::{Failure, Outcome};

/// The most readings that are taken at once; so many squares of the largest allowed number are still finite.
pub const COUNT_MAX: usize = 1_000_000_000;

fn check<T>(name: &str, pointer: *const T) -> Outcome<()> {
    if pointer.is_null() {
        return Err(Failure::argument(format!(
            "{name} is NULL; allowed: a valid pointer"
        )));
    }
    if !pointer.is_aligned() {
        return Err(Failure::argument(format!(
            "{name} is misaligned; allowed: a pointer to its type"
        )));
    }
    Ok(())
}

/// What a pointer points to.
///
/// # Safety
///
/// A pointer that is not NULL points to a `T` that outlives the call and is only shared.
pub unsafe fn shared<'a, T>(name: &str, pointer: *const T) -> Outcome<&'a T> {
    check(name, pointer)?;
    // SAFETY: not NULL and aligned; the rest is the caller's promise.
    Ok(unsafe { &*pointer })
}

/// Numbers that may be left out: none where the pointer is NULL.
///
/// # Safety
///
/// As [`readings`] asks.
pub unsafe fn numbers_or_none<'a, T>(
    name: &str,
    pointer: *const T,
    count: usize,
) -> Outcome<&'a [T]> {
    if pointer.is_null() {
        return Ok(&[]);
    }
    // SAFETY: as promised.
    unsafe { readings(name, pointer, count) }
}

/// Readings.
///
/// # Safety
///
/// A pointer that is not NULL points to `count` numbers that nobody changes during the call.
pub unsafe fn readings<'a, T>(name: &str, pointer: *const T, count: usize) -> Outcome<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    if count > COUNT_MAX {
        return Err(Failure::argument(format!(
            "{name} are {count} numbers; allowed: at most {COUNT_MAX}"
        )));
    }
    check(name, pointer)?;
    // SAFETY: not NULL, aligned, and of a size that memory can have; the rest is the caller's promise.
    Ok(unsafe { slice::from_raw_parts(pointer, count) })
}

/// A C string of 1 to `longest` bytes of UTF-8.
///
/// # Safety
///
/// A pointer that is not NULL points to a C string that nobody changes during the call.
pub unsafe fn text<'a>(name: &str, pointer: *const c_char, longest: usize) -> Outcome<&'a str> {
    check(name, pointer)?;
    // SAFETY: not NULL; the rest is the caller's promise.
    let bytes = unsafe { CStr::from_ptr(pointer) };
    let allowed = format!("1 to {longest} bytes of UTF-8");
    if !(1..=longest).contains(&bytes.count_bytes()) {
        return Err(Failure::argument(format!(
            "{name} has {} bytes; allowed: {allowed}",
            bytes.count_bytes()
        )));
    }
    bytes
        .to_str()
        .map_err(|_| Failure::argument(format!("{name} is not UTF-8; allowed: {allowed}")))
}

/// A place that a result is written to, checked before the work is done.
#[derive(Clone, Copy, Debug)]
pub struct Place<T>(*mut T);

impl<T> Place<T> {
    /// # Safety
    ///
    /// A pointer that is not NULL has room for a `T`, which nobody else uses until the result is written.
    pub unsafe fn new(name: &str, pointer: *mut T) -> Outcome<Self> {
        check(name, pointer)?;
        Ok(Self(pointer))
    }

    /// Writes the result; nothing that was there is dropped.
    pub fn write(self, value: T) {
        // SAFETY: `new`'s caller promised the room.
        unsafe { self.0.write(value) }
    }
}

/// The readings `values`, and the place that what they say is written to.
///
/// # Safety
///
/// As [`readings`] and [`Place::new`] ask.
pub unsafe fn readings_and_place<'a, T>(
    (values, count): (*const f64, usize),
    (name, place): (&str, *mut T),
) -> Outcome<(&'a [f64], Place<T>)> {
    // SAFETY: as promised.
    unsafe { Ok((readings("values", values, count)?, Place::new(name, place)?)) }
}

/// Room for several values, and for how many there are.
#[derive(Clone, Copy, Debug)]
pub struct Room<T> {
    values: *mut T,
    capacity: usize,
    found: Place<usize>,
}

impl<T: Copy> Room<T> {
    /// # Safety
    ///
    /// `values` has room for `capacity` values, or is NULL and that is 0; `found` has room for one number.
    pub unsafe fn new(
        name: &str,
        values: *mut T,
        capacity: usize,
        found: *mut usize,
    ) -> Outcome<Self> {
        if capacity > 0 {
            check(name, values)?;
        }
        Ok(Self {
            values,
            capacity,
            // SAFETY: as promised.
            found: unsafe { Place::new("found", found) }?,
        })
    }

    /// Writes as many values as fit, and how many there are.
    pub fn write(self, values: &[T]) {
        for (place, &value) in values.iter().take(self.capacity).enumerate() {
            // SAFETY: below the capacity that `new`'s caller promised.
            unsafe { self.values.add(place).write(value) }
        }
        self.found.write(values.len());
    }
}
