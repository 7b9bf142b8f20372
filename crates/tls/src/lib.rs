//! TLS by certificates in PEM files.
//!
//! [`Files`] name them; [`client_configuration`] and [`server_configuration`] read them, and say in one line, after the
//! key that names a file, what is wrong with it. [`Renewed`] reads them again when they were replaced, so that a
//! certificate that was renewed needs no restart. Versions are 1.2 and 1.3, with the ciphers that rustls holds to be safe;
//! sessions are not resumed, so that no key outlives its connection.

mod configuration;
mod files;
mod renewed;

pub use configuration::{client_configuration, server_configuration, server_name};
pub use files::Files;
pub use renewed::Renewed;
pub use rustls;
