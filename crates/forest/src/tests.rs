use ascar_random::Random;

use crate::{Fault, Forest, Sample, Shape};

const SHAPE: Shape = Shape {
    trees: 64,
    leaf_min: 1,
    tries: 3,
    bootstrap: false,
};

fn grow(features: &[f64], width: usize, values: &[f64], shape: Shape, seed: u64) -> Forest {
    let weights = vec![1.0; values.len()];
    Forest::grow(
        Sample {
            features,
            width,
            values,
            weights: &weights,
        },
        shape,
        seed,
    )
    .unwrap()
}

/// A step in the first of three features, the others being noise.
fn step(rows: usize) -> (Vec<f64>, Vec<f64>) {
    let mut random = Random::new(3);
    let features: Vec<f64> = (0..rows * 3).map(|_| random.unit()).collect();
    let values = features
        .chunks(3)
        .map(|row| if row[0] > 0.5 { 7.0 } else { -2.0 })
        .collect();
    (features, values)
}

#[test]
fn a_fully_grown_forest_repeats_what_it_saw() {
    let (features, values) = step(60);
    let forest = grow(&features, 3, &values, SHAPE, 1);
    for (prediction, value) in forest.predict(&features).unwrap().iter().zip(&values) {
        assert!((prediction.mean - value).abs() < 1e-9);
        assert!(prediction.between < 1e-12 && prediction.within < 1e-12);
    }
}

#[test]
fn it_finds_the_feature_that_matters_and_is_unsure_at_the_edge() {
    let (features, values) = step(120);
    let forest = grow(&features, 3, &values, SHAPE, 1);
    let told = forest
        .predict(&[0.1, 0.5, 0.5, 0.9, 0.5, 0.5, 0.5, 0.5, 0.5])
        .unwrap();
    assert!((told[0].mean + 2.0).abs() < 0.5, "{:?}", told[0]);
    assert!((told[1].mean - 7.0).abs() < 0.5, "{:?}", told[1]);
    assert!(
        told[2].between > 10.0 * told[0].between.max(told[1].between).max(1e-3),
        "{told:?}"
    );
}

#[test]
fn the_same_seed_grows_the_same_forest_and_another_does_not() {
    let (features, _) = step(50);
    let values: Vec<f64> = features
        .chunks(3)
        .map(|row| row[0] + row[1] * row[2])
        .collect();
    let ask = [0.45, 0.2, 0.3];
    let told = |seed| {
        grow(&features, 3, &values, SHAPE, seed)
            .predict(&ask)
            .unwrap()[0]
            .mean
    };
    assert_eq!(told(1).to_bits(), told(1).to_bits());
    assert_ne!(told(1).to_bits(), told(2).to_bits());
}

#[test]
fn one_row_or_constant_features_give_the_mean() {
    let forest = grow(&[1.0, 2.0], 2, &[5.0], SHAPE, 1);
    assert_eq!(forest.predict(&[9.0, 9.0]).unwrap()[0].mean, 5.0);
    let constant = grow(&[1.0; 4], 1, &[1.0, 2.0, 3.0, 6.0], SHAPE, 1);
    let told = constant.predict(&[1.0]).unwrap()[0];
    assert!(
        (told.mean - 3.0).abs() < 1e-12 && (told.within - 3.5).abs() < 1e-12,
        "{told:?}"
    );
}

#[test]
fn weights_count_like_repetitions() {
    let sample = Sample {
        features: &[1.0, 1.0],
        width: 1,
        values: &[0.0, 4.0],
        weights: &[3.0, 1.0],
    };
    let forest = Forest::grow(sample, SHAPE, 1).unwrap();
    assert!((forest.predict(&[1.0]).unwrap()[0].mean - 1.0).abs() < 1e-12);
}

#[test]
fn leaves_keep_their_least_size() {
    let (features, values) = step(800);
    let noisy: Vec<f64> = values
        .iter()
        .enumerate()
        .map(|(row, value)| value + (row % 2) as f64)
        .collect();
    let shape = Shape {
        leaf_min: 8,
        ..SHAPE
    };
    let told = grow(&features, 3, &noisy, shape, 1)
        .predict(&[0.1, 0.5, 0.5])
        .unwrap()[0];
    assert!(
        (0.1..0.4).contains(&told.within),
        "leaves of eight hold the noise's variance, 1/4: {told:?}"
    );
}

#[test]
fn a_large_offset_costs_no_digits() {
    let (features, values) = step(60);
    let shifted: Vec<f64> = values.iter().map(|value| value + 1e9).collect();
    let (near, far) = (
        grow(&features, 3, &values, SHAPE, 1),
        grow(&features, 3, &shifted, SHAPE, 1),
    );
    let ask = [0.48, 0.5, 0.5];
    let (near, far) = (
        near.predict(&ask).unwrap()[0],
        far.predict(&ask).unwrap()[0],
    );
    assert!((near.mean + 1e9 - far.mean).abs() < 1e-5 && (near.between - far.between).abs() < 1e-5);
}

#[test]
fn bad_samples_are_named() {
    let grow = |features: &[f64], width, values: &[f64], weights: &[f64]| {
        Forest::grow(
            Sample {
                features,
                width,
                values,
                weights,
            },
            SHAPE,
            1,
        )
        .map(|_| ())
    };
    assert_eq!(grow(&[], 1, &[], &[]), Err(Fault::Empty));
    assert_eq!(grow(&[1.0], 0, &[1.0], &[1.0]), Err(Fault::Empty));
    assert_eq!(grow(&[1.0, 2.0], 1, &[1.0], &[1.0]), Err(Fault::Shape));
    assert_eq!(grow(&[f64::NAN], 1, &[1.0], &[1.0]), Err(Fault::NotFinite));
    assert_eq!(grow(&[1.0], 1, &[1.0], &[0.0]), Err(Fault::NotFinite));
    let forest = Forest::grow(
        Sample {
            features: &[1.0, 2.0],
            width: 2,
            values: &[1.0],
            weights: &[1.0],
        },
        SHAPE,
        1,
    );
    assert_eq!(forest.unwrap().predict(&[1.0]), Err(Fault::Shape));
}
