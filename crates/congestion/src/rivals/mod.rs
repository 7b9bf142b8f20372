//! Controllers that need no rules, behind the same interface, for comparison. One file each, with its source.

mod aimd;
mod bbr;
mod copa;
mod cubic;
mod envoy;
mod fixed;
mod gradient2;
mod histogram;
mod io_path_tune;
mod limit;
mod settings;
mod vegas;

pub use aimd::Aimd;
pub use bbr::Bbr;
pub use copa::Copa;
pub use cubic::Cubic;
pub use envoy::EnvoyGradient;
pub use fixed::Fixed;
pub use gradient2::Gradient2;
pub use io_path_tune::IoPathTune;
pub use settings::RivalSettings;
pub use vegas::Vegas;
