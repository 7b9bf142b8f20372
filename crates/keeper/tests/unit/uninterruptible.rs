use std::time::{Duration, Instant};

use ascar_keeper::fault::Kind;
use ascar_keeper::interrupt::{Interrupt, Limit};
use ascar_keeper::uninterruptible::{change, harmless};

fn sleep_ms(milliseconds: u64) -> impl FnOnce() -> u64 + Send + 'static {
    move || {
        std::thread::sleep(Duration::from_millis(milliseconds));
        milliseconds
    }
}

#[test]
fn work_in_time_comes_back_with_its_outcome() {
    let interrupt = Interrupt::new().unwrap();
    let limit = Limit::new(&interrupt, Duration::from_secs(60));
    assert_eq!(harmless("work", &limit, sleep_ms(30)).unwrap(), 30);
    assert_eq!(change("work", &limit, sleep_ms(30)).unwrap(), 30);
}

#[test]
fn harmless_work_is_left_at_its_limit() {
    let interrupt = Interrupt::new().unwrap();
    let limit = Limit::new(&interrupt, Duration::from_millis(50));
    let started = Instant::now();
    let fault = harmless("work", &limit, sleep_ms(60_000)).unwrap_err();
    assert_eq!(fault.kind, Kind::Timeout);
    assert_eq!(fault.message, "work: not done within 0.05 s");
    assert!(started.elapsed() < Duration::from_secs(30));
}

#[test]
fn a_change_under_way_may_end_after_its_limit() {
    let interrupt = Interrupt::new().unwrap();
    let limit = Limit::new(&interrupt, Duration::from_millis(50));
    assert_eq!(change("work", &limit, sleep_ms(500)).unwrap(), 500);
    interrupt.raise();
    let limit = Limit::new(&interrupt, Duration::from_secs(60));
    assert_eq!(
        change("work", &limit, sleep_ms(0)).unwrap(),
        0,
        "an error would say that nobody knows what became of it"
    );
    assert!(
        harmless("work", &limit, sleep_ms(0)).is_err(),
        "nothing new is begun"
    );
}

#[test]
fn work_that_panics_is_a_fault() {
    let interrupt = Interrupt::new().unwrap();
    let limit = Limit::new(&interrupt, Duration::from_secs(60));
    let fault = harmless::<()>("work", &limit, || panic!("on purpose")).unwrap_err();
    assert_eq!(fault.kind, Kind::Failed);
}
