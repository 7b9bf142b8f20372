//! The interface daemon (thesis 5.1.3): between agents and learner. It alone writes the replay database, and every
//! action goes through its checker.
//!
//! In flow order: [`config`] is the file; [`nodes`] knows the agents and reads their frames, [`standing`] says whom to
//! listen to, [`stock`] how much is kept of all, [`layouts`] shares their lists of names; [`ticks`] gathers frames into ticks; [`metrics`] makes the sums that rewards are made from; [`replay`] writes, [`history`] reads the database;
//! [`live`] writes ticks for the learner; [`key`], [`setting`] and [`checker`] judge actions, [`relay`] carries them out; [`service_level`]
//! knows the floors, [`fallback`] whether the setting may be changed, [`kill`] who has confirmed a kill; [`switch`] holds the
//! kill and the mode, and what is wanted of them until it is in the [`state`] on disk, which a thread of its own writes; [`merge`] makes one database of several; [`control`] is for people and job
//! schedulers, `status` what they see; [`pieces`] cuts what is too long for a message; [`session`] is the loop; [`cli`] starts it.

// A line that cannot be written must not end a daemon.
#![deny(clippy::print_stderr, clippy::print_stdout)]

pub mod checker;
pub mod cli;
pub mod clock;
pub mod config;
pub mod control;
pub mod fallback;
pub mod history;
pub mod key;
pub mod kill;
pub mod layouts;
pub mod live;
pub mod merge;
pub mod metrics;
pub mod nodes;
pub mod pieces;
pub mod prometheus;
pub mod relay;
pub mod replay;
pub mod schema;
pub mod session;
pub mod setting;
pub mod standing;
pub mod state;
mod status;
pub mod stock;
pub mod switch;
pub mod ticks;

use ascar_log::Log;

pub(crate) const LOG: Log = Log::of("ascard interface");
