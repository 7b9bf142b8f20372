//! Frames: header and code; the two ends that keep in step.

use crate::coder::{Bit, BitReader, BitWriter};
use crate::model::{Indicator, Neighbour, Shared};

/// Version of the frame's form.
pub const VERSION: u8 = 1;
/// Most indicators of a node.
pub const INDICATORS_MAX: usize = 4096;

const KEY: u8 = 0x10;

/// One tick of one node.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// Which tick, by the node's clock.
    pub tick: i64,
    /// Which list of names the values belong to.
    pub layout: u32,
    /// One for each name; NaN where there is none.
    pub values: Vec<f32>,
}

/// Why a frame cannot be read. All but [`Malformed::Version`] are mended by a key frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// It speaks another version.
    Version(u8),
    /// Frames before it are missing, or no key frame came yet.
    Lost,
    /// It was never written by an [`Encoder`].
    Garbage,
}

impl std::fmt::Display for Malformed {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Version(version) => write!(
                formatter,
                "frame of version {version}: this side speaks {VERSION}: install matching versions"
            ),
            Self::Lost => write!(
                formatter,
                "a frame before this one is missing: ask for a key frame"
            ),
            Self::Garbage => write!(formatter, "bytes that are no frame"),
        }
    }
}

impl std::error::Error for Malformed {}

/// What both ends know.
#[derive(Clone, Debug)]
struct State {
    sequence: u16,
    tick: i64,
    layout: u32,
    is_next_tick: Bit,
    shared: Shared,
    indicators: Vec<Indicator>,
}

impl State {
    fn new(sequence: u16, tick: i64, layout: u32, count: usize) -> Self {
        Self {
            sequence,
            tick,
            layout,
            is_next_tick: Bit::leaning(4000),
            shared: Shared::default(),
            indicators: vec![Indicator::default(); count],
        }
    }

    /// Of what both ends believe now: an end that has lost the other one notices.
    fn check(&self) -> u8 {
        let mut hash = 0x811c_9dc5_u32 ^ self.tick as u32;
        for indicator in &self.indicators {
            hash = (hash ^ indicator.last().to_bits()).wrapping_mul(0x0100_0193);
            hash ^= hash >> 15;
        }
        (hash ^ hash >> 8 ^ hash >> 16 ^ hash >> 24) as u8
    }
}

/// The sending end.
#[derive(Debug)]
pub struct Encoder {
    state: Option<State>,
    sequence: u16,
    since_key: u32,
    key_every: u32,
}

impl Encoder {
    /// A key frame at least every `key_every` frames.
    pub fn new(key_every: u32) -> Self {
        Self {
            state: None,
            sequence: 0,
            since_key: 0,
            key_every: key_every.max(1),
        }
    }

    /// The next frame will be a key frame.
    pub fn start_anew(&mut self) {
        self.state = None;
    }

    /// Appends the next frame to `output`. A key frame where one is due or the layout is another.
    ///
    /// # Panics
    /// When there are more than [`INDICATORS_MAX`] values.
    pub fn encode(&mut self, frame: &Frame, output: &mut Vec<u8>) {
        assert!(frame.values.len() <= INDICATORS_MAX);
        self.sequence = self.sequence.wrapping_add(1);
        let goes_on = self.since_key < self.key_every
            && self.state.as_ref().is_some_and(|state| {
                state.layout == frame.layout && state.indicators.len() == frame.values.len()
            });
        let mut state = match self.state.take() {
            Some(mut state) if goes_on => {
                self.since_key += 1;
                state.sequence = self.sequence;
                output.push(VERSION);
                output.extend_from_slice(&self.sequence.to_le_bytes());
                state
            }
            _ => {
                self.since_key = 1;
                output.push(VERSION | KEY);
                output.extend_from_slice(&self.sequence.to_le_bytes());
                output.extend_from_slice(&frame.layout.to_le_bytes());
                output.extend_from_slice(&(frame.values.len() as u16).to_le_bytes());
                // The tick before, so that this one is told like any other.
                let before = frame.tick.wrapping_sub(1);
                output.extend_from_slice(&before.to_le_bytes());
                State::new(self.sequence, before, frame.layout, frame.values.len())
            }
        };
        let check_at = output.len();
        output.push(0);
        let mut writer = BitWriter::new(output);
        let step = frame.tick.wrapping_sub(state.tick);
        writer.bit(&mut state.is_next_tick, step == 1);
        if step != 1 {
            writer.plain(step as u64, 64);
        }
        state.tick = frame.tick;
        let mut near = Neighbour::default();
        for (indicator, value) in state.indicators.iter_mut().zip(&frame.values) {
            indicator.write(*value, &mut near, &mut state.shared, &mut writer);
        }
        writer.finish();
        output[check_at] = state.check();
        self.state = Some(state);
    }
}

