//! What a rule manager asks of an endpoint, and what it is told (docs/messaging.md).

use serde::{Deserialize, Serialize};

use crate::plane::{GoneStreams, StreamIndicators};
use crate::recording::Part;

/// A request. Unknown kinds, versions and fields are refused.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "message", deny_unknown_fields)]
pub enum Asked {
    /// Who is there?
    #[serde(rename = "rules.find/1")]
    Find {
        /// The workload whose controllers answer; None: all controllers.
        #[serde(default)]
        workload: Option<String>,
    },
    /// Follow these rules on trial.
    #[serde(rename = "rules.load/1")]
    Load {
        /// Their id.
        rules: String,
        /// The text of the rule file.
        text: String,
        /// The length of the trial.
        within_s: f64,
    },
    /// The trial of these rules goes on for so long from now.
    #[serde(rename = "rules.renew/1")]
    Renew {
        /// Their id.
        rules: String,
        /// The length of the trial, from now.
        within_s: f64,
    },
    /// The trial of these rules is over: they stay in force. Of rules that are kept, the time begins anew.
    #[serde(rename = "rules.keep/1")]
    Keep {
        /// Their id.
        rules: String,
        /// The time after which no rules are in force; None: they stay.
        #[serde(default)]
        within_s: Option<f64>,
    },
    /// These rules are not to be in force: what was before them is.
    #[serde(rename = "rules.back/1")]
    Back {
        /// Their id.
        rules: String,
    },
    /// No rules any more.
    #[serde(rename = "rules.stop/1")]
    Stop {},
    /// What is in force, and how was it used?
    #[serde(rename = "rules.show/1")]
    Show {},
    /// Write down what the client does.
    #[serde(rename = "rules.record/1")]
    Record {
        /// For so long.
        seconds: f64,
    },
    /// What was written down?
    #[serde(rename = "rules.read/1")]
    Read {
        /// Number of the recording.
        number: u64,
        /// Number of its part.
        part: u64,
    },
    /// What does each stream show?
    #[serde(rename = "rules.observe/1")]
    Observe {},
    /// Say at the end of each tick that you are there, from now on.
    #[serde(rename = "rules.listen/1")]
    Listen {},
}

/// An answer, or a word that nobody has asked for.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "message")]
pub enum Told {
    /// A controller is here.
    #[serde(rename = "rules.here/1")]
    Here {
        /// Its name.
        controller: String,
        /// The workload of its client.
        workload: String,
        /// The id of this process.
        instance: String,
        /// Id of the rules in force.
        rules: Option<String>,
    },
    /// What is in force now.
    #[serde(rename = "rules.in-force/1")]
    InForce {
        /// The controller that answers.
        controller: String,
        /// Id of the rules in force, on trial or kept.
        rules: Option<String>,
    },
    /// Rules with their use.
    #[serde(rename = "rules.shown/1")]
    Shown {
        /// The controller that answers.
        controller: String,
        /// The workload of its client.
        workload: String,
        /// Id of the rules in force.
        rules: Option<String>,
        /// Whether they have not been kept yet.
        on_trial: bool,
        /// The text of the rule file, with statistics.
        text: Option<String>,
        /// The time after which they end by themselves; None: they stay.
        #[serde(skip_serializing_if = "Option::is_none")]
        left_s: Option<f64>,
    },
    /// What clients do is being written down.
    #[serde(rename = "rules.recording/1")]
    Recording {
        /// The controller that answers.
        controller: String,
        /// The number of the recording.
        number: u64,
    },
    /// A part of what was written down.
    #[serde(rename = "rules.part/1")]
    Part(Box<Part>),
    /// What the streams show.
    #[serde(rename = "rules.observed/1")]
    Observed {
        /// The controller that answers.
        controller: String,
        /// Each of them.
        streams: Vec<StreamIndicators>,
        /// What others have moved before they ended, by server.
        gone: Vec<GoneStreams>,
    },
    /// The end of a tick.
    #[serde(rename = "rules.beat/1")]
    Beat {
        /// The controller's name.
        controller: String,
        /// The workload of its client.
        workload: String,
        /// The id of this process.
        instance: String,
        /// Id of the rules that were in force all through the tick; None: none were, or they changed.
        rules: Option<String>,
        /// Number of the tick.
        tick: u64,
        /// Its length.
        tick_s: f64,
        /// The client's throughput during the tick.
        mb_per_s: f64,
    },
    /// It will not be done.
    #[serde(rename = "refusal/1")]
    Refusal {
        /// Why, in a line.
        reason: String,
    },
}

impl Asked {
    /// Reads a request.
    ///
    /// # Errors
    /// In a line, what is wrong with it.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(text).map_err(|error| format!("message: {error}"))
    }
}

/// The most of a reason that is told.
const REASON_SIGNS_MAX: usize = 2_000;

impl Told {
    /// A refusal whose reason is one line that fits.
    #[must_use]
    pub fn refusal(reason: &str) -> Self {
        let words: Vec<&str> = reason.split_whitespace().collect();
        Self::Refusal {
            reason: words.join(" ").chars().take(REASON_SIGNS_MAX).collect(),
        }
    }

    /// The message as a line, without its end.
    #[must_use]
    pub fn to_line(&self) -> String {
        serde_json::to_string(self).expect("a message is made of texts and finite numbers")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_strictly() {
        let load =
            br#"{"message": "rules.load/1", "rules": "a1", "text": "1,2", "within_s": 30.0}"#;
        assert!(matches!(Asked::parse(load), Ok(Asked::Load { .. })));
        assert_eq!(
            Asked::parse(br#"{"message": "rules.find/1"}"#),
            Ok(Asked::Find { workload: None })
        );
        for wrong in [
            &br#"{"message": "rules.load/2", "rules": "a", "text": "", "within_s": 1}"#[..],
            br#"{"message": "rules.stop/1", "now": true}"#,
            br#"{"message": "rules.keep/1"}"#,
            br#"{"message": "rules.keep/1", "rules": 7}"#,
            br#"{"rules": "a"}"#,
            b"[]",
            b"\xff",
            b"",
        ] {
            let said = Asked::parse(wrong).unwrap_err();
            assert!(!said.contains('\n'), "{said}");
        }
    }

    #[test]
    fn deep_and_large_json_is_refused() {
        let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(Asked::parse(deep.as_bytes()).is_err());
    }

    #[test]
    fn a_refusal_is_one_line() {
        let line = Told::refusal("a\n b\u{7f}c").to_line();
        assert!(
            line.starts_with(r#"{"message":"refusal/1","reason":"a b"#),
            "{line}"
        );
        let Told::Refusal { reason } = Told::refusal(&"x".repeat(10_000)) else {
            panic!("a refusal");
        };
        assert_eq!(reason.len(), REASON_SIGNS_MAX);
    }
}
