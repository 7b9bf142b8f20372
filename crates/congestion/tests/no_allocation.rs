//! Once a controller is made, it allocates nothing.

#[path = "behaviour/common.rs"]
mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

use ascar_congestion::{
    Admission, AnyController, Controller, Deployment, Extended, Extensions, Faithful, InFlight,
    RIVAL_NAMES, Reply, RuleSet, Sending, Stream,
};
use common::MADE;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: hands everything on to the system's allocator, unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise is handed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is handed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations() -> u64 {
    ALLOCATIONS.with(Cell::get)
}

#[test]
fn streams_run_without_allocating() {
    let deployment = Arc::new(Deployment::new(
        RuleSet::parse(MADE).expect("a set that a search made"),
    ));
    let extended = Extended::new(Arc::clone(&deployment), Arc::new(Extensions::default()), 1);
    let mut controllers: Vec<AnyController> = RIVAL_NAMES
        .iter()
        .filter_map(|name| AnyController::rival(name, 1))
        .collect();
    controllers.push(AnyController::Faithful(Faithful::new(deployment)));
    controllers.push(AnyController::Extended(extended.expect("the defaults")));
    assert!(allocations() > 0, "the counter counts");
    for controller in &mut controllers {
        let before = allocations();
        for at in 1..=100_000_u64 {
            let now_us = at * 1_700;
            let sent_us = controller.reserve(now_us, 4096).min(now_us) - at % 1_000;
            let in_flight = InFlight {
                requests: 20,
                bytes: 20 * 4096,
            };
            controller.on_reply(&Reply {
                sent_us,
                now_us,
                bytes: 4096,
                in_flight,
                ..Reply::default()
            });
            if at % 5_000 == 0 {
                controller.on_timeout(sent_us, now_us);
            }
        }
        assert_eq!(allocations(), before);
        hold(Stream::new(controller.clone()));
    }
}

/// The same of a stream that its client holds.
fn hold(mut stream: Stream) {
    let sending = Sending {
        bytes: 4096,
        ..Sending::default()
    };
    let before = allocations();
    let mut now_us = 1_700;
    for at in 1..=10_000_u64 {
        while let Ok(Admission::At(at_us)) = stream.ask(now_us, 4096) {
            now_us = at_us;
        }
        let sent = stream.sent(now_us, &sending).expect("it has its place");
        now_us += 900;
        let ended = match at % 500 {
            0 => stream.timed_out(&sent, now_us),
            _ => stream.replied(&sent, now_us),
        };
        ended.expect("it is in flight");
    }
    assert_eq!(allocations(), before);
    assert_eq!(stream.replies(), 9_980);
}
