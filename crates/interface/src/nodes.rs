//! What is known of the agents: their layouts, their knobs, the state of their frames.

use std::collections::HashMap;
use std::sync::Arc;

use ascar_messaging::{ParameterState, limits};
use ascar_wire::{Decoder, Malformed};
use serde::Deserialize;

use crate::layouts::{Layout, Layouts};
use crate::standing::Standing;
use crate::stock::Stock;

/// Indicators, streams, and choices of knobs, that every node may have; some have more.
const INDICATORS_SHARE: usize = 128;
const STREAMS_SHARE: usize = 64;
const CHOICES_SHARE: usize = 128;
/// Most names of what does not answer on a node.
const BLOCKED_MAX: usize = 32;

/// Of what agents say of themselves.
pub const HELLO_VERSION: u64 = 1;

/// The version of a hello that is not understood; this one where it says none.
pub fn version_of_hello(bytes: &[u8]) -> u64 {
    #[derive(Deserialize)]
    struct Versioned {
        version: u64,
    }
    serde_json::from_slice::<Versioned>(bytes).map_or(HELLO_VERSION, |it| it.version)
}

/// Why a hello of another version is refused.
pub fn other_version(version: u64) -> String {
    format!(
        "version = {version}: this interface speaks {HELLO_VERSION}, install matching versions of ascard"
    )
}

/// What an agent says of itself.
#[derive(Debug, Deserialize)]
pub struct Hello {
    /// Of the message.
    pub version: u64,
    /// Its layout's id.
    #[serde(default)]
    pub layout: String,
    /// Its indicators.
    #[serde(default)]
    pub names: Vec<String>,
    /// Whether it sets nothing.
    #[serde(default)]
    pub monitor_only: bool,
    /// Whether knobs may differ from what they were before the agent.
    #[serde(default)]
    pub touched: bool,
    /// Its knobs.
    #[serde(default)]
    pub knobs: Vec<ParameterState>,
    /// Of its collectors those that do not answer, and `knobs` where its controllers do not.
    #[serde(default)]
    pub blocked: Vec<String>,
    /// It ends, and has put everything back unless it is touched.
    #[serde(default)]
    pub leaving: bool,
}

/// One agent.
#[derive(Debug)]
pub struct Node {
    /// Its name.
    pub name: Arc<str>,
    /// Its indicators.
    pub layout: Option<Arc<Layout>>,
    /// Its knobs.
    pub knobs: Vec<ParameterState>,
    /// Sets nothing.
    pub monitor_only: bool,
    /// What does not answer there.
    pub blocked: Vec<String>,
    /// The last tick that it sent.
    pub seen_tick: i64,
    /// Sends now.
    pub here: bool,
    /// Whether it is listened to.
    pub standing: Standing,
    /// When a key frame was last asked for.
    asked_tick: i64,
    decoder: Decoder,
}

impl Node {
    /// How much is kept of it.
    fn counts(&self) -> Counts {
        counts(
            self.layout.as_ref().map_or(&[], |layout| &layout.names),
            &self.knobs,
        )
    }
}

/// Indicators, streams and choices.
type Counts = [usize; 3];

fn counts(names: &[String], knobs: &[ParameterState]) -> Counts {
    [names.len(), limits::streams(knobs), limits::choices(knobs)]
}

/// What came of a frame.
#[derive(Debug)]
pub enum Received {
    /// A node's tick and values.
    Values(i64, Arc<Layout>, Vec<f32>),
    /// A key frame or a hello is needed first; ask for it if true.
    Ask(bool),
}

/// All agents.
#[derive(Debug)]
pub struct Nodes {
    nodes: Vec<Node>,
    places: HashMap<Arc<str>, usize>,
    layouts: Layouts,
    stocks: [Stock; 3],
    most: usize,
}

