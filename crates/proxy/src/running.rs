//! The daemon: listens, ticks, ends rules in time, and ends when told.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ascar_log::Fault;
use ascar_plane::Endpoint;
use ascar_service::{ServiceManager, listen_at};

use crate::LOG;
use crate::address::Address;
use crate::clock;
use crate::config::{Config, Way};
use crate::control::Control;
use crate::ending::Ending;
use crate::kept::{Keeping, Owner};
use crate::listening::{Places, listen};
use crate::plane::ProxyPlane;
use crate::streams::Streams;
use crate::terms::Terms;

/// The length of a tick.
const TICK: Duration = Duration::from_secs(1);

/// Bytes of the id of a process.
const INSTANCE_BYTES: usize = 8;

/// A proxy that listens.
#[derive(Debug)]
pub struct Proxy {
    control: Arc<Control>,
    streams: Arc<Streams>,
    /// Sockets that end with it.
    sockets: Vec<OwnSocket>,
}

impl Proxy {
    /// Listens from now on.
    ///
    /// # Errors
    /// When an address or the control socket is somebody else's, or a name is none.
    pub fn start(config: &Config) -> Result<Self, Fault> {
        ascar_privileges::raise_open_files();
        let streams = Arc::new(Streams::new(config.own_hold()));
        let plane = ProxyPlane::new(Arc::clone(&streams));
        let instance = instance()?;
        let endpoint = Endpoint::new(&config.controller, &config.workload, &instance, plane);
        let mut endpoint = endpoint.map_err(Fault)?;
        let mut keeping = keeping(config)?;
        if let Some(keeping) = &mut keeping {
            // Before the first client.
            keeping.take_up(&mut endpoint);
        }
        let mut proxy = Self {
            control: Arc::new(Control::new(endpoint, keeping)),
            streams,
            sockets: Vec::new(),
        };
        let places = Arc::new(Places::default());
        for (way, terms) in config.terms()? {
            proxy.open(&way, terms, &places)?;
        }
        // Whoever finds this one finds all of them.
        let path = &config.control;
        let refused = |error| Fault(format!("control = {:?}: {error}", path.display()));
        let listener = listen_at(path, config.control_mode).map_err(refused)?;
        proxy.sockets.push(OwnSocket::at(path).map_err(refused)?);
        proxy.control.listen(listener).map_err(refused)?;
        Ok(proxy)
    }

    fn open(&mut self, way: &Way, terms: Terms, places: &Arc<Places>) -> Result<(), Fault> {
        let refused = |error| Fault(format!("route.listen = {}: {error}", way.listen));
        let listener = way.listen.listen(way.mode).map_err(refused)?;
        if let Address::Unix(path) = &way.listen {
            self.sockets.push(OwnSocket::at(path).map_err(refused)?);
        }
        let (streams, places) = (Arc::clone(&self.streams), Arc::clone(places));
        listen(listener, terms, streams, places).map_err(refused)
    }

    /// Works until it is told to end.
    pub fn run(&self, ending: &Ending) {
        let mut manager = ServiceManager::of_this_process();
        manager.ready();
        let (mut begun, mut before_bytes) = (Instant::now(), 0);
        loop {
            manager.works();
            let until = manager.next_by(begun + TICK);
            let left = until.saturating_duration_since(Instant::now());
            let rules_end_at = self.control.endpoint().ends_at();
            let rules_left = rules_end_at.map_or(TICK, |at| at.saturating_sub(clock::now()));
            if ending.comes_within(left.min(rules_left)) {
                break;
            }
            for line in self.control.expire() {
                LOG.line(line);
            }
            let passed = begun.elapsed();
            if passed >= TICK {
                begun += passed;
                let bytes = self.streams.moved_bytes();
                let moved = bytes.saturating_sub(before_bytes) as f64 / 1e6;
                before_bytes = bytes;
                self.control
                    .tick(passed.as_secs_f64(), moved / passed.as_secs_f64());
            }
        }
        manager.ending();
    }
}

impl Drop for Proxy {
    /// Nobody is to connect to what is no longer there.
    fn drop(&mut self) {
        for socket in &self.sockets {
            socket.remove();
        }
    }
}

/// A socket that this process has made; as long as it listens, no other file has its number.
#[derive(Debug)]
struct OwnSocket {
    path: PathBuf,
    file: (u64, u64),
}

impl OwnSocket {
    fn at(path: &Path) -> io::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            file: file_at(path)?,
        })
    }

    /// Removes it, and not that of a proxy that was started in its place.
    fn remove(&self) {
        if file_at(&self.path).is_ok_and(|file| file == self.file) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Device and number of what lies on a path.
fn file_at(path: &Path) -> io::Result<(u64, u64)> {
    let found = path.symlink_metadata()?;
    Ok((found.dev(), found.ino()))
}

/// Where kept rules are written down: as the file says, or in the folder that systemd has made for the unit.
fn keeping(config: &Config) -> Result<Option<Keeping>, Fault> {
    let of_unit = || std::env::var_os("STATE_DIRECTORY").map(PathBuf::from);
    let Some(folder) = config.state_directory.clone().or_else(of_unit) else {
        return Ok(None);
    };
    let owner = Owner {
        controller: config.controller.clone(),
        workload: config.workload.clone(),
    };
    let refused = |error| Fault(format!("state_directory = {:?}: {error}", folder.display()));
    Keeping::within(&folder, owner).map(Some).map_err(refused)
}

/// An id that no other process has.
fn instance() -> Result<String, Fault> {
    let mut bytes = [0; INSTANCE_BYTES];
    let read = std::fs::File::open("/dev/urandom")
        .and_then(|mut file| std::io::Read::read_exact(&mut file, &mut bytes));
    read.map_err(|error| Fault(format!("/dev/urandom: {error}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
