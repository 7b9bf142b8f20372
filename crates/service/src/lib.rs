//! What daemons have in common on their machine.
//!
//! [`manager`] tells the service manager what the daemon does, [`local_socket`] are sockets in the file system, and
//! [`host`] is the host's name.

pub mod host;
pub mod local_socket;
pub mod manager;

pub use host::host_name;
pub use local_socket::{connect_within, listen_at};
pub use manager::ServiceManager;
