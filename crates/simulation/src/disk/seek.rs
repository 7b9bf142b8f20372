//! The time that a disk's arm takes from one cylinder to another.

use super::NS_PER_MS;
use crate::scenario::Mechanical;

/// Points of the table over the root of the share of the stroke.
const POINTS: usize = 512;

/// `t(d) = track + (full - track) d^exponent` for a share `d` of all cylinders beyond the next one; nothing at all for
/// none.
///
/// With an exponent of a half this is the square root of an arm that speeds up for one half of the way and slows down
/// for the other (Ruemmler and Wilkes, "An introduction to disk drive modeling", IEEE Computer 27(3), 1994). A data
/// sheet's mean over all pairs of cylinders fixes the exponent `e`: it is `track + (full - track) 2 / ((e+1)(e+2))`.
#[derive(Clone, Debug)]
pub(super) struct SeekCurve {
    /// At `(i / (POINTS - 1))^2` of the stroke; between them the curve is nearly straight in the root.
    table_ns: Vec<f64>,
    per_cylinder: f64,
}

impl SeekCurve {
    pub(super) fn new(spec: &Mechanical, cylinders: u64) -> Self {
        let span_ms = (spec.seek_full_ms - spec.seek_track_ms).max(0.0);
        let at = |point: usize| {
            let root = point as f64 / (POINTS - 1) as f64;
            let rise = libm::pow(root, 2.0 * spec.seek_exponent);
            (spec.seek_track_ms + span_ms * rise) * NS_PER_MS
        };
        Self {
            table_ns: (0..POINTS).map(at).collect(),
            per_cylinder: 1.0 / cylinders.saturating_sub(2).max(1) as f64,
        }
    }

    /// The time over `distance` cylinders.
    pub(super) fn time_ns(&self, distance: u64) -> f64 {
        if distance == 0 {
            return 0.0;
        }
        let place = ((distance - 1) as f64 * self.per_cylinder).sqrt() * (POINTS - 1) as f64;
        let point = (place as usize).min(POINTS - 2);
        let (below, above) = (self.table_ns[point], self.table_ns[point + 1]);
        below + (above - below) * (place - point as f64)
    }

    /// A distance beyond which every seek takes at least so long.
    pub(super) fn distance_within(&self, time_ns: f64) -> u64 {
        let point = self.table_ns.partition_point(|at| *at < time_ns);
        if point == POINTS {
            return u64::MAX;
        }
        let root = point as f64 / (POINTS - 1) as f64;
        // One more for what rounding may take away.
        (root * root / self.per_cylinder).ceil() as u64 + 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_curve_goes_through_its_ends() {
        let curve = SeekCurve::new(&Mechanical::default(), 100_000);
        assert_eq!(curve.time_ns(0), 0.0);
        assert!((curve.time_ns(99_999) / 20e6 - 1.0).abs() < 1e-9);
        assert_eq!(curve.time_ns(1), 1e6);
    }

    #[test]
    fn the_mean_over_pairs_is_the_data_sheets() {
        let spec = Mechanical::default();
        let cylinders = 20_000;
        let curve = SeekCurve::new(&spec, cylinders);
        let (mut sum, mut weights) = (0.0, 0.0);
        for distance in 1..cylinders {
            let weight = (cylinders - distance) as f64;
            sum += weight * curve.time_ns(distance);
            weights += weight;
        }
        assert!(
            (sum / weights / 12e6 - 1.0).abs() < 2e-3,
            "{} ns",
            sum / weights
        );
    }

    #[test]
    fn what_lies_beyond_takes_as_long() {
        let curve = SeekCurve::new(&Mechanical::default(), 100_000);
        for step in 0..2_100 {
            let time_ns = f64::from(step) * 1e4;
            let distance = curve.distance_within(time_ns);
            for beyond in [1, 2, 3, 1_000] {
                let farther = distance.saturating_add(beyond);
                assert!(
                    farther > 99_999 || curve.time_ns(farther) >= time_ns,
                    "{time_ns} {distance}"
                );
            }
            // And not much farther than it need be.
            assert!(!(12..=99_999).contains(&distance) || curve.time_ns(distance / 2) <= time_ns);
        }
    }

    #[test]
    fn farther_is_never_sooner() {
        for seek_exponent in [0.3, 0.5, 1.0] {
            let curve = SeekCurve::new(
                &Mechanical {
                    seek_exponent,
                    ..Mechanical::default()
                },
                5000,
            );
            assert!(
                (0..4998).all(|distance| curve.time_ns(distance) <= curve.time_ns(distance + 1))
            );
        }
    }
}
