//! Extremely randomised regression trees (Geurts, Ernst and Wehenkel, "Extremely randomized trees", Machine
//! Learning 63, 2006, table 1), with a mean and a variance for every prediction.
//!
//! Pure: no I/O, no clock, the seed is an argument. The same sample, shape and seed give the same forest.

mod tree;

use ascar_random::Random;
use tree::Tree;

/// What a forest is grown from: `n` rows of `width` features, row by row.
#[derive(Debug, Clone, Copy)]
pub struct Sample<'a> {
    /// `n * width` features; finite.
    pub features: &'a [f64],
    /// Features a row.
    pub width: usize,
    /// `n` values to predict.
    pub values: &'a [f64],
    /// `n` weights, above zero: the inverse of what is known of each value's variance, or all one.
    pub weights: &'a [f64],
}

/// How a forest is grown.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Trees.
    pub trees: usize,
    /// A node of fewer rows than twice this is not split, and no side of a split holds fewer.
    pub leaf_min: usize,
    /// Features tried at each node, each at one random threshold (K of table 1).
    pub tries: usize,
    /// Whether each tree sees a bootstrap sample of the rows instead of all.
    pub bootstrap: bool,
}

/// Why a forest cannot be grown or asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// There is no row, or no feature.
    Empty,
    /// The lengths of features, values and weights do not agree.
    Shape,
    /// A feature, value or weight is not finite, or a weight is not above zero.
    NotFinite,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Fault::Empty => "a forest needs at least one row, one feature and one tree",
            Fault::Shape => {
                "features must be rows * width numbers, with one value and one weight a row"
            }
            Fault::NotFinite => "features, values and weights must be finite, weights above zero",
        })
    }
}

impl std::error::Error for Fault {}

/// A prediction: the mean of the trees, and how sure they are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prediction {
    /// Mean of the trees' predictions.
    pub mean: f64,
    /// Variance between the trees' predictions: what more data would settle.
    pub between: f64,
    /// Mean variance inside the leaves: noise, and structure that the leaves smooth over.
    pub within: f64,
}

/// A forest.
#[derive(Debug, Clone)]
pub struct Forest {
    width: usize,
    trees: Vec<Tree>,
}

impl Forest {
    /// Grow a forest.
    ///
    /// # Errors
    /// [`Fault`] where the sample is empty, misshapen or not finite.
    pub fn grow(sample: Sample<'_>, shape: Shape, seed: u64) -> Result<Forest, Fault> {
        let rows = sample.values.len();
        if rows == 0 || sample.width == 0 || shape.trees == 0 {
            return Err(Fault::Empty);
        }
        if sample.features.len() != rows * sample.width || sample.weights.len() != rows {
            return Err(Fault::Shape);
        }
        let finite = |numbers: &[f64]| numbers.iter().all(|number| number.is_finite());
        let weighty = sample
            .weights
            .iter()
            .all(|&weight| weight > 0.0 && weight.is_finite());
        if !finite(sample.features) || !finite(sample.values) || !weighty {
            return Err(Fault::NotFinite);
        }
        let mut random = Random::new(seed);
        let trees = (0..shape.trees)
            .map(|_| Tree::grow(sample, shape, &mut random))
            .collect();
        Ok(Forest {
            width: sample.width,
            trees,
        })
    }

    /// Features a row.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// One prediction a row.
    ///
    /// # Errors
    /// [`Fault::Shape`] where `features` is not a whole number of rows.
    pub fn predict(&self, features: &[f64]) -> Result<Vec<Prediction>, Fault> {
        if !features.len().is_multiple_of(self.width) {
            return Err(Fault::Shape);
        }
        Ok(features
            .chunks_exact(self.width)
            .map(|row| self.predict_row(row))
            .collect())
    }

    fn predict_row(&self, row: &[f64]) -> Prediction {
        let count = self.trees.len() as f64;
        let (mut sum, mut squares, mut within) = (0.0, 0.0, 0.0);
        // Around the first tree's answer, so that a large common offset does not cancel digits away.
        let offset = self.trees[0].leaf(row).mean;
        for tree in &self.trees {
            let leaf = tree.leaf(row);
            let distance = leaf.mean - offset;
            sum += distance;
            squares += distance * distance;
            within += leaf.variance;
        }
        let mean = sum / count;
        Prediction {
            mean: offset + mean,
            between: (squares / count - mean * mean).max(0.0),
            within: within / count,
        }
    }
}

#[cfg(test)]
mod tests;
