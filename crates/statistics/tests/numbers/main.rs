//! What the functions give.

mod properties;
mod reference;