impl Nodes {
    /// At most so many.
    pub fn new(most: usize) -> Self {
        Self {
            nodes: Vec::new(),
            places: HashMap::new(),
            layouts: Layouts::default(),
            stocks: [
                Stock::of("indicators", INDICATORS_SHARE, limits::INDICATORS_MAX, most),
                Stock::of("streams", STREAMS_SHARE, limits::STREAMS_MAX, most),
                Stock::of("choices", CHOICES_SHARE, limits::CHOICES_OF_ALL_MAX, most),
            ],
            most,
        }
    }

    /// All of them.
    pub fn all(&self) -> &[Node] {
        &self.nodes
    }

    /// One by its place.
    pub fn node(&mut self, place: usize) -> &mut Node {
        &mut self.nodes[place]
    }

    /// One by its name.
    pub fn find(&self, name: &str) -> Option<&Node> {
        self.places.get(name).map(|place| &self.nodes[*place])
    }

    /// The place of a name, which is given one if it is new; None where there are too many.
    pub fn place(&mut self, name: &str) -> Option<usize> {
        if let Some(place) = self.places.get(name) {
            return Some(*place);
        }
        if self.nodes.len() >= self.most {
            return None;
        }
        let name: Arc<str> = name.into();
        self.places.insert(Arc::clone(&name), self.nodes.len());
        self.nodes.push(Node {
            name,
            layout: None,
            knobs: Vec::new(),
            monitor_only: true,
            blocked: Vec::new(),
            seen_tick: i64::MIN,
            here: false,
            standing: Standing::default(),
            asked_tick: i64::MIN,
            decoder: Decoder::new(),
        });
        Some(self.nodes.len() - 1)
    }

