//! Autoregressive models of noise, with the order chosen by an information criterion.

/// An autoregression x_t = sum phi_i x_(t-i) + e_t.
#[derive(Clone, Debug, PartialEq)]
pub struct Autoregression {
    /// phi_1 ... phi_p; empty for white noise.
    pub coefficients: Vec<f64>,
    /// Variance of e_t.
    pub innovation_variance: f64,
    /// n ln(innovation variance) plus the price of the order, to compare models of one series with.
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
        extend(&mut phi, reflection);
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

/// Models this close to the best one's criterion are as good as it (Burnham and Anderson 2002, section 2.6).
const CRITERION_TIE: f64 = 2.0;

/// Burg's fit (1967) with the order, at most `order_max`, chosen by n ln(variance) + 2 p ln ln n.
///
/// Always stationary, and less biased than Yule-Walker in short, strongly correlated series; the price of an order
/// is Hannan and Quinn's (1979). Of orders that are as good as the best the most persistent is taken, for too
/// little correlation is the dangerous mistake. `deviations` have mean 0.
pub fn burg(deviations: &[f64], order_max: usize) -> Autoregression {
    let n = deviations.len();
    let count = n as f64;
    let price = 2.0 * count.max(3.0).ln().ln().max(1.0);
    let criterion = |variance: f64, order: usize| count * variance.ln() + order as f64 * price;
    let mut variance = deviations.iter().map(|value| value * value).sum::<f64>() / count;
    let mut models = vec![Autoregression {
        coefficients: Vec::new(),
        innovation_variance: variance,
        criterion: criterion(variance, 0),
    }];
    let (mut forward, mut backward) = (deviations.to_vec(), deviations.to_vec());
    let mut phi: Vec<f64> = Vec::with_capacity(order_max);
    for order in 1..=order_max.min(n.saturating_sub(1)) {
        let (mut product, mut power) = (0.0, 0.0);
        for (ahead, behind) in forward[order..].iter().zip(&backward[order - 1..]) {
            product += ahead * behind;
            power += ahead * ahead + behind * behind;
        }
        // Nothing left to predict: the series is an exact recursion (or constant).
        if power <= 0.0 || variance <= 0.0 {
            break;
        }
        let reflection = 2.0 * product / power;
        if reflection.abs() >= 1.0 {
            break;
        }
        extend(&mut phi, reflection);
        variance *= 1.0 - reflection * reflection;
        for t in (order..n).rev() {
            let (ahead, behind) = (forward[t], backward[t - 1]);
            forward[t] = ahead - reflection * behind;
            backward[t] = behind - reflection * ahead;
        }
        models.push(Autoregression {
            coefficients: phi.clone(),
            innovation_variance: variance,
            criterion: criterion(variance, order),
        });
    }
    let least = models
        .iter()
        .map(|model| model.criterion)
        .fold(f64::INFINITY, f64::min);
    models
        .into_iter()
        .filter(|model| model.criterion <= least + CRITERION_TIE)
        .max_by(|a, b| a.persistence().total_cmp(&b.persistence()))
        .unwrap_or(Autoregression {
            coefficients: Vec::new(),
            innovation_variance: variance,
            criterion: least,
        })
}

/// Durbin's step: the coefficients of the next order from its reflection coefficient.
fn extend(phi: &mut Vec<f64>, reflection: f64) {
    let last = phi.len();
    let previous = phi.clone();
    for (index, coefficient) in phi.iter_mut().enumerate() {
        *coefficient -= reflection * previous[last - 1 - index];
    }
    phi.push(reflection);
}

/// What the autoregression cannot predict: e_t for t = p .. n.
pub fn residuals(deviations: &[f64], model: &Autoregression) -> Vec<f64> {
    let order = model.coefficients.len();
    (order..deviations.len())
        .map(|t| {
            let predicted: f64 = model
                .coefficients
                .iter()
                .zip(deviations[..t].iter().rev())
                .map(|(phi, x)| phi * x)
                .sum();
            deviations[t] - predicted
        })
        .collect()
}
