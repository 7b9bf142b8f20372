//! Long requests for zeroes, piece by piece: the model and the medium get the next when they are done with one, so that
//! others have their turn between them.

use std::ops::Range;
use std::sync::Arc;

use ascar_nbd::PAYLOAD_BYTES_MAX;
use ascar_nbd::numbers::command_flag;

use crate::drive::{Job, Wish};
use crate::replies::Ticket;
use crate::store::{Change, Data};

/// As much as a write of data may bring.
const PIECE_BYTES: u64 = PAYLOAD_BYTES_MAX as u64;

/// Zeroes that were asked for.
#[derive(Debug)]
pub(crate) struct Zeroes {
    /// From where to where, on the disk; not empty.
    pub(crate) range: Range<u64>,
    /// How often power had been cut before they were.
    pub(crate) cuts: u64,
}

impl Zeroes {
    /// The first piece; its ticket knows the rest.
    pub(crate) fn job(self, mut ticket: Ticket) -> Job {
        let Self { range, cuts } = self;
        let end = range.end.min(range.start + PIECE_BYTES);
        let change = Change {
            position: range.start,
            data: Data::Zeroes {
                count: end - range.start,
                may_be_hole: !ticket.request.has(command_flag::NO_HOLE),
            },
            cuts,
            fua: ticket.request.has(command_flag::FUA),
        };
        let rest = end..range.end;
        ticket.rest = (!rest.is_empty()).then_some(Self { range: rest, cuts });
        Job {
            wish: Wish::Write(Arc::new(change)),
            ticket,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use ascar_nbd::{Command, Request};

    use super::*;
    use crate::lease::Amount;

    #[test]
    fn each_piece_is_no_longer_than_a_write_may_be() {
        let (answers, _answered) = channel();
        let mut ticket = Ticket {
            request: Request {
                flags: command_flag::FUA,
                command: Command::WriteZeroes,
                cookie: 1,
                offset_bytes: 0,
                length_bytes: 70 << 20,
            },
            answers,
            _room: Amount::new(1).take(1),
            rest: None,
        };
        let (begin, mut pieces) = (5_u64 << 32, Vec::new());
        let mut next = Some(Zeroes {
            range: begin..begin + (70 << 20),
            cuts: 3,
        });
        while let Some(zeroes) = next {
            let job = zeroes.job(ticket);
            let Wish::Write(change) = job.wish else {
                panic!("zeroes are written")
            };
            assert!(change.fua && change.cuts == 3);
            let range = change.range();
            pieces.push((range.start - begin) >> 20..(range.end - begin) >> 20);
            ticket = job.ticket;
            next = ticket.rest.take();
        }
        assert_eq!(pieces, [0..32, 32..64, 64..70]);
    }
}
