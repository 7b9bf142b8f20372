//! A storage device that has run for a while asks for no more memory.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use ascar_simulation::disk::{DeviceRequest, Storage, StorageParts, build};
use ascar_simulation::scenario::{Device, Flash, Mechanical, Memory, Noise, Order, Queue};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as promised by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as promised by the caller.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Keeps 200 requests at the device until `count` more are done.
fn turn(storage: &mut dyn Storage, state: &mut (u64, u64), done: &mut Vec<u32>, count: usize) {
    let (now_ns, draw) = state;
    let mut answered = 0;
    while answered < count {
        storage.advance(*now_ns, done);
        answered += done.len();
        for tag in done.drain(..) {
            *draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let request = DeviceRequest {
                tag,
                write: *draw >> 63 == 0,
                position_bytes: (*draw >> 20) % 40_000 * 1_048_576,
                length_bytes: 500_000 + (*draw >> 10) as u32 % 1_500_000,
            };
            storage.submit(*now_ns, request);
        }
        *now_ns = storage
            .advance(*now_ns, done)
            .expect("requests are under way");
    }
}

#[test]
fn steady_work_allocates_nothing() {
    let noise = Noise {
        service_sd_percent: 10.0,
        ..Noise::default()
    };
    let devices = [
        Device::Mechanical(Mechanical::default()),
        Device::Mechanical(Mechanical {
            write_cache_kib: 8192,
            ..Mechanical::default()
        }),
        Device::Flash(Flash::default()),
        Device::Memory(Memory::default()),
    ];
    for device in &devices {
        for order in [Order::Arrival, Order::Elevator, Order::Nearest] {
            let queue = Queue {
                read_order: order,
                write_order: order,
                ..Queue::default()
            };
            let mut storage = build(StorageParts {
                device,
                queue: &queue,
                noise: &noise,
                seed: 1,
            });
            let (mut state, mut done) = ((0, 1), Vec::with_capacity(1024));
            done.extend(0..200);
            turn(storage.as_mut(), &mut state, &mut done, 10_000);
            let before = ALLOCATIONS.load(Ordering::Relaxed);
            turn(storage.as_mut(), &mut state, &mut done, 5000);
            assert_eq!(
                ALLOCATIONS.load(Ordering::Relaxed),
                before,
                "{device:?} {order:?}"
            );
        }
    }
}
