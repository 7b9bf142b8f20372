//! Round-trip times: how long a TCP connection to each server takes. A server that refuses has answered as well.

use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::Collector;
use super::heard::STACK_BYTES;
use crate::LOG;
use crate::sample::Sample;

const PATIENCE: Duration = Duration::from_secs(2);
const EVERY: Duration = Duration::from_secs(1);
/// No answer.
const NONE: u64 = u64::MAX;

#[derive(Debug)]
pub struct Latency {
    servers: Vec<(String, Arc<AtomicU64>)>,
}

impl Latency {
    pub fn start(servers: Vec<String>) -> Self {
        let servers = servers
            .into_iter()
            .map(|server| {
                let latest = Arc::new(AtomicU64::new(NONE));
                let (address, shared) = (server.clone(), Arc::clone(&latest));
                let ask = move || {
                    loop {
                        shared.store(measure(&address).unwrap_or(NONE), Ordering::Relaxed);
                        std::thread::sleep(EVERY);
                    }
                };
                let started = std::thread::Builder::new()
                    .stack_size(STACK_BYTES)
                    .name("latency".to_owned())
                    .spawn(ask);
                if let Err(error) = started {
                    LOG.line(format_args!("latency of {server}: {error}"));
                }
                (server, latest)
            })
            .collect();
        Self { servers }
    }
}

impl Collector for Latency {
    fn sample(&mut self, sample: &mut Sample) {
        for (server, latest) in &self.servers {
            let nanoseconds = latest.load(Ordering::Relaxed);
            if nanoseconds != NONE {
                sample.level(
                    &format!("latency.{server}.ms"),
                    (nanoseconds / 1000) as f64 / 1000.0,
                );
            }
        }
    }
}

/// Nanoseconds; None where nobody answers.
fn measure(server: &str) -> Option<u64> {
    let address = server.to_socket_addrs().ok()?.next()?;
    let started = Instant::now();
    let answered = match TcpStream::connect_timeout(&address, PATIENCE) {
        Ok(_) => true,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionRefused,
    };
    answered.then(|| started.elapsed().as_nanos() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_listens_or_refuses_has_a_latency() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        assert!(measure(&address).is_some());
        drop(listener);
        assert!(measure(&address).is_some());
        assert!(measure("no.such.host.invalid:1").is_none());
        assert!(measure("nonsense").is_none());
    }
}
