//! Pilot's mathematics. Pure: no I/O, no clock.
