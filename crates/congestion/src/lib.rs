//! ASCAR's traffic controllers (Li, chapter 3): one a stream, that is a client-server pair, deciding from replies alone
//! how many requests may be in flight and how far apart they leave.
//!
//! Pure: no clock (times are arguments, in microseconds), no I/O, no allocation once a controller is made. The same
//! code runs in simulation and on the wire. [`Controller`] is the interface; [`AnyController`] holds any of them;
//! [`Stream`] is one of them with what its client has in flight.

mod any;
mod bits;
mod bounds;
mod controller;
mod coverage;
mod extended;
mod extensions;
mod faithful;
mod fault;
mod index;
mod jitter;
mod minimum;
mod pacer;
mod rivals;
mod rule;
mod rule_set;
mod sequences;
mod signals;
mod stream;
mod text;
mod turns;
mod usage;
mod window;

pub use any::{AnyController, RIVAL_NAMES};
pub use bits::RULES_MAX;
pub use bounds::Bounds;
pub use controller::{Controller, InFlight, Reply, Window};
pub use extended::{Extended, ExtendedState};
pub use extensions::{Extensions, Probe, Unit};
pub use faithful::{Faithful, FaithfulState};
pub use fault::{Fault, Result};
pub use pacer::Pacer;
pub use rivals::{
    Aimd, Bbr, Copa, Cubic, EnvoyGradient, Fixed, Gradient2, IoPathTune, RivalSettings, Vegas,
};
pub use rule::{Action, Interval, Observed, Region, Rule, SPACE};
pub use rule_set::{
    ACTIVE_FILES_MAX, Deployment, RuleSet, UPDATES_PER_SECOND_DEFAULT, UPDATES_PER_SECOND_MAX,
};
pub use sequences::Sequences;
pub use signals::{AXES, AXIS_NAMES, INFINITY, SILENCE_MAX_US, Signals, THESIS_AXES, Tracker};
pub use stream::{Admission, Following, Misuse, NOW_US_MAX, Sending, Sent, Stream};
pub use turns::{Nanos, Turns};
pub use usage::Usage;
pub use window::{WINDOW_X100_DEFAULT, WINDOW_X100_MAX, WINDOW_X100_MIN, hundredths, stepped};
