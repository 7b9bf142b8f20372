//! What formulas come to.

mod properties;
mod vectors;
