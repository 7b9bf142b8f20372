//! The two sides of a connection whose protocol has no words before TLS: it is there from the first byte on, where it has
//! to be.

use crate::connection::End;
use crate::side::Side;
use crate::socket::Socket;
use crate::terms::Terms;
use crate::tls::Tls;

/// Opens both sides: a client that has to show who it is does so before the server hears of it.
///
/// # Errors
/// When one of them leaves, cannot be reached, or is nobody whom TLS would let in.
pub fn open_both(client: Socket, terms: &Terms) -> Result<(Side, Side), End> {
    let client = match &terms.listen_tls {
        None => Side::plain(client),
        Some(tls) => {
            let agreed = Tls::agree(&client, tls.session()?, None);
            Side::inside(client, agreed.map_err(|end| end.with("the client"))?)
        }
    };
    let server = terms.connect()?;
    let server = match &terms.server_tls {
        None => Side::plain(server),
        Some(tls) => {
            let agreed = Tls::agree(&server, tls.session()?, Some(client.socket()));
            Side::inside(server, agreed.map_err(|end| end.with("the server"))?)
        }
    };
    Ok((client, server))
}
