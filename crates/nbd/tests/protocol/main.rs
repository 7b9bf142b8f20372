//! The protocol, by both of its phases.

mod negotiation;
mod transmission;
