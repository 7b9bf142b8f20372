//! Controllers that need no rules, behind the same interface, for comparison. One file each, with its source.

mod fixed;

pub use fixed::Fixed;
