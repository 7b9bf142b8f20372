//! The agent: the one process on a node. It samples performance indicators in the middle of every tick, sends what
//! has changed, and sets knobs when told (thesis 5.1.3, 5.1.7). It only dials out and listens nowhere.
//!
//! In flow order: [`config`] is the file; [`collectors`] read the machine, each in a thread of its own ([`readers`]), into
//! a [`sample`]; [`derive`] adds calendar and moving averages, which makes the [`sampler`]; [`clock`] says when;
//! [`controllers`] set knobs, each through a process that puts everything back when we are gone, under a [`lease`];
//! [`contact`] is the dead man's switch; [`relay`] passes the rule manager's messages on to proxies of the node,
//! and [`windows`] follow its rules on the node's own devices; [`footprint`] keeps memory small; [`session`] is the loop; [`cli`] starts it,
//! after a [`starter`] that keeps the rights which the agent gives up.

// A line that cannot be written must not end a daemon.
#![deny(clippy::print_stderr, clippy::print_stdout)]

pub mod cli;
pub mod clock;
pub mod collectors;
pub mod config;
pub mod contact;
pub mod controllers;
pub mod derive;
pub mod descriptors;
pub mod footprint;
pub mod glob;
pub mod lease;
pub mod readers;
pub mod relay;
pub mod running;
pub mod sample;
pub mod sampler;
pub mod session;
pub mod starter;
pub mod windows;

use ascar_log::Log;

pub(crate) const LOG: Log = Log::of("ascard agent");
