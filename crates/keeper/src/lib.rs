//! The keeper: the one small privileged process through which everything that changes a machine goes.
//!
//! A client sends JSON lines; each names one operation of an allow-list ([`protocol::Operation`]). The order is
//! always the same: check everything, take the lock, put the present state on disk ([`journal`]), change, read
//! back. When the client is gone, for whatever reason, everything is put back ([`restore`]); when the keeper dies
//! too, its journal lets the next one do it.
//!
//! In flow order: [`server`] reads lines and watches for the end; [`protocol`] checks their form; [`session`] does
//! the work with [`knobs`] and their [`catalogue`], [`images`] in a [`place`], [`loops`], [`devices`], [`format`],
//! [`mount_options`], [`mounts`] and [`cgroup`], or as a user with
//! [`files`]; [`locks`] keep sessions apart. What is to stay may need a [`confirmation`]. What comes through [`sudo`] may do less.

// A line that cannot be written must not end who puts things back.
#![deny(clippy::print_stderr, clippy::print_stdout)]

pub mod catalogue;
pub mod cgroup;
pub mod cli;
pub mod confirmation;
pub mod content;
pub mod devices;
pub mod fault;
pub mod file_id;
pub mod files;
pub mod format;
pub mod images;
pub mod interrupt;
pub mod invoker;
pub mod journal;
pub mod kernel;
pub mod knob;
pub mod knobs;
pub mod load;
pub mod locks;
pub mod loops;
pub mod mount_options;
pub mod mounts;
pub mod place;
pub mod processes;
pub mod program;
pub mod protocol;
pub mod report;
pub mod restore;
pub mod reverted;
pub mod server;
pub mod session;
pub mod started;
pub mod sudo;
pub mod uninterruptible;

use ascar_log::Log;

pub(crate) const LOG: Log = Log::of("ascard keeper");
