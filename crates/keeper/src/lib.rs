//! The keeper.