/// The receiving end.
#[derive(Debug, Default)]
pub struct Decoder {
    state: Option<State>,
}

impl Decoder {
    /// One that waits for a key frame.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads a frame. After an error nothing but a key frame is read.
    ///
    /// # Errors
    /// See [`Malformed`].
    pub fn decode(&mut self, bytes: &[u8]) -> Result<Frame, Malformed> {
        self.decode_within(bytes, INDICATORS_MAX)
    }

    /// Reads a frame of at most so many values: for more nothing is kept, and it is [`Malformed::Lost`].
    ///
    /// # Errors
    /// See [`Malformed`].
    pub fn decode_within(&mut self, bytes: &[u8], most: usize) -> Result<Frame, Malformed> {
        let mut state = self.state.take();
        let frame = read(&mut state, bytes, most)?;
        self.state = state;
        Ok(frame)
    }
}

fn read(state: &mut Option<State>, bytes: &[u8], most: usize) -> Result<Frame, Malformed> {
    let (first, rest) = bytes.split_first().ok_or(Malformed::Garbage)?;
    if first & 0x0f != VERSION {
        return Err(Malformed::Version(first & 0x0f));
    }
    if first & !0x0f & !KEY != 0 {
        return Err(Malformed::Garbage);
    }
    let (sequence, mut rest) = take::<2>(rest)?;
    let sequence = u16::from_le_bytes(sequence);
    if first & KEY != 0 {
        let (layout, after) = take::<4>(rest)?;
        let (count, after) = take::<2>(after)?;
        let (tick, after) = take::<8>(after)?;
        let count = usize::from(u16::from_le_bytes(count));
        if count > INDICATORS_MAX {
            return Err(Malformed::Garbage);
        }
        if count > most {
            return Err(Malformed::Lost);
        }
        let layout = u32::from_le_bytes(layout);
        *state = Some(State::new(
            sequence,
            i64::from_le_bytes(tick),
            layout,
            count,
        ));
        rest = after;
    } else {
        let state = state.as_mut().ok_or(Malformed::Lost)?;
        if sequence != state.sequence.wrapping_add(1) {
            return Err(Malformed::Lost);
        }
        state.sequence = sequence;
    }
    let state = state.as_mut().ok_or(Malformed::Lost)?;
    let (check, code) = take::<1>(rest)?;
    let mut reader = BitReader::new(code);
    let step = if reader.bit(&mut state.is_next_tick) {
        1
    } else {
        reader.plain(64) as i64
    };
    state.tick = state.tick.wrapping_add(step);
    let mut near = Neighbour::default();
    let mut values = Vec::with_capacity(state.indicators.len());
    for indicator in &mut state.indicators {
        let value = indicator
            .read(&mut near, &mut state.shared, &mut reader)
            .ok_or(Malformed::Garbage)?;
        values.push(value);
    }
    if reader.is_over() || state.check() != check[0] {
        return Err(Malformed::Garbage);
    }
    Ok(Frame {
        tick: state.tick,
        layout: state.layout,
        values,
    })
}

fn take<const N: usize>(bytes: &[u8]) -> Result<([u8; N], &[u8]), Malformed> {
    let (head, rest) = bytes.split_first_chunk::<N>().ok_or(Malformed::Garbage)?;
    Ok((*head, rest))
}
