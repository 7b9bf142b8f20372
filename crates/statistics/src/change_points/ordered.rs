//! Short rows in ascending order without branches: which of two readings of noise is less, no processor can guess.
//!
//! Sorting and merging networks (Batcher 1968, "Sorting networks and their applications"; Knuth, TAOCP 3, 5.3.4): a
//! fixed sequence of exchanges, which compilers turn into minima and maxima of vectors.

use super::cleaning::BLOCK;

/// Length of a merged row; what it has beyond the merged ones is infinite.
pub(super) const ROW: usize = 32;

/// A network of 29 exchanges in 8 layers for 10 values: the least number that is possible (Codish and others 2014).
const NETWORK: [(usize, usize); 29] = [
    (0, 8),
    (1, 9),
    (2, 7),
    (3, 5),
    (4, 6),
    (0, 2),
    (1, 4),
    (5, 8),
    (7, 9),
    (0, 3),
    (2, 4),
    (5, 7),
    (6, 9),
    (0, 1),
    (3, 6),
    (8, 9),
    (1, 5),
    (2, 3),
    (4, 8),
    (6, 7),
    (1, 2),
    (3, 5),
    (4, 6),
    (7, 8),
    (2, 3),
    (4, 5),
    (6, 7),
    (3, 4),
    (5, 6),
];

/// The lesser and the greater of two finite values.
#[inline(always)]
fn exchanged(a: f64, b: f64) -> (f64, f64) {
    if b < a { (b, a) } else { (a, b) }
}

/// A block in ascending order.
#[inline]
pub(super) fn ascending(block: &[f64; BLOCK]) -> [f64; BLOCK] {
    let mut row = *block;
    for (low, high) in NETWORK {
        (row[low], row[high]) = exchanged(row[low], row[high]);
    }
    row
}

/// Two ascending rows as one, up to [`ROW`] values together.
#[inline]
pub(super) fn merged<const LEFT: usize, const RIGHT: usize>(
    left: &[f64; LEFT],
    right: &[f64; RIGHT],
) -> [f64; ROW] {
    // Up and down again: a bitonic row, which five layers of exchanges put in order.
    let mut row = [f64::INFINITY; ROW];
    row[..LEFT].copy_from_slice(left);
    for (slot, value) in row.iter_mut().rev().zip(right) {
        *slot = *value;
    }
    exchange::<16>(&mut row);
    exchange::<8>(&mut row);
    exchange::<4>(&mut row);
    exchange::<2>(&mut row);
    exchange::<1>(&mut row);
    row
}

/// One layer: each value with the one so many places on.
#[inline(always)]
fn exchange<const APART: usize>(row: &mut [f64; ROW]) {
    for part in row.chunks_exact_mut(2 * APART) {
        let (low, high) = part.split_at_mut(APART);
        for (a, b) in low.iter_mut().zip(high) {
            (*a, *b) = exchanged(*a, *b);
        }
    }
}

/// The last few values of a sequence in ascending order.
#[derive(Clone, Debug)]
pub(super) struct Latest<const COUNT: usize> {
    values: [f64; COUNT],
    sorted: [f64; COUNT],
    taken: usize,
}

impl<const COUNT: usize> Default for Latest<COUNT> {
    fn default() -> Self {
        Self {
            values: [f64::INFINITY; COUNT],
            sorted: [f64::INFINITY; COUNT],
            taken: 0,
        }
    }
}

impl<const COUNT: usize> Latest<COUNT> {
    /// Takes the next value, which is finite; the oldest of `COUNT` goes.
    pub(super) fn take(&mut self, value: f64) {
        let oldest = std::mem::replace(&mut self.values[self.taken % COUNT], value);
        self.taken += 1;
        let sorted = &mut self.sorted;
        let mut at = sorted.iter().position(|&one| one == oldest).unwrap_or(0);
        sorted[at] = value;
        while at > 0 && sorted[at] < sorted[at - 1] {
            sorted.swap(at, at - 1);
            at -= 1;
        }
        while at + 1 < COUNT && sorted[at + 1] < sorted[at] {
            sorted.swap(at, at + 1);
            at += 1;
        }
    }

    /// The median of those that were taken last, of at least one.
    pub(super) fn median(&self) -> f64 {
        let n = self.taken.min(COUNT);
        let upper = self.sorted[n / 2];
        if n % 2 == 1 {
            return upper;
        }
        0.5 * (self.sorted[n / 2 - 1] + upper)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moments::median_of;

    /// A network that sorts all rows of zeros and ones sorts all rows (Knuth 5.3.4, theorem Z).
    #[test]
    fn the_network_sorts_every_row_of_zeros_and_ones() {
        for bits in 0..1 << BLOCK {
            let row: [f64; BLOCK] = std::array::from_fn(|at| f64::from(bits >> at & 1));
            assert!(ascending(&row).is_sorted(), "{row:?}");
        }
    }

    #[test]
    fn rows_of_zeros_and_ones_are_merged() {
        for ones in 0..=20 {
            for others in 0..=BLOCK {
                let left: [f64; 20] =
                    std::array::from_fn(|at| f64::from(u8::from(at >= 20 - ones)));
                let right: [f64; BLOCK] =
                    std::array::from_fn(|at| f64::from(u8::from(at >= BLOCK - others)));
                let row = merged(&left, &right);
                assert!(row.is_sorted());
                let sum: f64 = row[..30].iter().sum();
                assert_eq!(sum as usize, ones + others);
                assert!(row[30..].iter().all(|value| value.is_infinite()));
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn the_latest_values_have_the_median_of_a_plain_row(
            values in proptest::collection::vec(-3_i32..3, 1..60),
        ) {
            let mut latest = Latest::<15>::default();
            for (index, &value) in values.iter().enumerate() {
                latest.take(f64::from(value));
                let mut plain: Vec<f64> = values[(index + 1).saturating_sub(15)..=index]
                    .iter()
                    .map(|&value| f64::from(value))
                    .collect();
                proptest::prop_assert_eq!(latest.median(), median_of(&mut plain));
            }
        }
    }
}
