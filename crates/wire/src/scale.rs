//! The whole number behind a float: of 0.201 it is 201 at a scale of a thousandth, of 9437184 it is 9 at 2^20.

/// How many scales there are; the last takes the bits as they are, and so every value.
pub const SCALES: usize = 16;
/// The scale of values that no other fits.
pub const BITS: usize = SCALES - 1;

/// From the coarsest to the finest.
const UNITS: [f64; BITS] = [
    1_073_741_824.0,
    1_048_576.0,
    65_536.0,
    4096.0,
    512.0,
    64.0,
    8.0,
    1.0,
    0.5,
    1e-1,
    1e-2,
    1e-3,
    1e-4,
    1e-5,
    1e-6,
];

/// Numbers stay below this, so that every difference of two fits.
const NUMBER_MAX: f64 = (1_i64 << 40) as f64;

/// The number of `value` at a scale; None where the value does not come back from it bit for bit.
pub fn number(value: f32, scale: usize) -> Option<i64> {
    if scale >= BITS {
        return Some(ordered(value));
    }
    let unit = UNITS[scale];
    let number = round(value, unit)?;
    (back(number, unit).to_bits() == value.to_bits()).then_some(number)
}

/// About the number of `value` at a scale: what the next one is compared with. Defined for every float.
pub fn near(value: f32, scale: usize) -> i64 {
    if scale >= BITS {
        return ordered(value);
    }
    round(value, UNITS[scale]).unwrap_or(0)
}

/// The value of a number at a scale; None for a number that no value has.
pub fn value(number: i64, scale: usize) -> Option<f32> {
    if scale >= BITS {
        return unordered(number);
    }
    (number.unsigned_abs() <= NUMBER_MAX as u64).then(|| back(number, UNITS[scale]))
}

/// The coarsest scale that has the value.
pub fn coarsest(value: f32) -> usize {
    // Zero has them all: the unit is as good as any.
    if value.to_bits() == 0 {
        return 7;
    }
    (0..BITS)
        .find(|scale| number(value, *scale).is_some())
        .unwrap_or(BITS)
}

fn round(value: f32, unit: f64) -> Option<i64> {
    let number = (f64::from(value) / unit).round();
    (number.abs() <= NUMBER_MAX).then_some(number as i64)
}

fn back(number: i64, unit: f64) -> f32 {
    (number as f64 * unit) as f32
}

/// A float's bits as a number that grows with the float.
fn ordered(value: f32) -> i64 {
    let bits = i64::from(value.to_bits() as i32);
    if bits < 0 {
        -(bits & 0x7fff_ffff) - 1
    } else {
        bits
    }
}

fn unordered(number: i64) -> Option<f32> {
    let bits = if number < 0 {
        u32::try_from(-(number + 1)).ok()? | 0x8000_0000
    } else {
        u32::try_from(number).ok()?
    };
    ((number < 0) == (bits >> 31 == 1)).then(|| f32::from_bits(bits))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn few_digits_are_small_numbers() {
        assert_eq!(coarsest(0.201), 11);
        assert_eq!(number(0.201, 11), Some(201));
        assert_eq!(number(9_437_184.0, coarsest(9_437_184.0)), Some(9));
        assert_eq!(number(148.0, 7), Some(148));
        assert_eq!(number(0.201, 7), None);
        assert_eq!(coarsest(f32::INFINITY), BITS);
        // Minus zero is another value than zero.
        assert_eq!(coarsest(-0.0), BITS);
    }

    proptest! {
        #[test]
        fn every_value_comes_back(bits in any::<u32>()) {
            let value_in = f32::from_bits(bits);
            let scale = coarsest(value_in);
            let number = number(value_in, scale).unwrap();
            prop_assert_eq!(value(number, scale).unwrap().to_bits(), bits);
            for scale in 0..SCALES {
                near(value_in, scale);
            }
        }

        #[test]
        fn any_number_is_a_value_or_none(number in any::<i64>(), scale in 0_usize..SCALES) {
            value(number, scale);
        }
    }
}
