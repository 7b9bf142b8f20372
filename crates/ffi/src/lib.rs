//! libascar, the C library: what `include/pilot.h` and `include/congestion.h` declare and document. Conversions and checks
//! only.
//!
//! | module | what it holds |
//! |---|---|
//! | `status` | what functions return, the message of the last error, and the wall that no panic passes |
//! | `pointers` | from C's pointers to references and back: the only place that follows them |
//! | `values` | the structures that results are written to |
//! | `handle` | a session's settings and state |
//! | `settings`, `round`, `running`, `results` | the functions of a session, in the order of their use |
//! | `analysis`, `intervals`, `comparing` | the functions that analyse readings |
//! | `stream`, `stream_control`, `stream_state` | the functions of a stream (`congestion.h`): its requests, what controls it, what it shows |

mod analysis;
mod comparing;
mod handle;
mod intervals;
mod pointers;
mod results;
mod round;
mod running;
mod settings;
mod status;
mod stream;
mod stream_control;
mod stream_state;
#[cfg(test)]
mod tests;
mod values;
