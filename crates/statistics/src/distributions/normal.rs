//! The standard normal distribution. What is asked of a number that is none, is none.

use std::f64::consts::{FRAC_1_SQRT_2, PI, SQRT_2};

/// P(Z <= x).
pub fn cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x / SQRT_2)
}

/// The logarithm of P(Z <= x), exact far into both tails.
pub fn log_cdf(x: f64) -> f64 {
    if x > 0.0 {
        (-survival(x)).ln_1p()
    } else if x > -TAIL {
        cdf(x).ln()
    } else {
        mills_ratio(-x).ln() - 0.5 * x * x - 0.5 * (2.0 * PI).ln()
    }
}

/// P(Z > x).
pub fn survival(x: f64) -> f64 {
    0.5 * libm::erfc(x / SQRT_2)
}

/// The density at x.
pub fn density(x: f64) -> f64 {
    (-0.5 * x * x).exp() / (2.0 * PI).sqrt()
}

/// From here on the tail is a continued fraction.
const TAIL: f64 = 4.0;
/// Steps of the fraction that leave no wrong digit from there on.
const FRACTION_STEPS: u32 = 36;

/// Mills' ratio P(Z > x) / density(x), which vanishes as 1 / x where both do as exp(-x² / 2).
///
/// In the tail Laplace's continued fraction (Abramowitz and Stegun 26.2.14), from its end.
pub fn mills_ratio(x: f64) -> f64 {
    if x < TAIL {
        return libm::erfc(x * FRAC_1_SQRT_2) * (0.5 * x * x).exp() * (PI / 2.0).sqrt();
    }
    let mut fraction = x;
    for step in (1..=FRACTION_STEPS).rev() {
        fraction = x + f64::from(step) / fraction;
    }
    1.0 / fraction
}

// Wichura's coefficients, the highest power first.
const MIDDLE: [[f64; 8]; 2] = [
    [
        2_509.080_928_730_122_7,
        33_430.575_583_588_13,
        67_265.770_927_008_7,
        45_921.953_931_549_87,
        13_731.693_765_509_46,
        1_971.590_950_306_551_3,
        133.141_667_891_784_38,
        3.387_132_872_796_366_5,
    ],
    [
        5_226.495_278_852_545,
        28_729.085_735_721_943,
        39_307.895_800_092_71,
        21_213.794_301_586_597,
        5_394.196_021_424_751,
        687.187_007_492_057_9,
        42.313_330_701_600_91,
        1.0,
    ],
];
const OUTSIDE: [[f64; 8]; 2] = [
    [
        7.745_450_142_783_414e-4,
        0.022_723_844_989_269_184,
        0.241_780_725_177_450_6,
        1.270_458_252_452_368_4,
        3.647_848_324_763_204_5,
        5.769_497_221_460_691,
        4.630_337_846_156_546,
        1.423_437_110_749_683_5,
    ],
    [
        1.050_750_071_644_416_9e-9,
        5.475_938_084_995_345e-4,
        0.015_198_666_563_616_457,
        0.148_103_976_427_480_08,
        0.689_767_334_985_1,
        1.676_384_830_183_803_8,
        2.053_191_626_637_759,
        1.0,
    ],
];
const FAR: [[f64; 8]; 2] = [
    [
        2.010_334_399_292_288e-7,
        2.711_555_568_743_487_6e-5,
        1.242_660_947_388_078_4e-3,
        0.026_532_189_526_576_124,
        0.296_560_571_828_504_87,
        1.784_826_539_917_291_3,
        5.463_784_911_164_114,
        6.657_904_643_501_103,
    ],
    [
        2.044_263_103_389_939_8e-15,
        1.421_511_758_316_446e-7,
        1.846_318_317_510_054_8e-5,
        7.868_691_311_456_133e-4,
        0.014_875_361_290_850_615,
        0.136_929_880_922_735_8,
        0.599_832_206_555_888,
        1.0,
    ],
];

/// The x with P(Z <= x) = p, for p in [0, 1]; infinite at the ends, no number outside.
///
/// Rational functions of relative accuracy 1e-16: Wichura, "Algorithm AS 241: The percentage points of the normal
/// distribution", Applied Statistics 37 (1988), PPND16.
pub fn quantile(p: f64) -> f64 {
    if !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    let beside = p - 0.5;
    if beside.abs() <= 0.425 {
        return beside * ratio(&MIDDLE, 0.180_625 - beside * beside);
    }
    let tail = p.min(1.0 - p);
    if tail == 0.0 {
        return f64::INFINITY.copysign(beside);
    }
    let depth = (-tail.ln()).sqrt();
    let far = if depth <= 5.0 {
        ratio(&OUTSIDE, depth - 1.6)
    } else {
        ratio(&FAR, depth - 5.0)
    };
    far.copysign(beside)
}

fn ratio(coefficients: &[[f64; 8]; 2], x: f64) -> f64 {
    let [over, under] = coefficients.map(|row| row.iter().fold(0.0, |sum, &next| sum * x + next));
    over / under
}
