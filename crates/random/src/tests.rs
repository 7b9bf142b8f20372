use crate::{Random, mix, spread};

#[test]
fn numbers_are_those_of_the_reference() {
    // The first outputs of Vigna's splitmix64.c for the seed 1234567.
    let mut random = Random::new(1_234_567);
    let drawn: Vec<u64> = (0..3).map(|_| random.draw()).collect();
    assert_eq!(
        drawn,
        [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423
        ]
    );
    assert_eq!(spread(1_234_567), drawn[0]);
    assert_eq!(mix(0), 0);
}

#[test]
fn streams_of_one_seed_differ_and_repeat() {
    let draw = |path: &[u64]| Random::of(42, path).draw();
    assert_eq!(draw(&[1, 2]), draw(&[1, 2]));
    assert_ne!(draw(&[1, 2]), draw(&[2, 1]));
    assert_ne!(draw(&[1]), draw(&[1, 0]));
}

#[test]
fn below_is_even_over_its_range() {
    let mut random = Random::of(3, &[]);
    let mut counts = [0u32; 10];
    for _ in 0..100_000 {
        counts[random.below(10) as usize] += 1;
    }
    assert!(
        counts.iter().all(|c| (9_500..10_500).contains(c)),
        "{counts:?}"
    );
    assert_eq!(random.below(0), 0);
}

/// Mean and variance of 200,000 draws.
fn moments(mut draw: impl FnMut(&mut Random) -> f64) -> (f64, f64) {
    let mut random = Random::of(7, &[1]);
    let n = 200_000;
    let values: Vec<f64> = (0..n).map(|_| draw(&mut random)).collect();
    let mean = values.iter().sum::<f64>() / f64::from(n);
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / f64::from(n);
    (mean, variance)
}

#[test]
fn gamma_has_the_mean_and_variance_asked_for() {
    for (shape, asked) in [(1.5, 131_072.0), (0.5, 10.0), (9.0, 3.0)] {
        let (mean, variance) = moments(|random| random.gamma(shape, asked));
        assert!((mean / asked - 1.0).abs() < 0.02, "shape {shape}: {mean}");
        let expected = asked * asked / shape;
        assert!((variance / expected - 1.0).abs() < 0.05, "shape {shape}");
    }
}

#[test]
fn normal_and_exponential_have_their_moments() {
    let (mean, variance) = moments(Random::normal);
    assert!(mean.abs() < 0.01 && (variance - 1.0).abs() < 0.02);
    let (mean, variance) = moments(|random| random.exponential(5.0));
    assert!((mean / 5.0 - 1.0).abs() < 0.02 && (variance / 25.0 - 1.0).abs() < 0.03);
}
