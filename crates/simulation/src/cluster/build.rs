//! A cluster as a scenario describes it, at time 0: as many clients, servers and threads as it counts, each with its
//! own settings or those of the scenario.

use std::sync::Arc;

use ascar_congestion::{Deployment, InFlight};
use ascar_random::Random;

use super::control::ControllerMaker;
use super::locks::LockTable;
use super::metadata::MetadataServer;
use super::summary::{Counters, GroupSums};
use super::threads::Thread;
use super::{Barrier, Client, Cluster, Server, Stream, Threads, nanos};
use crate::disk::{self, StorageParts};
use crate::events::{Events, Kind};
use crate::files::{Allocator, Files, Stripes};
use crate::lists::List;
use crate::network::Network;
use crate::page_cache::PageCache;
use crate::program::Program;
use crate::requests::Requests;
use crate::scenario::{ClientGroup, Control, Scenario, ScenarioError, ServerGroup, Workload};

/// What random draws are for; each part has a stream of its own.
#[derive(Clone, Copy)]
enum Part {
    Device = 1,
    Layout,
    Server,
    Sizes,
    Thread,
    Start,
    Controller,
    Metadata,
}

/// Threads begin within so long of each other, as started processes do.
const START_SPREAD_NS: u64 = 2_000_000;

const MIB: f64 = 1_048_576.0;

/// A checked scenario's cluster.
pub(crate) fn build(scenario: &Scenario) -> Result<Cluster, ScenarioError> {
    let builder = Builder { scenario };
    let mut cluster = builder.empty();
    builder.add_clients(&mut cluster)?;
    cluster.locks = LockTable::new(
        &scenario.locks,
        cluster.files.locks(),
        scenario.client_count() as u32,
    );
    cluster.files.lay_out();
    builder.fill_page_caches(&mut cluster);
    builder.add_threads(&mut cluster);
    cluster.schedule_faults();
    cluster.schedule_foreign();
    Ok(cluster)
}

struct Builder<'a> {
    scenario: &'a Scenario,
}

