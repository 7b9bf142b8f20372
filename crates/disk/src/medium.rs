//! The thread that writes to the medium what leaves the cache, in the order in which the model's disk does.

use std::sync::mpsc::Receiver;

use ascar_nbd::ErrorCode;

use crate::LOG;
use crate::replies::{Said, Ticket};
use crate::store::Store;

/// What is to be done.
#[derive(Debug)]
pub(crate) enum Order {
    /// A write leaves the cache.
    Land {
        /// Its number.
        number: u64,
        /// How often power had been cut before it came.
        cuts: u64,
        /// Who waits for it, where somebody does.
        ticket: Option<Ticket>,
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
    // Writes that the medium did not take. They stay in the cache, and flushes fail until it does.
    let mut stuck: Vec<u64> = Vec::new();
    for order in orders {
        match order {
            Order::Land {
                number,
                cuts,
                ticket,
            } => {
                if let Err(error) = store.land(number) {
                    LOG.line(format_args!("a write does not reach the medium: {error}"));
                    stuck.push(number);
                }
                if let Some(ticket) = ticket {
                    ticket.answer(synced(store, cuts, &mut stuck));
                }
            }
            Order::Sync { cuts, ticket } => ticket.answer(synced(store, cuts, &mut stuck)),
        }
    }
}

fn synced(store: &Store, cuts: u64, stuck: &mut Vec<u64>) -> Said {
    let failed = stuck.iter().find_map(|number| store.land(*number).err());
    let synced = match failed {
        Some(error) => Err(error),
        None => store.sync(),
    };
    match synced.and_then(|()| store.powered_since(cuts)) {
        Ok(()) => {
            stuck.clear();
            Said::Done
        }
        Err(error) => {
            LOG.line(format_args!("a flush fails: {error}"));
            Said::Refused(ErrorCode::InputOutput)
        }
    }
}