    /// Takes in what an agent says of itself.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn hello(&mut self, place: usize, hello: Hello, tick: i64) -> Result<(), String> {
        if hello.version != HELLO_VERSION {
            return Err(other_version(hello.version));
        }
        limits::check_indicators(&hello.names)?;
        limits::check_knobs(&hello.knobs)?;
        let number = u32::from_str_radix(&hello.layout, 16).map_err(|_| {
            let shown: String = hello.layout.chars().take(40).collect();
            format!("layout = {shown:?}: allowed are eight hexadecimal digits")
        })?;
        let has = self.nodes[place].counts();
        self.exchange(has, counts(&hello.names, &hello.knobs))?;
        let layout = self.layouts.shared(number, hello.names);
        let node = &mut self.nodes[place];
        let known = node.layout.as_ref().map(|it| it.serial);
        let is_other = known.is_some_and(|known| known != layout.serial);
        node.layout = Some(layout);
        node.knobs = hello.knobs;
        node.monitor_only = hello.monitor_only;
        node.standing.let_in();
        if is_other {
            node.standing.take_layout(tick)?;
        }
        let blocked = hello.blocked.into_iter().take(BLOCKED_MAX);
        node.blocked = blocked.map(|it| it.chars().take(64).collect()).collect();
        Ok(())
    }

    /// A node gives back what it had and takes what it needs now, of all stocks or of none.
    fn exchange(&mut self, had: Counts, needs: Counts) -> Result<(), String> {
        for at in 0..had.len() {
            if let Err(error) = self.stocks[at].exchange(had[at], needs[at]) {
                for taken in 0..at {
                    let _ = self.stocks[taken].exchange(needs[taken], had[taken]);
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// Cuts a node off, of which nothing is kept but its name and the reason. Returns whether that is said in the log.
    pub fn cut_off(&mut self, place: usize, reason: String, tick: i64) -> bool {
        let has = self.nodes[place].counts();
        let _ = self.exchange(has, Counts::default());
        let node = &mut self.nodes[place];
        node.layout = None;
        node.knobs = Vec::new();
        node.monitor_only = true;
        node.here = false;
        node.decoder = Decoder::new();
        node.standing.cut_off(reason, tick)
    }

    /// Reads a frame; `tick` is the interface's own.
    ///
    /// # Errors
    /// Bytes that are no frame; a key frame is asked for all the same.
    pub fn frame(
        &mut self,
        place: usize,
        bytes: &[u8],
        tick: i64,
    ) -> (Received, Option<Malformed>) {
        let node = &mut self.nodes[place];
        let ask = |node: &mut Node| {
            let is_due = tick > node.asked_tick.saturating_add(1);
            if is_due {
                node.asked_tick = tick;
            }
            Received::Ask(is_due)
        };
        // Without a hello nothing is known of a frame, and nothing is kept of it.
        let count = node.layout.as_ref().map_or(0, |layout| layout.names.len());
        match node.decoder.decode_within(bytes, count) {
            Err(malformed) => (ask(node), Some(malformed)),
            Ok(frame) => match &node.layout {
                Some(layout)
                    if layout.number == frame.layout
                        && layout.names.len() == frame.values.len() =>
                {
                    (
                        Received::Values(frame.tick, Arc::clone(layout), frame.values),
                        None,
                    )
                }
                _ => (ask(node), None),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ascar_wire::{Encoder, Frame};

    fn hello(names: &[&str]) -> Hello {
        serde_json::from_value(
            serde_json::json!({"version": 1, "layout": "00000007", "names": names}),
        )
        .unwrap()
    }

    #[test]
    fn frames_need_a_hello_and_a_key_frame() {
        let mut nodes = Nodes::new(2);
        let place = nodes.place("a").unwrap();
        let mut encoder = Encoder::new(1);
        let mut frame = |tick: i64| {
            let mut bytes = Vec::new();
            encoder.encode(
                &Frame {
                    tick,
                    layout: 7,
                    values: vec![1.0],
                },
                &mut bytes,
            );
            bytes
        };
        assert!(matches!(
            nodes.frame(place, &frame(1), 1),
            (Received::Ask(true), Some(Malformed::Lost))
        ));
        // Not asked again at once.
        assert!(matches!(
            nodes.frame(place, &frame(2), 2),
            (Received::Ask(false), Some(Malformed::Lost))
        ));
        nodes.hello(place, hello(&["x"]), 2).unwrap();
        assert!(matches!(
            nodes.frame(place, &frame(3), 3),
            (Received::Values(3, _, _), None)
        ));
        assert!(matches!(
            nodes.frame(place, b"garbage", 9),
            (Received::Ask(true), Some(_))
        ));
    }

    #[test]
    fn garbage_and_too_many_nodes_are_refused() {
        let mut nodes = Nodes::new(1);
        let place = nodes.place("a").unwrap();
        assert_eq!(nodes.place("b"), None);
        assert_eq!(nodes.place("a"), Some(place));
        let mut wrong = hello(&["x"]);
        wrong.version = 2;
        assert!(nodes.hello(place, wrong, 0).is_err());
        let mut wrong = hello(&["x"]);
        wrong.layout = "zz".to_owned();
        assert!(nodes.hello(place, wrong, 0).is_err());
        assert!(nodes.hello(place, hello(&[""]), 0).is_err());
    }

    #[test]
    fn choices_of_knobs_come_from_one_stock_too() {
        let choices = vec![1; limits::CHOICES_OF_ALL_MAX / 4];
        let knob = serde_json::json!({"name": "x", "value": 1, "choices": choices});
        let much = |names: &[&str]| {
            let mut said = hello(names);
            said.knobs =
                serde_json::from_value(serde_json::json!([knob, knob, knob, knob])).unwrap();
            said
        };
        let mut nodes = Nodes::new(100);
        let mut places = (0..100)
            .map(|at| nodes.place(&at.to_string()).unwrap())
            .collect::<Vec<_>>();
        let refused = places
            .iter()
            .position(|at| nodes.hello(*at, much(&["x"]), 0).is_err());
        let taken = refused.expect("the stock has an end");
        assert!((16..20).contains(&taken), "{taken}");
        // Who needs little has its share, and what one gives back another takes.
        let last = places.pop().unwrap();
        assert!(nodes.hello(last, hello(&["x"]), 0).is_ok());
        nodes.cut_off(places[0], "over its limits".to_owned(), 0);
        assert!(nodes.hello(last, much(&["x"]), 0).is_ok());
    }
}
