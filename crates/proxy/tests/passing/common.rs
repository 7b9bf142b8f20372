//! What both ends of a proxied connection need.

use std::io::Write;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use ascar_congestion::{Action, RuleSet};
use ascar_proxy::address::Address;
use ascar_proxy::connection::serve;
use ascar_proxy::protocol::Protocol;
use ascar_proxy::socket::Socket;
use ascar_proxy::streams::{OwnHold, Streams};
use ascar_proxy::terms::Terms;
use ascar_random::Random;

fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("ascar-proxy-{}-{name}", std::process::id()));
    std::fs::create_dir(&path).unwrap();
    path
}

/// One connection through the proxy.
pub struct Trial {
    /// A name of its own.
    pub name: String,
    pub protocol: Protocol,
    pub own: OwnHold,
    /// The seed of rules that change meanwhile; None: nothing changes.
    pub changes: Option<u64>,
}

impl Trial {
    /// What both ends make of it, and the streams that it went through, which are gone.
    pub fn pass<S: Send, C>(
        self,
        server: impl FnOnce(&UnixStream) -> S + Send,
        client: impl FnOnce(&UnixStream) -> C,
    ) -> (S, C, Streams) {
        let folder = folder(&self.name);
        let path = folder.join("server");
        let listener = UnixListener::bind(&path).unwrap();
        let terms = Terms {
            protocol: self.protocol,
            ..Terms::of(Address::Unix(path))
        };
        let streams = Streams::new(self.own);
        let is_over = AtomicBool::new(false);
        let (served, heard) = thread::scope(|scope| {
            let (streams, is_over) = (&streams, &is_over);
            let serving = scope.spawn(move || server(&listener.accept().unwrap().0));
            let (saying, proxied) = UnixStream::pair().unwrap();
            scope.spawn(move || serve(Socket::Unix(proxied), &terms, streams));
            if let Some(seed) = self.changes {
                scope.spawn(move || change_rules(streams, is_over, seed));
            }
            let heard = client(&saying);
            is_over.store(true, Ordering::SeqCst);
            (serving.join().unwrap(), heard)
        });
        assert!(streams.observe().is_empty());
        std::fs::remove_dir_all(folder).unwrap();
        (served, heard, streams)
    }
}

/// Writes in pieces of random lengths.
pub fn write_cut(mut to: &UnixStream, mut bytes: &[u8], random: &mut Random) {
    while !bytes.is_empty() {
        let most = if random.below(3) == 0 { 40 } else { 100_000 };
        let count = (1 + random.below(most) as usize).min(bytes.len());
        to.write_all(&bytes[..count]).unwrap();
        bytes = &bytes[count..];
    }
}

/// Puts other rules in force again and again.
fn change_rules(streams: &Streams, is_over: &AtomicBool, seed: u64) {
    let mut random = Random::new(seed);
    while !is_over.load(Ordering::SeqCst) {
        let action = Action {
            m100: 0,
            b100: 100 + random.below(900) as i32,
            tau_us: [0, 20, 5_000_000][random.below(3) as usize],
        };
        let rules = (random.below(3) > 0).then(|| RuleSet::uniform(action));
        streams.follow(rules);
        thread::sleep(Duration::from_micros(random.below(3_000)));
    }
}
