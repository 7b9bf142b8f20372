//! Whole clusters.

mod behaviour;
mod bursts;
mod common;
mod metadata;
mod physics;
mod record;
mod servers;
