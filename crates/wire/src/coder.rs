//! A binary arithmetic coder with adaptive probabilities: carry-less, 32 bits, as in Mahoney's lpaq.

/// The probability that a bit is one, learned from the bits seen: twelve bits of it, and four that count up to
/// [`COUNT_MAX`], so that it learns fast at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bit(u16);

const COUNT_MAX: u16 = 15;
const SLOWEST: u32 = 5;

impl Default for Bit {
    fn default() -> Self {
        Self(2048 << 4)
    }
}

impl Bit {
    /// A probability of one of about `share` 4096ths, held as if a few bits had been seen.
    pub const fn leaning(share: u16) -> Self {
        Self((share << 4) | 3)
    }

    fn one_4096(self) -> u32 {
        u32::from(self.0 >> 4).clamp(1, 4095)
    }

    fn learn(&mut self, bit: bool) {
        let count = self.0 & 15;
        let share = i32::from(self.0 >> 4);
        // The first bits count 1/2, 1/3, ..., later ones 1/32.
        let target = if bit { 4095 } else { 0 };
        let moved = if count >= COUNT_MAX {
            share + ((target - share) >> SLOWEST)
        } else {
            share + (target - share) * 2 / (2 * i32::from(count) + 3)
        };
        self.0 = ((moved.clamp(1, 4094) as u16) << 4) | (count + 1).min(COUNT_MAX);
    }
}

/// Bits in.
#[derive(Debug)]
pub struct BitWriter<'a> {
    output: &'a mut Vec<u8>,
    start: usize,
    low: u32,
    high: u32,
}

impl<'a> BitWriter<'a> {
    /// Appends to `output`.
    pub fn new(output: &'a mut Vec<u8>) -> Self {
        let start = output.len();
        Self {
            output,
            start,
            low: 0,
            high: u32::MAX,
        }
    }

    fn split(&mut self, one_4096: u32, bit: bool) {
        let middle = middle(self.low, self.high, one_4096);
        if bit {
            self.high = middle;
        } else {
            self.low = middle + 1;
        }
        while (self.low ^ self.high) >> 24 == 0 {
            self.output.push((self.high >> 24) as u8);
            self.low <<= 8;
            self.high = self.high << 8 | 255;
        }
    }

    /// One bit of a probability that is learned.
    pub fn bit(&mut self, probability: &mut Bit, bit: bool) {
        self.split(probability.one_4096(), bit);
        probability.learn(bit);
    }

    /// The lowest `count` bits of a number, nothing known about them.
    pub fn plain(&mut self, number: u64, count: u32) {
        for index in (0..count).rev() {
            self.split(2048, number >> index & 1 == 1);
        }
    }

    /// Ends the code with as few bytes as tell it from every other one: a reader sees zeros behind the end.
    pub fn finish(self) {
        let (low, high) = (self.low, self.high);
        for count in 0..=4_u32 {
            // The least number >= low that ends in zeros.
            let keep = 32 - 8 * count;
            let mask = if keep == 32 {
                u32::MAX
            } else {
                (1_u32 << keep) - 1
            };
            let end = (u64::from(low) + u64::from(mask)) & !u64::from(mask);
            if end <= u64::from(high) {
                self.output
                    .extend_from_slice(&(end as u32).to_be_bytes()[..count as usize]);
                break;
            }
        }
        while self.output.len() > self.start && self.output.last() == Some(&0) {
            self.output.pop();
        }
    }
}

/// Bits out. Behind its end any input goes on with zeros.
#[derive(Debug)]
pub struct BitReader<'a> {
    input: &'a [u8],
    position: usize,
    low: u32,
    high: u32,
    code: u32,
}

impl<'a> BitReader<'a> {
    /// Reads all of `input`.
    pub fn new(input: &'a [u8]) -> Self {
        let mut reader = Self {
            input,
            position: 0,
            low: 0,
            high: u32::MAX,
            code: 0,
        };
        for _ in 0..4 {
            reader.code = reader.code << 8 | reader.next();
        }
        reader
    }

    fn next(&mut self) -> u32 {
        let byte = self.input.get(self.position).copied().unwrap_or(0);
        self.position += 1;
        u32::from(byte)
    }

    fn split(&mut self, one_4096: u32) -> bool {
        let middle = middle(self.low, self.high, one_4096);
        let bit = self.code <= middle;
        if bit {
            self.high = middle;
        } else {
            self.low = middle + 1;
        }
        while (self.low ^ self.high) >> 24 == 0 {
            self.low <<= 8;
            self.high = self.high << 8 | 255;
            self.code = self.code << 8 | self.next();
        }
        bit
    }

    /// One bit of a probability that is learned.
    pub fn bit(&mut self, probability: &mut Bit) -> bool {
        let bit = self.split(probability.one_4096());
        probability.learn(bit);
        bit
    }

    /// `count` bits, at most 64.
    pub fn plain(&mut self, count: u32) -> u64 {
        (0..count).fold(0, |number, _| number << 1 | u64::from(self.split(2048)))
    }

    /// Whether far more was read than there is: such a code was never written. The writer's end may leave
    /// four bytes of zeros away.
    pub fn is_over(&self) -> bool {
        self.position > self.input.len() + 8
    }
}

fn middle(low: u32, high: u32, one_4096: u32) -> u32 {
    low + ((u64::from(high - low) * u64::from(one_4096)) >> 12) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(words in proptest::collection::vec((0_usize..4, any::<u16>(), 0_u32..17), 0..300)) {
            let mut bytes = vec![7];
            let mut probabilities = [Bit::default(), Bit::leaning(40), Bit::leaning(4000), Bit::default()];
            let mut writer = BitWriter::new(&mut bytes);
            for (context, word, count) in &words {
                writer.bit(&mut probabilities[*context], word & 1 == 1);
                writer.plain(u64::from(*word) & ((1 << count) - 1), *count);
            }
            writer.finish();
            let mut probabilities = [Bit::default(), Bit::leaning(40), Bit::leaning(4000), Bit::default()];
            let mut reader = BitReader::new(&bytes[1..]);
            for (context, word, count) in &words {
                prop_assert_eq!(reader.bit(&mut probabilities[*context]), word & 1 == 1);
                prop_assert_eq!(reader.plain(*count), u64::from(*word) & ((1 << count) - 1));
            }
        }
    }

    #[test]
    fn what_is_expected_costs_next_to_nothing() {
        let mut bytes = Vec::new();
        let mut probability = Bit::default();
        let mut writer = BitWriter::new(&mut bytes);
        for _ in 0..8000 {
            writer.bit(&mut probability, false);
        }
        writer.finish();
        assert!(bytes.len() < 20, "{}", bytes.len());
    }
}
