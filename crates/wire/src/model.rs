//! What is known of one indicator, and how its next value is told.

use crate::coder::{Bit, BitReader, BitWriter};
use crate::scale::{self, BITS, SCALES};

/// After so many values in a row that a coarser scale would fit, it is taken.
const PATIENCE: u8 = 12;
/// Bits of the longest difference.
const LENGTH_MAX: u32 = 43;

/// Of all indicators: the leading bits of differences, by their length.
#[derive(Clone, Debug)]
pub struct Shared {
    leading: [[Bit; 3]; 64],
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            leading: [[Bit::default(); 3]; 64],
        }
    }
}

/// From what the next value is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Base {
    Last,
    Zero,
    Neighbour,
}

/// One indicator.
#[derive(Clone, Debug)]
pub struct Indicator {
    last: f32,
    scale: u8,
    patience: u8,
    was_changed: bool,
    changed: [Bit; 4],
    missing: Bit,
    is_same_scale: Bit,
    scales: [Bit; SCALES],
    base: [Bit; 4],
    lengths: [Bit; 64],
    is_negative: Bit,
}

impl Default for Indicator {
    fn default() -> Self {
        Self {
            last: f32::NAN,
            scale: 7,
            patience: 0,
            was_changed: false,
            changed: [
                Bit::leaning(1000),
                Bit::leaning(2000),
                Bit::leaning(2000),
                Bit::leaning(3000),
            ],
            missing: Bit::leaning(100),
            is_same_scale: Bit::leaning(3500),
            scales: [Bit::default(); SCALES],
            base: [
                Bit::leaning(3000),
                Bit::leaning(3000),
                Bit::default(),
                Bit::default(),
            ],
            lengths: [Bit::default(); 64],
            is_negative: Bit::default(),
        }
    }
}

/// What is before an indicator in its frame.
#[derive(Clone, Copy, Debug)]
pub struct Neighbour {
    value: f32,
    is_changed: bool,
}

impl Default for Neighbour {
    fn default() -> Self {
        Self {
            value: 0.0,
            is_changed: false,
        }
    }
}

impl Indicator {
    /// The value told last; NaN where there was none.
    pub fn last(&self) -> f32 {
        self.last
    }

    /// Tells the next value.
    pub fn write(
        &mut self,
        value: f32,
        near: &mut Neighbour,
        shared: &mut Shared,
        writer: &mut BitWriter,
    ) {
        // NaN of any kind is "none".
        let value = if value.is_nan() { f32::NAN } else { value };
        let is_changed = value.to_bits() != self.last.to_bits();
        writer.bit(&mut self.changed[self.context(near)], is_changed);
        if is_changed {
            writer.bit(&mut self.missing, value.is_nan());
            if !value.is_nan() {
                self.write_value(value, near, shared, writer);
            }
        }
        self.learn(value, is_changed, near);
    }

    /// Reads the next value; None where the bytes were never written by [`Self::write`].
    pub fn read(
        &mut self,
        near: &mut Neighbour,
        shared: &mut Shared,
        reader: &mut BitReader,
    ) -> Option<f32> {
        let is_changed = reader.bit(&mut self.changed[self.context(near)]);
        let mut value = self.last;
        if is_changed {
            value = if reader.bit(&mut self.missing) {
                f32::NAN
            } else {
                self.read_value(near, shared, reader)?
            };
        }
        self.learn(value, is_changed, near);
        Some(value)
    }

    fn context(&self, near: &Neighbour) -> usize {
        usize::from(self.was_changed) * 2 + usize::from(near.is_changed)
    }

    fn learn(&mut self, value: f32, is_changed: bool, near: &mut Neighbour) {
        self.last = value;
        self.was_changed = is_changed;
        *near = Neighbour { value, is_changed };
    }

    fn origin(&self, base: Base, near: &Neighbour, scale: usize) -> i64 {
        match base {
            Base::Last => scale::near(self.last, scale),
            Base::Zero => 0,
            Base::Neighbour => scale::near(near.value, scale),
        }
    }

