//! 5,000 schedules of faults (95,000 more in `make test-slow`), each from a seed: messages are lost, late and out of
//! order; the network is cut; the interface and agents die, stop and start again; controllers hang; the disk is full,
//! slow, damaged, emptied, or fails with or without having written; the clock by which the interface names its kills is
//! set. The kill switch, the state on disk, the dead man's switch and the lease are those of the daemons; clock, disk, the
//! thread that waits for it and network are the schedule's. Each seed has a schedule of [`actions`] and ticks as well.
//!
//! What must hold:
//!
//! 1. after a kill no knob is away from its initial value for longer than the lease, and the network's delay, allow;
//! 2. a kill ends by an operator's revive alone, whatever happens to the interface and its disk;
//! 3. a mode is in force only if somebody chose it, or one less careful;
//! 4. a node counts as confirmed only if its knob was back at some time after the kill;
//! 5. when the faults end, every node confirms the kill, it is on disk, and every deed is answered;
//! 6. a kill counts as on disk, and a mode or a revive is answered, only when a new start will find it so. A kill or a deed that was not
//!    answered may be lost with the interface; until then 2 and 3 hold for what is in force.
//!
//! The test's power was tried: each of these changes to the daemons' code makes it fail, after at most 815 schedules
//! where nothing else is said. The number is that of the rule that is broken first.
//!
//! - State: a slot that cannot be read is passed over (2); a checksum is not compared (a panic); the older slot wins (3); a
//!   kill is not in the state (2); two slots that are missing are a first start, whatever the database notes (2).
//! - Slow disk: a kill counts as stored while it waits (6); a deed that could not be written is told as refused before the
//!   next draft, although its own may have been written (6).
//! - Full disk: an unwritten kill spoils no slot (2); neither does an unwritten, more careful mode (3); a revive is in
//!   force although it was not written (2); so is a less careful mode (3); the mode after damage is the one that can
//!   still be read (3).
//! - Confirmation: a hello confirms a kill (4); an answer to another order does (4); who has not confirmed is forgotten
//!   over a start (4).
//! - Knobs: the lease never runs out (1); it outlasts the silence ten times (1); an ended lease is still held (1);
//!   controllers that do not answer keep their lease (1); a beat of a killed session puts nothing back (1, after 97,729).
//! - Actions, each within 4 s: answers to other orders count (7); an action is told before the rest of its nodes
//!   has it (7); the silent are not put back (8); an action has no deadline (9); all nodes are told first, or
//!   the rest is a tick too short (10).
//! - Ticks, likewise: a frame of a closed tick is taken, one is taken into any tick that it names, or a later frame of a
//!   node does not replace the earlier one (11).

mod actions;
mod disk;
mod faults;
mod node;
mod world;

use std::sync::atomic::{AtomicU64, Ordering};

use actions::Actions;
use world::World;

const SCHEDULES: u64 = 5_000;
const THREADS: u64 = 2;

fn run(seed: u64) {
    World::new(seed).run();
    Actions::new(seed).run();
}

#[test]
fn in_schedules_of_faults_the_kill_switch_and_actions_hold() {
    if let Ok(seed) = std::env::var("SEED") {
        return run(seed.parse().unwrap());
    }
    let first = std::env::var("FIRST_SEED").map_or(0, |seed| seed.parse().unwrap());
    let count = std::env::var("SCHEDULES").map_or(SCHEDULES, |count| count.parse().unwrap());
    let end = first + count;
    let next = AtomicU64::new(first);
    let broken = AtomicU64::new(end);
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= broken.load(Ordering::Relaxed) {
                return;
            }
            if std::panic::catch_unwind(|| run(seed)).is_err() {
                broken.fetch_min(seed, Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(work);
        }
    });
    let broken = broken.into_inner();
    assert_eq!(broken, end, "the schedule of seed {broken}");
}
