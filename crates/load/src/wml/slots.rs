//! Which files a thread has open at each step of its loop.

use std::collections::HashMap;

use super::error::WmlError;
use crate::definition::{Flowop, Kind};

/// What is known of an open file slot.
#[derive(Clone, Copy)]
struct Slot {
    directio: bool,
    dsync: bool,
}

/// Go through the loop twice and refuse what would work on a file that is not open, or open one twice.
pub(super) fn check(flowops: &[Flowop], lines: &[usize]) -> Result<(), WmlError> {
    let mut open: HashMap<usize, Slot> = HashMap::new();
    for (flowop, line) in flowops.iter().zip(lines).chain(flowops.iter().zip(lines)) {
        let fd = flowop.fd.unwrap_or(0);
        let slot = Slot {
            directio: flowop.directio,
            dsync: flowop.dsync,
        };
        let closed = |what: &str| {
            Err(WmlError::new(
                *line,
                &flowop.name,
                format!("{what} fd {fd}, which no flowop before it opens"),
            ))
        };
        match flowop.kind {
            Kind::CreateFile | Kind::OpenFile if open.insert(fd, slot).is_some() => {
                let text = format!(
                    "opens fd {fd}, which is open already; close it before, or use another fd"
                );
                return Err(WmlError::new(*line, &flowop.name, text));
            }
            Kind::CloseFile if open.remove(&fd).is_none() => return closed("closes"),
            Kind::Fsync if !open.contains_key(&fd) => return closed("flushes"),
            Kind::DeleteFile | Kind::StatFile if flowop.fileset.is_none() => {
                if flowop.fd.is_none() {
                    return Err(WmlError::new(
                        *line,
                        &flowop.name,
                        "needs an attribute filesetname, or an fd",
                    ));
                }
                if !open.contains_key(&fd) {
                    return closed("works on");
                }
            }
            kind if kind.transfers() && !flowop.opennext => match open.get(&fd) {
                Some(opened)
                    if (flowop.directio && !opened.directio) || (flowop.dsync && !opened.dsync) =>
                {
                    let text =
                        format!("directio and dsync belong to the flowop that opens fd {fd}");
                    return Err(WmlError::new(*line, &flowop.name, text));
                }
                Some(_) => {}
                None if flowop.fileset.is_some() => {
                    open.insert(fd, slot);
                }
                None => return closed("works on"),
            },
            _ => {}
        }
        if let Some(source) = flowop.srcfd
            && source != fd
            && !open.contains_key(&source)
        {
            let text = format!("takes its size from fd {source}, which no flowop before it opens");
            return Err(WmlError::new(*line, &flowop.name, text));
        }
    }
    Ok(())
}
