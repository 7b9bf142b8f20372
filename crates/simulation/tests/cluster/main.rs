//! Whole clusters.

mod behaviour;
mod common;
mod physics;
