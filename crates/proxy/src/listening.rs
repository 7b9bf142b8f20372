//! Clients are taken in, each in a thread of its own.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::LOG;
use crate::connection::{STACK_BYTES, serve};
use crate::socket::{Listener, Socket};
use crate::streams::Streams;
use crate::terms::Terms;

/// Connections of clients at one time.
const CONNECTIONS_MAX: usize = 1024;

/// Between two attempts to take somebody in while the system has nothing to give.
const PAUSE: Duration = Duration::from_millis(100);

/// The places of connections.
#[derive(Debug, Default)]
pub struct Places {
    taken: AtomicUsize,
}

impl Places {
    /// One of them, until what is returned is dropped; None where all are taken.
    fn take(self: &Arc<Self>) -> Option<Place> {
        let taken = self.taken.fetch_add(1, Ordering::AcqRel);
        let place = Place(Arc::clone(self));
        (taken < CONNECTIONS_MAX).then_some(place)
    }
}

/// One place.
struct Place(Arc<Places>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Takes clients in, from now on, and connects them to their server.
///
/// # Errors
/// When no thread can be started.
pub fn listen(
    listener: Listener,
    terms: Terms,
    streams: Arc<Streams>,
    places: Arc<Places>,
) -> io::Result<()> {
    let terms = Arc::new(terms);
    let work = move || {
        loop {
            match listener.accept() {
                Ok(client) => take_in(client, &terms, &streams, &places),
                Err(error) => {
                    LOG.line(format_args!("clients of {}: {error}", terms.server));
                    thread::sleep(PAUSE);
                }
            }
        }
    };
    thread::Builder::new()
        .name("listen".to_owned())
        .stack_size(STACK_BYTES)
        .spawn(work)?;
    Ok(())
}

fn take_in(client: Socket, terms: &Arc<Terms>, streams: &Arc<Streams>, places: &Arc<Places>) {
    let Some(place) = places.take() else {
        LOG.line(format_args!(
            "clients of {}: {CONNECTIONS_MAX} connections are open; one more is closed",
            terms.server
        ));
        return;
    };
    let (terms, streams) = (Arc::clone(terms), Arc::clone(streams));
    let started = thread::Builder::new()
        .name("requests".to_owned())
        .stack_size(STACK_BYTES)
        .spawn(move || {
            serve(client, &terms, &streams);
            drop(place);
        });
    if let Err(error) = started {
        LOG.line(format_args!("a thread for a client: {error}; it is closed"));
    }
}
