//! What passes through a proxy, by protocol.

mod common;
mod http;
mod nbd;
mod resp;
