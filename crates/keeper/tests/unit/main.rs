//! Tests of what needs neither root nor a device; the operations themselves are tested from the client.

mod catalogue;
mod content;
mod format;
mod journal;
mod locks;
mod mount_options;
mod mounts;
mod program;
mod protocol;
mod scratch;
mod started;
mod uninterruptible;
