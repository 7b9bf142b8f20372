//! The memory-backed device.

use super::*;

#[test]
fn it_copies_at_its_rate_and_answers_at_once() {
    let load = Load {
        window: 8,
        seconds: 2.0,
        ..LOAD
    };
    let outcome = run(load, Memory::default(), &Queue::default());
    assert!(
        close(outcome.mb_per_s, 4000.0, 0.01),
        "{}",
        outcome.mb_per_s
    );
    let single = run(
        Load {
            window: 1,
            request_bytes: 4096,
            seconds: 0.1,
            ..LOAD
        },
        Memory::default(),
        &Queue::default(),
    );
    assert!(
        close(single.latency_ms_mean, 0.010 + 4096.0 / 4e6, 0.01),
        "{}",
        single.latency_ms_mean
    );
}
