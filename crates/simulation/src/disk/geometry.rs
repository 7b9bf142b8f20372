//! Where the bytes of a disk lie: zones, cylinders, angles.

use super::NS_PER_MS;
use crate::scenario::Mechanical;

/// Surfaces of the disk: one platter.
const HEADS: f64 = 2.0;

#[derive(Clone, Debug)]
struct Zone {
    first_byte: u64,
    first_cylinder: f64,
    ns_per_byte: f64,
    cylinders_per_byte: f64,
}

/// From a byte's address to its cylinder and its angle.
///
/// The zones are equally wide; their rates fall evenly from the outermost to the innermost. Tracks are skewed by what
/// a change of head or cylinder takes, so that a sequential transfer never waits for the platter. Here that skew is
/// spread evenly along the track: the angle of a byte is the time in which its zone streams up to it.
#[derive(Clone, Debug)]
pub(super) struct Geometry {
    zones: Vec<Zone>,
    capacity_bytes: u64,
    cylinders: u64,
    revolution_ns: f64,
    turns_per_ns: f64,
}

/// Where a byte lies. The angle is the part of a turn since its track's beginning passed below the head.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Place {
    pub(super) cylinder: u64,
    pub(super) angle: f64,
}

/// The fraction of a number that is not negative.
fn fraction(value: f64) -> f64 {
    value - (value as u64) as f64
}

impl Geometry {
    pub(super) fn new(spec: &Mechanical) -> Self {
        let zones = spec.zones.max(1) as usize;
        let capacity_bytes = (spec.capacity_gb * 1e9) as u64;
        let revolution_ns = 60_000.0 * NS_PER_MS / spec.rpm;
        let fall = (1.0 - spec.inner_speed) / (zones - 1).max(1) as f64;
        let rates: Vec<f64> = (0..zones)
            .map(|zone| spec.read_mb_per_s * 1e-3 * (1.0 - fall * zone as f64))
            .collect();
        let cylinder_bytes = |rate: f64| rate * revolution_ns * HEADS;
        let cylinders_per_zone =
            capacity_bytes as f64 / rates.iter().map(|rate| cylinder_bytes(*rate)).sum::<f64>();
        let mut first_byte = 0.0;
        let zones: Vec<Zone> = rates
            .iter()
            .enumerate()
            .map(|(index, rate)| {
                let zone = Zone {
                    first_byte: first_byte as u64,
                    first_cylinder: index as f64 * cylinders_per_zone,
                    ns_per_byte: 1.0 / rate,
                    cylinders_per_byte: 1.0 / cylinder_bytes(*rate),
                };
                first_byte += cylinders_per_zone * cylinder_bytes(*rate);
                zone
            })
            .collect();
        let cylinders = (cylinders_per_zone * zones.len() as f64).ceil() as u64;
        Self {
            zones,
            capacity_bytes,
            cylinders,
            revolution_ns,
            turns_per_ns: 1.0 / revolution_ns,
        }
    }

    pub(super) fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    pub(super) fn cylinders(&self) -> u64 {
        self.cylinders
    }

    pub(super) fn revolution_ns(&self) -> f64 {
        self.revolution_ns
    }

    fn zone(&self, position: u64) -> usize {
        self.zones
            .partition_point(|zone| zone.first_byte <= position)
            .max(1)
            - 1
    }

    /// The cylinder of a byte, and its angle.
    pub(super) fn place(&self, position: u64) -> Place {
        let zone = &self.zones[self.zone(position)];
        let offset = (position - zone.first_byte) as f64;
        Place {
            cylinder: (zone.first_cylinder + offset * zone.cylinders_per_byte) as u64,
            angle: fraction(offset * zone.ns_per_byte * self.turns_per_ns),
        }
    }

    /// The angle of what is below the head.
    pub(super) fn angle_at(&self, now_ns: f64) -> f64 {
        fraction(now_ns * self.turns_per_ns)
    }

    /// The time in which `bytes` from `position` on are read.
    pub(super) fn streaming_ns(&self, position: u64, bytes: u64) -> f64 {
        let mut zone = self.zone(position);
        let (mut at, end, mut time_ns) = (position, position + bytes, 0.0);
        loop {
            let zone_end = self
                .zones
                .get(zone + 1)
                .map_or(u64::MAX, |next| next.first_byte);
            time_ns += (end.min(zone_end) - at) as f64 * self.zones[zone].ns_per_byte;
            if end <= zone_end {
                return time_ns;
            }
            (at, zone) = (zone_end, zone + 1);
        }
    }

    /// The bytes that are read in `time_ns` from `position` on, at its zone's rate.
    pub(super) fn streamed_bytes(&self, position: u64, time_ns: f64) -> u64 {
        (time_ns / self.zones[self.zone(position)].ns_per_byte) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn geometry() -> Geometry {
        Geometry::new(&Mechanical::default())
    }

    #[test]
    fn the_zones_hold_the_disk() {
        let geometry = geometry();
        assert_eq!(geometry.zones.len(), 24);
        assert_eq!(geometry.place(0).cylinder, 0);
        let last = geometry.place(geometry.capacity_bytes() - 1).cylinder;
        assert!(
            geometry.cylinders() - last <= 2,
            "{last} of {}",
            geometry.cylinders()
        );
    }

    #[test]
    fn each_zone_has_its_rate() {
        let geometry = geometry();
        let mb_per_s = |position| 1e9 / geometry.streaming_ns(position, 1_000_000);
        assert!((mb_per_s(0) / 113.0 - 1.0).abs() < 1e-9, "{}", mb_per_s(0));
        assert!((mb_per_s(499_000_000_000) / 56.5 - 1.0).abs() < 1e-9);
        let rates: Vec<f64> = geometry
            .zones
            .iter()
            .map(|zone| mb_per_s(zone.first_byte))
            .collect();
        assert!(rates.windows(2).all(|pair| pair[0] > pair[1]), "{rates:?}");
    }

    #[test]
    fn one_zone_and_one_rate_are_possible() {
        let flat = Geometry::new(&Mechanical {
            zones: 1,
            inner_speed: 1.0,
            ..Mechanical::default()
        });
        assert_eq!(
            flat.streaming_ns(0, 1_000_000),
            flat.streaming_ns(400_000_000_000, 1_000_000)
        );
    }

    proptest! {
        #[test]
        fn streaming_adds_up(start in 0_u64..400_000_000_000, first in 0_u64..60_000_000_000, then in 0_u64..1_000_000_000) {
            let geometry = geometry();
            let parts = geometry.streaming_ns(start, first) + geometry.streaming_ns(start + first, then);
            let whole = geometry.streaming_ns(start, first + then);
            prop_assert!((parts - whole).abs() <= 1e-9 * whole.max(1.0));
        }

        #[test]
        fn cylinders_rise_and_angles_lie_within_a_turn(position in 0_u64..499_000_000_000) {
            let geometry = geometry();
            prop_assert!(geometry.place(position).cylinder <= geometry.place(position + 1_000_000).cylinder);
            prop_assert!((0.0..1.0).contains(&geometry.place(position).angle));
        }

        #[test]
        fn what_streams_in_a_time_takes_that_time(position in 0_u64..499_000_000_000, bytes in 1_u64..1_000_000) {
            let geometry = geometry();
            // Within one zone; a zone's end is passed at the next zone's rate.
            prop_assume!(geometry.zone(position) == geometry.zone(position + bytes));
            let again = geometry.streamed_bytes(position, geometry.streaming_ns(position, bytes));
            prop_assert!(bytes.abs_diff(again) <= 1);
        }
    }
}
