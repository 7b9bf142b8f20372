//! What goes wrong.

use ascar_interface::state::{Content, SLOTS};

use crate::world::{Interface, NODES, World};

impl World {
    pub fn fault(&mut self) {
        let node = self.random.below(NODES as u64) as usize;
        let length = 200 + self.random.below(8000);
        match self.random.below(13) {
            0 | 1 => self.nodes[node].agent = None,
            2 | 3 => self.nodes[node].stopped_until = self.now + length,
            4 | 5 => self.nodes[node].hangs_until = self.now + length,
            6 => self.cut_until = self.now + length,
            7 => self.clock_off_s = self.random.unit() * 7200.0 - 3600.0,
            8 => {
                let full = self.chance(0.7);
                if let Some(interface) = &mut self.interface {
                    interface.thread.slots.disk().full = full;
                }
            }
            9 => {
                let failing = [None, Some(false), Some(true)][self.random.below(3) as usize];
                if let Some(interface) = &mut self.interface {
                    interface.thread.slots.disk().failing = failing;
                }
            }
            10 | 11 => self.slow_until = self.now + length,
            _ => self.stop_interface(),
        }
    }

    /// It dies; meanwhile its disk may get space, be mended, and be damaged.
    fn stop_interface(&mut self) {
        let Some(Interface { switch, thread }) = self.interface.take() else {
            return;
        };
        self.forget(&switch);
        let mut disk = thread.die(self.chance(0.5));
        disk.full &= self.chance(0.7);
        disk.failing = disk.failing.filter(|_| self.chance(0.7));
        if self.chance(0.3) {
            let slot = self.random.below(SLOTS as u64) as usize;
            let (draw, bit) = (self.random.draw(), self.random.below(8));
            if let Content::Bytes(bytes) = &mut disk.contents[slot]
                && !bytes.is_empty()
            {
                let place = (draw % bytes.len() as u64) as usize;
                if draw >> 63 == 0 {
                    bytes.truncate(place);
                } else {
                    bytes[place] ^= 1 << bit;
                }
            }
        }
        if disk.is_noted && self.chance(0.03) {
            disk.contents = [Content::Missing, Content::Missing];
        }
        self.disk = Some(disk);
        self.up_at = self.now + self.random.below(3000);
    }
}