impl Builder<'_> {
    fn random(&self, part: Part, number: u64) -> Random {
        Random::of(self.scenario.seed, &[part as u64, number])
    }

    fn groups_of_servers(&self) -> impl Iterator<Item = &ServerGroup> {
        self.scenario
            .servers
            .iter()
            .flat_map(|group| (0..group.count).map(move |_| group))
    }

    fn groups_of_clients(&self) -> impl Iterator<Item = &ClientGroup> {
        self.scenario
            .clients
            .iter()
            .flat_map(|group| (0..group.count).map(move |_| group))
    }

    fn workload(&self, group: &ClientGroup) -> usize {
        let named = |workload: &Workload| workload.name == group.workload;
        self.scenario
            .workloads
            .iter()
            .position(named)
            .expect("the check has found the workload")
    }

    fn empty(&self) -> Cluster {
        let scenario = self.scenario;
        let servers: Vec<Server> = self
            .groups_of_servers()
            .enumerate()
            .map(|(number, group)| self.server(number as u64, group))
            .collect();
        let allocators = self
            .groups_of_servers()
            .enumerate()
            .map(|(number, group)| {
                let random = self.random(Part::Layout, number as u64);
                Allocator::new(
                    &group.layout,
                    servers[number].storage.capacity_bytes(),
                    random,
                )
            })
            .collect();
        let stripes = Stripes {
            servers: servers.len() as u32,
            count: scenario.striping.count.min(servers.len() as u32),
            size: u64::from(scenario.striping.size_kib) * 1024,
        };
        let default = scenario.network.link.bandwidth_mb_per_s;
        let speed = |link: &Option<crate::scenario::Link>| {
            link.as_ref()
                .map_or(default, |link| link.bandwidth_mb_per_s)
        };
        let speeds: Vec<f64> = self
            .groups_of_clients()
            .map(|group| speed(&group.link))
            .chain(self.groups_of_servers().map(|group| speed(&group.link)))
            .collect();
        let streams = scenario.client_count() * servers.len();
        Cluster {
            now: 0,
            events: Events::default(),
            requests: Requests::default(),
            network: Network::new(&scenario.network, &speeds, streams),
            files: Files::new(stripes, allocators),
            programs: scenario.workloads.iter().map(Program::new).collect(),
            barriers: scenario
                .workloads
                .iter()
                .map(|_| Barrier::default())
                .collect(),
            clients: Vec::with_capacity(scenario.client_count()),
            streams: Vec::with_capacity(streams),
            threads: Threads::default(),
            servers,
            locks: LockTable::default(),
            metadata: MetadataServer::new(&scenario.metadata),
            deployments: Vec::new(),
            controls: Vec::new(),
            recorder: None,
            request_recorder: None,
            failures: scenario.failures.clone(),
            noise: scenario.noise.clone(),
            timeout_ns: nanos(scenario.control.timeout_s),
            counters: Counters::default(),
            held_back: Vec::new(),
            done: Vec::new(),
        }
    }

    fn server(&self, number: u64, group: &ServerGroup) -> Server {
        let storage = disk::build(StorageParts {
            device: &group.device,
            queue: &group.queue,
            noise: &self.scenario.noise,
            seed: self.random(Part::Device, number).draw(),
        });
        Server {
            storage,
            due_ns: None,
            workers_free: group.threads,
            arrived: List::default(),
            request_cpu_ns: (group.request_cpu_us * 1e3) as u64,
            dead: false,
            present: 0,
            present_since: 0,
            present_area: 0,
            random: self.random(Part::Server, number),
        }
    }

    /// Clients with their files and streams. Shared sets are made once a workload.
    fn add_clients(&self, cluster: &mut Cluster) -> Result<(), ScenarioError> {
        let mut shared: Vec<Vec<Option<u32>>> = self
            .scenario
            .workloads
            .iter()
            .map(|workload| vec![None; workload.filesets.len()])
            .collect();
        let locks_a_file = match (
            &self.scenario.locks.enabled,
            &self.scenario.locks.whole_file,
        ) {
            (false, _) => 0,
            (true, true) => 1,
            (true, false) => cluster.files.stripes.count,
        };
        let metadata_control = self.scenario.metadata.control.as_ref();
        let metadata_maker = metadata_control
            .map(|control| ControllerMaker::new(control, None))
            .transpose()?;
        for group in &self.scenario.clients {
            let control = group.control.as_ref().unwrap_or(&self.scenario.control);
            let maker = ControllerMaker::new(control, group.rogue.then_some(group.rogue_window))?;
            cluster.deployments.push(maker.deployment.clone());
            cluster.controls.push(ClientControl {
                control: control.clone(),
                rogue_window: group.rogue.then_some(group.rogue_window),
                clients: cluster.clients.len()..cluster.clients.len() + group.count as usize,
                of_metadata: false,
            });
            let workload = self.workload(group);
            for _ in 0..group.count {
                let number = cluster.clients.len() as u64;
                let mut random = self.random(Part::Sizes, number);
                let mut sets = Vec::new();
                for (index, set) in self.scenario.workloads[workload]
                    .filesets
                    .iter()
                    .enumerate()
                {
                    let known = shared[workload][index].filter(|_| set.shared);
                    let made = known
                        .unwrap_or_else(|| cluster.files.add_set(set, locks_a_file, &mut random));
                    shared[workload][index] = Some(made);
                    sets.push(made);
                }
                cluster.clients.push(client(group, sets));
                self.add_streams(cluster, (number, group.cache.coalesce), &maker);
                let obeys = metadata_maker.as_ref().filter(|_| !group.rogue);
                let seed = self.random(Part::Metadata, number).draw();
                cluster.metadata.add_client(obeys, seed);
            }
        }
        if let (Some(control), Some(maker)) = (metadata_control, metadata_maker) {
            cluster.deployments.push(maker.deployment.clone());
            cluster.controls.push(ClientControl {
                control: control.clone(),
                rogue_window: None,
                clients: 0..cluster.clients.len(),
                of_metadata: true,
            });
        }
        Ok(())
    }

    /// A client's page cache holds the files that the client has prepared, the last ones before all others.
    fn fill_page_caches(&self, cluster: &mut Cluster) {
        for client in &mut cluster.clients {
            for &set in &client.sets {
                let set = &cluster.files.sets[set as usize];
                if set.shared {
                    continue;
                }
                for &file in &set.existing {
                    let file = &mut cluster.files.files[file as usize];
                    client.page_cache.use_whole(file);
                }
            }
        }
    }

    fn add_streams(
        &self,
        cluster: &mut Cluster,
        (client, coalesces): (u64, bool),
        maker: &ControllerMaker<'_>,
    ) {
        let servers = cluster.servers.len() as u64;
        for server in 0..servers {
            let seed = self
                .random(Part::Controller, client * servers + server)
                .draw();
            let (window_min, window_max) = maker.bounds();
            cluster.streams.push(Stream {
                controller: maker.make(seed),
                window_min,
                window_max,
                waiting: List::default(),
                waiting_count: 0,
                turns: maker.turns(),
                sequences: maker.sequences(),
                paced: coalesces.then(Box::default),
                in_flight: InFlight::default(),
                dirty: 0,
                dirty_waiters: List::default(),
                partial: None,
                read_bytes: 0,
                written_bytes: 0,
            });
        }
    }

    /// Threads of all clients; ranks go through a workload's clients in order, all threads of one before the next.
    fn add_threads(&self, cluster: &mut Cluster) {
        let mut ranks = vec![0; self.scenario.workloads.len()];
        let mut client = 0;
        for (number, group) in self.scenario.clients.iter().enumerate() {
            let workload = self.workload(group);
            let counted = cluster.counters.groups.len() as u32;
            let groups = cluster.programs[workload].groups.iter().zip(0..);
            let sums = groups.map(|(group, threads)| {
                let moves_data = group.steps.iter().any(|step| step.operation.is_on_data());
                GroupSums::new((number as u32, threads), moves_data)
            });
            cluster.counters.groups.extend(sums);
            for _ in 0..group.count {
                cluster.barriers[workload].needed += cluster.programs[workload].barrier_threads;
                self.add_threads_of(
                    cluster,
                    (client, workload as u32, counted),
                    (group, &mut ranks[workload]),
                );
                client += 1;
            }
        }
    }

    fn add_threads_of(
        &self,
        cluster: &mut Cluster,
        (client, program, counted): (u32, u32, u32),
        (group, rank): (&ClientGroup, &mut u32),
    ) {
        let mut number = 0;
        for (index, group_of_threads) in
            cluster.programs[program as usize].groups.iter().enumerate()
        {
            for _ in 0..group_of_threads.instances {
                let thread = cluster.threads.0.len() as u32;
                let mut made = Thread::new(
                    client,
                    program,
                    self.random(Part::Thread, u64::from(thread)),
                );
                made.group = index as u32;
                made.counted = counted + index as u32;
                made.number = number;
                made.rank = *rank;
                cluster.threads.0.push(made);
                let spread = self
                    .random(Part::Start, u64::from(thread))
                    .below(START_SPREAD_NS);
                cluster
                    .events
                    .push(nanos(group.start_s) + spread, Kind::Thread, thread);
                number += 1;
                *rank += 1;
            }
        }
    }
}

