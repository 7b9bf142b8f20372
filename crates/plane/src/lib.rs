//! Rules where they act. A [`Plane`] is what follows rules: the streams of a proxy, the parameters of a client's kernel, a
//! simulated cluster. An [`Endpoint`] answers a rule manager for one plane (Li, 3.1.1): rules come on trial, and unless
//! they are kept in time, those before them are in force again; so no half of a deployment outlives its manager. Kept ones
//! may have a time limit, too: then nothing outlives a manager that is gone for good.
//!
//! Pure: no clock (times are arguments, counted from any beginning), no I/O. [`Asked`] and [`Told`] are the messages of
//! docs/messaging.md, whatever carries them.

mod endpoint;
mod messages;
mod plane;
mod recording;

pub use endpoint::{
    Endpoint, KEPT_S_MAX, KeptRules, NamedRules, RECORD_S_MAX, TRIAL_S_MAX, TimeLimit, token,
};
pub use messages::{Asked, Told};
pub use plane::{GoneStreams, Plane, StreamIndicators};
pub use recording::{Part, RECORDED_MAX, RecordedKind, RecordedRequest, Recording, What};
