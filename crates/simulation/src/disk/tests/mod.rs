//! Physics of the devices and of the queue before them.

mod closed_loop;
mod flash;
mod mechanical;
mod memory;
mod queue;

use super::{DeviceCounters, DeviceRequest, Storage, StorageParts, build};
use crate::scenario::{Device, Flash, Mechanical, Memory, Noise, Order, Queue};
use closed_loop::{Load, Outcome};

/// One stream at random places of the first tenth of the device.
const LOAD: Load = Load {
    write_percent: 0,
    random: true,
    request_bytes: 1 << 20,
    streams: 1,
    window: 1,
    stretch_bytes: 50_000_000_000,
    step_bytes: 0,
    seconds: 60.0,
};

fn quiet() -> Noise {
    Noise::default()
}

fn station(device: &Device, queue: &Queue) -> Box<dyn Storage> {
    build(StorageParts {
        device,
        queue,
        noise: &quiet(),
        seed: 1,
    })
}

fn run(load: Load, device: impl Into<Device>, queue: &Queue) -> Outcome {
    load.run(station(&device.into(), queue).as_mut(), 7)
}

impl From<Mechanical> for Device {
    fn from(spec: Mechanical) -> Device {
        Device::Mechanical(spec)
    }
}

impl From<Flash> for Device {
    fn from(spec: Flash) -> Device {
        Device::Flash(spec)
    }
}

impl From<Memory> for Device {
    fn from(spec: Memory) -> Device {
        Device::Memory(spec)
    }
}

fn close(value: f64, expected: f64, share: f64) -> bool {
    (value / expected - 1.0).abs() <= share
}

/// All tags that come back until nothing is under way, and when the last one did.
fn drain(storage: &mut dyn Storage, from_ns: u64) -> (Vec<u32>, u64) {
    let (mut done, mut now_ns) = (Vec::new(), from_ns);
    while let Some(next_ns) = storage.advance(now_ns, &mut done) {
        assert!(next_ns > now_ns, "{next_ns} is not after {now_ns}");
        now_ns = next_ns;
    }
    (done, now_ns)
}