fn client(group: &ClientGroup, sets: Vec<u32>) -> Client {
    let cache = &group.cache;
    Client {
        request_bytes: u64::from(group.request_kib) * 1024,
        dirty_limit: (cache.dirty_limit_mib * MIB) as u64,
        page_cache: PageCache::new((cache.page_cache_mib * MIB) as u64),
        read_ahead: (cache.read_ahead_mib * MIB) as u64,
        copy_ns_per_byte: 1e3 / cache.copy_mb_per_s,
        stop_ns: group.stop_s.map_or(u64::MAX, nanos),
        sets,
        dirty: 0,
        sync_waiters: List::default(),
        bytes: 0,
        metadata_operations: 0,
    }
}

/// How the streams of a client group are controlled, or all clients' streams of metadata operations.
#[derive(Debug)]
pub(super) struct ClientControl {
    /// The scenario's.
    pub control: Control,
    /// Of a rogue.
    pub rogue_window: Option<u32>,
    /// Numbers of the group's clients.
    pub clients: std::ops::Range<usize>,
    /// Whether the streams are those of metadata operations.
    pub of_metadata: bool,
}

/// Rule sets in force, by client group, and then of the metadata streams where they are controlled.
pub(super) type Deployments = Vec<Option<Arc<Deployment>>>;
