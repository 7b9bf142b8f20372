//! One extremely randomised tree, flat in a vector.

use ascar_random::Random;

use crate::{Sample, Shape};

/// Where a row ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Leaf {
    pub(crate) mean: f64,
    pub(crate) variance: f64,
}

#[derive(Debug, Clone, Copy)]
enum Node {
    Leaf(Leaf),
    /// Rows whose feature is at most the threshold go to the next node, the others to `right`.
    Split {
        feature: usize,
        threshold: f64,
        right: usize,
    },
}

/// A tree. The left child of a split is the node after it.
#[derive(Debug, Clone)]
pub(crate) struct Tree(Vec<Node>);

impl Tree {
    pub(crate) fn grow(sample: Sample<'_>, shape: Shape, random: &mut Random) -> Tree {
        let rows = sample.values.len();
        let mut members: Vec<usize> = if shape.bootstrap {
            (0..rows)
                .map(|_| random.below(rows as u64) as usize)
                .collect()
        } else {
            (0..rows).collect()
        };
        let mut grower = Grower {
            sample,
            shape,
            random,
            nodes: Vec::with_capacity(2 * rows),
            order: Vec::new(),
        };
        grower.node(&mut members);
        Tree(grower.nodes)
    }

    pub(crate) fn leaf(&self, row: &[f64]) -> Leaf {
        let mut at = 0;
        loop {
            match self.0[at] {
                Node::Leaf(leaf) => return leaf,
                Node::Split {
                    feature,
                    threshold,
                    right,
                } => {
                    at = if row[feature] <= threshold {
                        at + 1
                    } else {
                        right
                    };
                }
            }
        }
    }
}

struct Grower<'a, 'r> {
    sample: Sample<'a>,
    shape: Shape,
    random: &'r mut Random,
    nodes: Vec<Node>,
    /// Features in the order in which they are tried; kept to save allocations.
    order: Vec<usize>,
}

struct Cut {
    feature: usize,
    threshold: f64,
    gain: f64,
}

impl Grower<'_, '_> {
    /// Append the subtree of these rows. Its depth is bounded by the rows: each side of a split has some.
    fn node(&mut self, members: &mut [usize]) {
        let leaf = self.leaf(members);
        let leaf_min = self.shape.leaf_min.max(1);
        let cut = if members.len() < 2 * leaf_min || leaf.variance <= 0.0 {
            None
        } else {
            self.cut(members)
        };
        let Some(cut) = cut else {
            self.nodes.push(Node::Leaf(leaf));
            return;
        };
        let middle = partition(members, |&row| {
            self.feature(row, cut.feature) <= cut.threshold
        });
        let at = self.nodes.len();
        self.nodes.push(Node::Leaf(leaf)); // replaced below, when it is known where the right side begins
        let (left, right) = members.split_at_mut(middle);
        self.node(left);
        let start = self.nodes.len();
        self.node(right);
        self.nodes[at] = Node::Split {
            feature: cut.feature,
            threshold: cut.threshold,
            right: start,
        };
    }

    /// The best of `tries` random cuts (table 1, Split_a_node): each of another feature that is not constant
    /// here, at a threshold uniform between its least and greatest value.
    fn cut(&mut self, members: &[usize]) -> Option<Cut> {
        self.order.clear();
        self.order.extend(0..self.sample.width);
        let mut best: Option<Cut> = None;
        let mut tried = 0;
        for taken in 0..self.sample.width {
            let left = (self.sample.width - taken) as u64;
            let swap = taken + self.random.below(left) as usize;
            self.order.swap(taken, swap);
            let feature = self.order[taken];
            let (low, high) = self.range(members, feature);
            if low >= high {
                continue;
            }
            // Below `high`, so that neither side is empty.
            let threshold = (low + self.random.unit() * (high - low)).min(high.next_down());
            if let Some(gain) = self.gain(members, feature, threshold)
                && best.as_ref().is_none_or(|best| gain > best.gain)
            {
                best = Some(Cut {
                    feature,
                    threshold,
                    gain,
                });
            }
            tried += 1;
            if tried >= self.shape.tries.max(1) {
                break;
            }
        }
        best
    }

    fn range(&self, members: &[usize], feature: usize) -> (f64, f64) {
        members
            .iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &row| {
                let value = self.feature(row, feature);
                (low.min(value), high.max(value))
            })
    }

    /// How much of the weighted sum of squares a cut removes; None where a side would be too small.
    fn gain(&self, members: &[usize], feature: usize, threshold: f64) -> Option<f64> {
        let offset = self.sample.values[members[0]];
        let (mut weight, mut sum, mut count) = ([0.0; 2], [0.0; 2], [0_usize; 2]);
        for &row in members {
            let side = usize::from(self.feature(row, feature) > threshold);
            weight[side] += self.sample.weights[row];
            sum[side] += self.sample.weights[row] * (self.sample.values[row] - offset);
            count[side] += 1;
        }
        if count[0].min(count[1]) < self.shape.leaf_min.max(1) {
            return None;
        }
        let difference = sum[0] / weight[0] - sum[1] / weight[1];
        Some(weight[0] * weight[1] / (weight[0] + weight[1]) * difference * difference)
    }

    fn leaf(&self, members: &[usize]) -> Leaf {
        let offset = self.sample.values[members[0]];
        let (mut weight, mut sum) = (0.0, 0.0);
        for &row in members {
            weight += self.sample.weights[row];
            sum += self.sample.weights[row] * (self.sample.values[row] - offset);
        }
        let mean = sum / weight;
        let squares: f64 = members
            .iter()
            .map(|&row| {
                self.sample.weights[row] * (self.sample.values[row] - offset - mean).powi(2)
            })
            .sum();
        Leaf {
            mean: offset + mean,
            variance: squares / weight,
        }
    }

    fn feature(&self, row: usize, feature: usize) -> f64 {
        self.sample.features[row * self.sample.width + feature]
    }
}

/// Bring the members that satisfy `left` to the front, and count them.
fn partition(members: &mut [usize], left: impl Fn(&usize) -> bool) -> usize {
    let mut middle = 0;
    for at in 0..members.len() {
        if left(&members[at]) {
            members.swap(middle, at);
            middle += 1;
        }
    }
    middle
}