    fn write_value(
        &mut self,
        value: f32,
        near: &Neighbour,
        shared: &mut Shared,
        writer: &mut BitWriter,
    ) {
        let scale = self.choose(value);
        let is_same = scale == usize::from(self.scale);
        writer.bit(&mut self.is_same_scale, is_same);
        if !is_same {
            tree_write(&mut self.scales, 4, scale as u64, writer);
            self.scale = scale as u8;
        }
        let number = scale::number(value, scale).expect("the scale was chosen to fit");
        let difference = |base: Base| number.wrapping_sub(self.origin(base, near, scale));
        let last = difference(Base::Last);
        let mut base = Base::Last;
        let mut best = length(last) + 2;
        for (other, handicap) in [(Base::Zero, 3), (Base::Neighbour, 3)] {
            let cost = length(difference(other)) + handicap;
            if cost < best {
                (base, best) = (other, cost);
            }
        }
        let offset = difference(base);
        let context = usize::from(self.was_changed);
        writer.bit(&mut self.base[context], base == Base::Last);
        if base != Base::Last {
            writer.bit(&mut self.base[2 + context], base == Base::Zero);
        }
        let bits = length(offset);
        tree_write(&mut self.lengths, 6, u64::from(bits), writer);
        if bits == 0 {
            return;
        }
        writer.bit(&mut self.is_negative, offset < 0);
        let magnitude = offset.unsigned_abs();
        let leading = &mut shared.leading[bits as usize];
        let mut left = bits - 1;
        let mut node = 0;
        for _ in 0..2_u32.min(bits - 1) {
            left -= 1;
            let bit = magnitude >> left & 1 == 1;
            writer.bit(&mut leading[node], bit);
            node = if node == 0 {
                1 + usize::from(bit)
            } else {
                node
            };
        }
        writer.plain(magnitude, left);
    }

    fn read_value(
        &mut self,
        near: &Neighbour,
        shared: &mut Shared,
        reader: &mut BitReader,
    ) -> Option<f32> {
        if !reader.bit(&mut self.is_same_scale) {
            self.scale = tree_read(&mut self.scales, 4, reader) as u8;
        }
        let scale = usize::from(self.scale);
        let context = usize::from(self.was_changed);
        let base = if reader.bit(&mut self.base[context]) {
            Base::Last
        } else if reader.bit(&mut self.base[2 + context]) {
            Base::Zero
        } else {
            Base::Neighbour
        };
        let bits = tree_read(&mut self.lengths, 6, reader) as u32;
        if bits > LENGTH_MAX {
            return None;
        }
        let mut offset = 0;
        if bits > 0 {
            let is_negative = reader.bit(&mut self.is_negative);
            let leading = &mut shared.leading[bits as usize];
            let mut magnitude = 1_u64;
            let mut left = bits - 1;
            let mut node = 0;
            for _ in 0..2_u32.min(bits - 1) {
                left -= 1;
                let bit = reader.bit(&mut leading[node]);
                magnitude = magnitude << 1 | u64::from(bit);
                node = if node == 0 {
                    1 + usize::from(bit)
                } else {
                    node
                };
            }
            magnitude = magnitude << left | reader.plain(left);
            offset = if is_negative {
                -(magnitude as i64)
            } else {
                magnitude as i64
            };
        }
        let number = self.origin(base, near, scale).checked_add(offset)?;
        scale::value(number, scale).filter(|value| !value.is_nan())
    }

    /// The scale in use, unless the value needs a finer one or has long fitted a coarser one.
    fn choose(&mut self, value: f32) -> usize {
        let coarsest = scale::coarsest(value);
        let present = usize::from(self.scale);
        if scale::number(value, present).is_none() || present == BITS && coarsest != BITS {
            self.patience = 0;
            return coarsest;
        }
        self.patience = if coarsest < present {
            self.patience + 1
        } else {
            0
        };
        if self.patience < PATIENCE {
            return present;
        }
        self.patience = 0;
        coarsest
    }
}

/// Bits of a number without its sign.
fn length(number: i64) -> u32 {
    64 - number.unsigned_abs().leading_zeros()
}

fn tree_write(tree: &mut [Bit], depth: u32, symbol: u64, writer: &mut BitWriter) {
    let mut node = 1;
    for index in (0..depth).rev() {
        let bit = symbol >> index & 1 == 1;
        writer.bit(&mut tree[node], bit);
        node = node * 2 + usize::from(bit);
    }
}

fn tree_read(tree: &mut [Bit], depth: u32, reader: &mut BitReader) -> u64 {
    let mut node = 1;
    for _ in 0..depth {
        node = node * 2 + usize::from(reader.bit(&mut tree[node]));
    }
    (node - (1 << depth)) as u64
}
