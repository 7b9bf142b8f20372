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
    let client = client_side(client, terms)?;
    let server = server_side(&client, terms)?;
    Ok((client, server))
}

/// A client, inside TLS where it has to speak that.
///
/// # Errors
/// When it leaves, or is nobody whom TLS would let in.
pub fn client_side(client: Socket, terms: &Terms) -> Result<Side, End> {
    let Some(tls) = &terms.listen_tls else {
        return Ok(Side::plain(client));
    };
    let agreed = Tls::agree(&client, tls.session()?, None);
    Ok(Side::inside(
        client,
        agreed.map_err(|end| end.with("the client"))?,
    ))
}

/// The server, inside TLS where the proxy speaks that to it, unless the client leaves meanwhile.
///
/// # Errors
/// When it cannot be reached, or is not whom it should be.
pub fn server_side(client: &Side, terms: &Terms) -> Result<Side, End> {
    let server = terms.connect()?;
    let Some(tls) = &terms.server_tls else {
        return Ok(Side::plain(server));
    };
    let agreed = Tls::agree(&server, tls.session()?, Some(client.socket()));
    Ok(Side::inside(
        server,
        agreed.map_err(|end| end.with("the server"))?,
    ))
}
