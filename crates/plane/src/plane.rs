//! What follows the rules.

use std::time::Duration;

use ascar_congestion::RuleSet;
use serde::{Deserialize, Serialize};

use crate::recording::Recording;

/// What follows the rules: the streams of one client.
pub trait Plane {
    /// Follows rules from now on, counting from zero; None: does without any. Streams begin anew, with the window that
    /// they begin with: else what rules bring would depend on those before them.
    ///
    /// # Errors
    /// When it cannot, in a line; what was followed before still is.
    fn follow(&mut self, rules: Option<&RuleSet>) -> Result<(), String>;

    /// The rules that are followed, with their use so far; None without rules.
    fn used(&self) -> Option<RuleSet>;

    /// What each stream shows at present.
    fn observe(&self) -> Vec<StreamIndicators>;

    /// What streams have moved that are gone.
    fn gone(&self) -> Vec<GoneStreams> {
        Vec::new()
    }

    /// Writes down what clients do for so long from now on; what was written down before is forgotten.
    ///
    /// # Errors
    /// When it cannot, in a line.
    fn record(&mut self, length: Duration) -> Result<(), String> {
        let _ = length;
        Err("this controller records nothing; leave it out".to_owned())
    }

    /// What was written down, which is over and forgotten then.
    fn take_recorded(&mut self) -> Recording {
        Recording::default()
    }
}

/// What the streams to a server have moved that are gone: totals of all its streams go on with it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoneStreams {
    /// Who answered.
    pub server: String,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Requests replied to.
    pub replies: u64,
    /// Connections that were refused before their first request: the server could not be reached, or one side is not who
    /// it should be, or says what it should not.
    #[serde(default)]
    pub refused: u64,
    /// Connections that were ended because the server said nothing any more.
    #[serde(default)]
    pub silent: u64,
}

/// What a stream shows: its congestion state, its window, and what it has moved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StreamIndicators {
    /// Who sends.
    pub client: String,
    /// Who answers.
    pub server: String,
    /// Requests that may be in flight; None: any number.
    pub window: Option<f64>,
    /// The least gap between two requests.
    pub tau_us: u32,
    /// Moving average of gaps between replies.
    pub ack_ewma_us: u32,
    /// Moving average of gaps between the sending times of the requests replied to.
    pub send_ewma_us: u32,
    /// The last process time over the shortest.
    pub pt_ratio: f64,
    /// Requests that were sent and not replied to.
    pub in_flight: u32,
    /// Connections that wait for the window, their pace or their turn.
    pub waiting: u32,
    /// Whether it has a turn, where only so many streams to a server are active at a time; None: any number.
    #[serde(default)]
    pub has_turn: Option<bool>,
    /// Connections of the client to the server.
    pub connections: u32,
    /// Those of them that pass unheld, because requests and replies cannot be told apart on them.
    #[serde(default)]
    pub passing: u32,
    /// Bytes read so far.
    pub read_bytes: u64,
    /// Bytes written so far.
    pub written_bytes: u64,
    /// Requests replied to so far.
    pub replies: u64,
}
