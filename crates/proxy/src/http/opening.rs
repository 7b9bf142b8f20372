//! Both sides of a connection of HTTP. A client whose server cannot be reached hears so in its own protocol.

use std::time::Duration;

use ascar_http::{Refusal, Status};

use super::Exchanges;
use crate::connection::{End, Opened, drain};
use crate::opening::{client_side, server_side};
use crate::side::Side;
use crate::socket::Socket;
use crate::terms::Terms;

/// How long a client that will be told so may take for its first request.
const REQUEST_LIMIT: Duration = Duration::from_secs(10);

/// What is read of that request.
const REQUEST_BYTES: usize = 4 << 10;

/// Opens both sides.
///
/// # Errors
/// When one of them leaves, cannot be reached, or is nobody whom TLS would let in.
pub fn open(client: Socket, terms: &Terms) -> Result<Opened<Exchanges>, End> {
    let client = client_side(client, terms)?;
    match server_side(&client, terms) {
        Ok(server) => Ok(Opened {
            client,
            server,
            dialogue: Exchanges::default(),
        }),
        Err(end) => {
            if let Some(why) = end.why() {
                // Whatever comes of it, it is over.
                let _ = refuse(&client, why);
            }
            Err(end)
        }
    }
}

/// Answers a client's first request, whatever that is, and waits for it to stop.
fn refuse(client: &Side, why: &str) -> std::io::Result<()> {
    client.socket().limit_reads(REQUEST_LIMIT)?;
    let mut begin = [0; REQUEST_BYTES];
    let count = client.read(&mut begin)?;
    if count > 0 {
        let refusal = Refusal::new(Status::BadGateway, why);
        client.write_all(&refusal.response(begin.starts_with(b"HEAD ")))?;
    }
    client.shutdown(std::net::Shutdown::Write);
    drain(client);
    Ok(())
}
