//! Noise: foreign requests at the servers' disks, and foreign bursts on their links.

use super::Cluster;
use crate::events::Kind;

impl Cluster {
    /// Schedule the first of each kind.
    pub(super) fn schedule_foreign(&mut self) {
        for server in 0..self.servers.len() as u32 {
            if self.noise.disk_requests_per_s > 0.0 {
                self.schedule_noise(server, Kind::NoiseDisk, self.noise.disk_requests_per_s);
            }
            if self.noise.network_bursts_per_s > 0.0 {
                self.schedule_noise(server, Kind::NoiseNetwork, self.noise.network_bursts_per_s);
            }
        }
    }

    fn schedule_noise(&mut self, server: u32, kind: Kind, per_s: f64) {
        let wait = self.servers[server as usize]
            .random
            .exponential(1e9 / per_s);
        self.events.push(self.now + wait as u64 + 1, kind, server);
    }

    pub(super) fn noise_disk(&mut self, server: u32) {
        let write = self.servers[server as usize].random.unit() < 0.5;
        self.submit_foreign(server, write, self.noise.disk_request_kib * 1024);
        self.schedule_noise(server, Kind::NoiseDisk, self.noise.disk_requests_per_s);
    }

    pub(super) fn noise_network(&mut self, server: u32) {
        let mean = f64::from(self.noise.network_burst_kib) * 1024.0;
        let bytes = self.servers[server as usize].random.exponential(mean) as u64;
        let node = self.clients.len() + server as usize;
        self.network.burst(self.now, node, bytes);
        self.schedule_noise(server, Kind::NoiseNetwork, self.noise.network_bursts_per_s);
    }
}
