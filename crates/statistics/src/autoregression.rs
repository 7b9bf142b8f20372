//! Autoregressive models from autocovariances: the Levinson-Durbin recursion with the order chosen by BIC.

/// An autoregression x_t = sum phi_i x_(t-i) + e_t.
#[derive(Clone, Debug, PartialEq)]
pub struct Autoregression {
    /// phi_1 ... phi_p; empty for white noise.
    pub coefficients: Vec<f64>,
    /// Variance of e_t.
    pub innovation_variance: f64,
    /// n ln(innovation variance) + p ln n, to compare models of one series with.
    pub criterion: f64,
}

impl Autoregression {
    /// sum phi_i: how much of a level is carried on; below 1 for a stationary series.
    pub fn persistence(&self) -> f64 {
        self.coefficients.iter().sum()
    }

    /// Long-run variance: the spectrum at frequency zero, e / (1 - sum phi)^2.
    pub fn long_run_variance(&self) -> f64 {
        let gap = 1.0 - self.persistence();
        self.innovation_variance / (gap * gap)
    }
}

/// Yule-Walker fit of the order, at most `autocovariances.len() - 1`, that minimises BIC (Schwarz 1978).
///
/// `autocovariances[h]` is the lag-h autocovariance of a series of `n`. Orders beyond the first reflection
/// coefficient of magnitude 1 or more (covariances that no stationary series has) are not tried.
pub fn yule_walker(autocovariances: &[f64], n: usize) -> Autoregression {
    let count = n as f64;
    let criterion = |variance: f64, order: usize| count * variance.ln() + order as f64 * count.ln();
    let mut variance = autocovariances[0];
    let mut best = Autoregression {
        coefficients: Vec::new(),
        innovation_variance: variance,
        criterion: criterion(variance, 0),
    };
    if variance <= 0.0 {
        return best;
    }
    let mut phi: Vec<f64> = Vec::with_capacity(autocovariances.len());
    for order in 1..autocovariances.len() {
        let predicted: f64 = phi
            .iter()
            .zip(autocovariances[1..order].iter().rev())
            .map(|(a, b)| a * b)
            .sum();
        let reflection = (autocovariances[order] - predicted) / variance;
        if reflection.is_nan() || reflection.abs() >= 1.0 {
            break;
        }
        let previous = phi.clone();
        for (index, coefficient) in phi.iter_mut().enumerate() {
            *coefficient -= reflection * previous[previous.len() - 1 - index];
        }
        phi.push(reflection);
        variance *= 1.0 - reflection * reflection;
        let value = criterion(variance, order);
        if value < best.criterion {
            best = Autoregression {
                coefficients: phi.clone(),
                innovation_variance: variance,
                criterion: value,
            };
        }
    }
    best
}

/// Autocovariances of lags 0..=`lag_max` around the mean, with divisor n.
pub fn autocovariances(values: &[f64], lag_max: usize) -> Vec<f64> {
    let n = values.len();
    let center = crate::moments::mean(values);
    let deviations: Vec<f64> = values.iter().map(|value| value - center).collect();
    (0..=lag_max)
        .map(|lag| {
            if lag >= n {
                return 0.0;
            }
            deviations
                .iter()
                .zip(&deviations[lag..])
                .map(|(a, b)| a * b)
                .sum::<f64>()
                / n as f64
        })
        .collect()
}
