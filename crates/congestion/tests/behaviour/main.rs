//! What controllers and their rules do.

mod common;
mod extended;
mod faithful;
mod rivals;
mod rules;
mod stream;
