//! A small NATS client for the parts that run on nodes: one connection on one thread, no runtime, TLS, bounded
//! buffers. Core NATS only: publish, subscribe, request by an inbox.
//!
//! In flow order: [`options`] say where and as whom; [`stream`] is the socket, plain or encrypted; [`protocol`] cuts
//! what comes into messages; [`link`] is the connection. [`file`] is what the files of agent and interface have in
//! common; [`parameter`] says which values a parameter may have, and what is in force; [`limits`] how much a node may say;
//! [`waiting`] is for several connections.

// A line that cannot be written must not end a daemon.
#![deny(clippy::print_stderr)]

pub mod ending;
pub mod file;
pub mod limits;
pub mod link;
pub mod options;
pub mod parameter;
pub mod protocol;
pub mod stream;
pub mod waiting;

pub use ascar_log::Fault;
pub use link::Link;
pub use options::Options;
pub use parameter::{Parameter, ParameterState};
pub use protocol::Message;
