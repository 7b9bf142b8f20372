//! Servers seen and turned while a cluster runs.

use crate::common::{random, scenario};
use ascar_simulation::Simulation;
use ascar_simulation::disk::Turned;

const AS_IT_IS: Turned = Turned {
    slots: 128,
    device_depth: 31,
    writes_starved: 2,
    batch: 1,
};

fn mb_per_s(simulation: &mut Simulation, ticks: usize) -> f64 {
    simulation.look_at_servers();
    (0..ticks).for_each(|_| simulation.step());
    simulation
        .look_at_servers()
        .iter()
        .map(|server| server.write_mb_per_s)
        .sum()
}

#[test]
fn looks_add_up_to_the_report() {
    let mut simulation = Simulation::new(&scenario(&random("write"))).unwrap();
    simulation.warm_up();
    let mut written = [0.0; 4];
    for _ in 0..10 {
        simulation.step();
        for (sum, server) in written.iter_mut().zip(simulation.look_at_servers()) {
            // A piece counts at its end.
            assert!((95.0..105.0).contains(&server.device_busy_percent));
            assert!(server.requests_mean > 0.0);
            *sum += server.write_mb_per_s / 10.0;
        }
    }
    for (sum, server) in written.iter().zip(simulation.outcome().servers) {
        assert!((sum / server.write_mb_per_s - 1.0).abs() < 1e-9);
    }
}

#[test]
fn a_queue_that_is_turned_works_otherwise_and_loses_nothing() {
    let mut simulation = Simulation::new(&scenario(&random("write"))).unwrap();
    simulation.step();
    let before = mb_per_s(&mut simulation, 10);
    let one = Turned {
        slots: 1,
        device_depth: 1,
        ..AS_IT_IS
    };
    assert!((0..4).all(|server| simulation.turn_queue(server, one)));
    simulation.step();
    // Torn apart and in no order: far slower.
    let torn = mb_per_s(&mut simulation, 10);
    assert!(torn < 0.8 * before && torn > 0.0, "{before} {torn}");
    assert!((0..4).all(|server| simulation.turn_queue(server, AS_IT_IS)));
    simulation.step();
    let after = mb_per_s(&mut simulation, 10);
    assert!((after / before - 1.0).abs() < 0.1, "{before} {after}");
}

#[test]
fn what_is_out_of_range_is_not_taken() {
    let mut simulation = Simulation::new(&scenario(&random("write"))).unwrap();
    assert!(!simulation.turn_queue(4, AS_IT_IS));
    for wrong in [
        Turned {
            slots: 0,
            ..AS_IT_IS
        },
        Turned {
            batch: Turned::MOST + 1,
            ..AS_IT_IS
        },
    ] {
        assert!(!simulation.turn_queue(0, wrong));
    }
}
