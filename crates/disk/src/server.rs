//! All of a disk: its threads, its clients, the end, and power cuts.

use std::collections::BTreeMap;
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

use ascar_log::Fault;
use ascar_nbd::{Export, PAYLOAD_BYTES_MAX};
use ascar_service::ServiceManager;

use crate::connection::{self, Broken};
use crate::drive::Drive;
use crate::listening::Listening;
use crate::memory::Memory;
use crate::model::Model;
use crate::signals::{self, Signal};
use crate::socket::{Half, Socket};
use crate::store::Store;
use crate::{LOG, locked, medium};

/// Data of writes that is in memory, of all clients together: the rest waits in their sockets.
/// The reserve is a part of it.
const MEMORY_BYTES: u64 = 512 << 20;

/// Clients at a time.
const CLIENTS_MAX: usize = 4096;

/// Clients get answers to what is under way for so long when the disk ends.
const ENDING: Duration = Duration::from_secs(5);

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Server {
    /// What is offered.
    pub(crate) exports: Vec<Export>,
    /// The size of each.
    pub(crate) size_bytes: u64,
    /// The data.
    pub(crate) store: Store,
    /// The way to the model.
    pub(crate) drive: Drive,
    /// Memory for data of writes.
    pub(crate) memory: Arc<Memory>,
    clients: Mutex<Clients>,
    one_less: Condvar,
}

#[derive(Debug, Default)]
struct Clients {
    sockets: BTreeMap<u64, Arc<Socket>>,
    numbers: u64,
    /// Nobody is admitted any more.
    is_ending: bool,
}

impl Server {
    pub(crate) fn new(exports: Vec<Export>, size_bytes: u64, store: Store) -> Self {
        Self {
            exports,
            size_bytes,
            store,
            drive: Drive::new(),
            memory: Memory::new(MEMORY_BYTES - u64::from(PAYLOAD_BYTES_MAX)),
            clients: Mutex::default(),
            one_less: Condvar::new(),
        }
    }

    /// Serves until a signal asks for the end, which puts all of the cache on the medium.
    ///
    /// # Errors
    /// A thread that cannot be started, or a medium that does not take what is in the cache.
    pub(crate) fn run(self: Arc<Self>, model: Model, listening: Listening) -> Result<(), Fault> {
        let failed = |error| Fault(format!("a thread cannot be started: {error}"));
        let (orders, ordered) = channel();
        let spawn = |name: &str, run: Box<dyn FnOnce() + Send>| {
            Builder::new()
                .name(name.to_owned())
                .spawn(run)
                .map_err(failed)
        };
        let server = self.clone();
        spawn(
            "medium",
            Box::new(move || medium::run(&server.store, ordered)),
        )?;
        let server = self.clone();
        spawn(
            "drive",
            Box::new(move || server.drive.run(&model, &server.store, &orders)),
        )?;
        let listening = Arc::new(listening);
        let (server, accepting) = (self.clone(), listening.clone());
        spawn(
            "accept",
            Box::new(move || server.accept_clients(&accepting)),
        )?;
        LOG.line(format_args!("serves {} at {listening}", self.offer()));
        let manager = ServiceManager::of_this_process();
        manager.ready();
        while signals::wait() == Signal::PowerCut {
            self.cut_power();
        }
        manager.ending();
        listening.remove();
        locked(&self.clients).is_ending = true;
        self.close(Half::Read);
        self.wait_for_clients();
        // From here on nothing is acknowledged that is not written below.
        self.close(Half::Both);
        self.store.settle().map_err(|error| {
            Fault(format!(
                "the cache cannot be written to the medium: {error}"
            ))
        })
    }

    fn offer(&self) -> String {
        match &self.exports[..] {
            [only] => format!("export {:?} of {} bytes", only.name, only.size_bytes),
            all => format!("{} exports of {} bytes each", all.len(), self.size_bytes),
        }
    }

    /// Accepts clients for ever.
    fn accept_clients(self: &Arc<Self>, listening: &Listening) {
        loop {
            match listening.accept() {
                Ok(socket) => self.admit(Arc::new(Socket::new(socket))),
                Err(error) => {
                    LOG.line(format_args!("a connection cannot be accepted: {error}"));
                    std::thread::sleep(Duration::from_millis(100));
                }
            }
        }
    }

    fn admit(self: &Arc<Self>, socket: Arc<Socket>) {
        let mut clients = locked(&self.clients);
        if clients.is_ending {
            return;
        }
        if clients.sockets.len() >= CLIENTS_MAX {
            LOG.line(format_args!(
                "a client is sent away: there are {CLIENTS_MAX}"
            ));
            return;
        }
        clients.numbers += 1;
        let number = clients.numbers;
        clients.sockets.insert(number, socket.clone());
        drop(clients);
        let cuts = self.store.cuts();
        let server = self.clone();
        let spawned = Builder::new()
            .name(format!("client {number}"))
            .stack_size(connection::STACK_BYTES)
            .spawn(move || {
                let ended = connection::serve(&server, &socket, cuts);
                if let Err(broken) = ended {
                    complain(number, &broken);
                }
                server.dismiss(number);
            });
        if let Err(error) = spawned {
            LOG.line(format_args!("a client is sent away: {error}"));
            self.dismiss(number);
        }
    }

    fn dismiss(&self, number: u64) {
        let gone = locked(&self.clients).sockets.remove(&number);
        if let Some(socket) = gone {
            socket.close(Half::Both);
        }
        self.one_less.notify_all();
    }

    fn close(&self, half: Half) {
        for socket in locked(&self.clients).sockets.values() {
            socket.close(half);
        }
    }

    /// In this order, so that whoever comes later finds a disk that has begun anew, and nobody from before is told that
    /// something lasts.
    fn cut_power(&self) {
        self.store.cut();
        self.drive.cut();
        self.close(Half::Both);
        LOG.line("power is cut: what was only in the cache is lost, and all clients with it");
    }

    fn wait_for_clients(&self) {
        let until = Instant::now() + ENDING;
        let mut clients = locked(&self.clients);
        while !clients.sockets.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let waited = self.one_less.wait_timeout(clients, left);
            clients = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Clients come and go without a word; one that speaks something else gets a line.
fn complain(number: u64, broken: &Broken) {
    if let Broken::Malformed(malformed) = broken {
        LOG.line(format_args!("client {number}: {malformed}"));
    }
}
