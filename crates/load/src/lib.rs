//! `ascard load`: runs workloads written in Filebench's language, and tells how each second went.

pub mod definition;
mod error;
pub mod quantity;
pub mod random;
pub mod wml;

pub use error::LoadError;
