//! Whole clusters.

mod behaviour;
mod common;
mod metadata;
mod physics;
mod record;
mod servers;
