//! Whole clusters.

mod behaviour;
mod common;
mod physics;
mod record;
mod servers;
