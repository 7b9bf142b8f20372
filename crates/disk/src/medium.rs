//! The thread that writes to the medium, in the order in which the model's disk does: what leaves the cache, and what was
//! never in it. No client holds it up.

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use ascar_nbd::ErrorCode;

use crate::LOG;
use crate::replies::{Said, Ticket};
use crate::store::{Change, Store, Turn};

/// What is to be done.
#[derive(Debug)]
pub(crate) enum Order {
    /// A write leaves the cache.
    Land {
        /// What came after what.
        turn: Turn,
        /// How often power had been cut before it came.
        cuts: u64,
        /// Who waits for it, where somebody does.
        ticket: Option<Ticket>,
    },
    /// A write that never was in the cache.
    Put {
        /// What came after what.
        turn: Turn,
        /// The write.
        change: Arc<Change>,
        /// Who waits for it.
        ticket: Ticket,
    },
    /// All that has left the cache is to outlast this machine.
    Sync {
        /// How often power had been cut before it was asked for.
        cuts: u64,
        /// Who waits for it.
        ticket: Ticket,
    },
}

/// Carries out orders until nobody gives any.
pub(crate) fn run(store: &Store, orders: Receiver<Order>) {
    let mut medium = Medium {
        store,
        stuck: Vec::new(),
    };
    for order in orders {
        medium.carry_out(order);
    }
}

struct Medium<'a> {
    store: &'a Store,
    /// Writes that the medium did not take. They stay in the cache, and flushes fail until it does.
    stuck: Vec<u64>,
}

impl Medium<'_> {
    fn carry_out(&mut self, order: Order) {
        match order {
            Order::Land { turn, cuts, ticket } => {
                if let Err(error) = self.store.land(turn) {
                    LOG.line(format_args!("a write does not reach the medium: {error}"));
                    self.stuck.push(turn.number);
                }
                if let Some(ticket) = ticket {
                    ticket.answer(self.synced(cuts));
                }
            }
            Order::Put {
                turn,
                change,
                ticket,
            } => {
                let said = self.put(turn, &change);
                // Its memory is free before the client can know.
                drop(change);
                ticket.answer(said);
            }
            Order::Sync { cuts, ticket } => ticket.answer(self.synced(cuts)),
        }
    }

    fn put(&self, turn: Turn, change: &Change) -> Said {
        let put = self.store.put(turn, change).and_then(|()| {
            if change.fua {
                self.store.sync()?;
                self.store.powered_since(change.cuts)?;
            }
            Ok(())
        });
        match put {
            Ok(()) => Said::Done,
            Err(error) => {
                LOG.line(format_args!("a write fails: {error}"));
                Said::Refused(code(&error))
            }
        }
    }

    fn synced(&mut self, cuts: u64) -> Said {
        let failed = self
            .stuck
            .iter()
            .find_map(|number| self.store.land(Turn::again(*number)).err());
        let synced = match failed {
            Some(error) => Err(error),
            None => self.store.sync(),
        };
        match synced.and_then(|()| self.store.powered_since(cuts)) {
            Ok(()) => {
                self.stuck.clear();
                Said::Done
            }
            Err(error) => {
                LOG.line(format_args!("a flush fails: {error}"));
                Said::Refused(ErrorCode::InputOutput)
            }
        }
    }
}

/// The medium's error as clients know it.
fn code(error: &std::io::Error) -> ErrorCode {
    match error.raw_os_error() {
        Some(libc::ENOSPC) => ErrorCode::NoSpace,
        _ => ErrorCode::InputOutput,
    }
}
