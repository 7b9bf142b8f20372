//! The indicator frame that an agent sends once a tick (thesis 5.1.3): only what has changed since the last frame,
//! compressed.
//!
//! A frame is a small header and one arithmetic code ([`coder`]) of what has changed ([`model`]). Both sides keep the
//! last values and adaptive probabilities, so a frame is read after its predecessor or not at all: sequence numbers
//! tell a loss, and a *key frame* starts anew. Values are 32-bit floats and arrive bit for bit; NaN is "no
//! value now". [`scale`] finds the whole number behind a float, because 0.201 is three digits and not 32 bits.
//!
//! Decoding never trusts its input: every frame of any bytes gives values or an error, in bounded time and memory.

pub mod coder;
pub mod frame;
pub mod model;
pub mod scale;

pub use frame::{Decoder, Encoder, Frame, INDICATORS_MAX, Malformed, VERSION};
