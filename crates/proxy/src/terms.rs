//! On what terms a route's clients are served: by which server, with TLS on which side, and for how long it may be silent.

use std::fmt;
use std::time::Duration;

use ascar_tls::rustls::pki_types::ServerName;
use ascar_tls::rustls::{
    ClientConfig, ClientConnection, Connection, ServerConfig, ServerConnection,
};
use ascar_tls::{Files, Renewed, client_configuration, server_configuration};

use crate::LOG;
use crate::address::Address;
use crate::config::Way;
use crate::connection::End;
use crate::protocol::Protocol;
use crate::socket::Socket;

/// The terms of a route.
#[derive(Debug)]
pub struct Terms {
    /// What both sides speak.
    pub protocol: Protocol,
    /// The server.
    pub server: Address,
    /// What clients have to start, where they have to speak TLS.
    pub listen_tls: Option<ListenTls>,
    /// What the server has to accept, where the proxy speaks TLS to it.
    pub server_tls: Option<ServerTls>,
    /// How long a server that owes answers may say nothing; None: for ever.
    pub answer_limit: Option<Duration>,
}

impl Terms {
    /// A server of block devices without TLS on either side, which may take its time.
    #[must_use]
    pub fn of(server: Address) -> Self {
        Self {
            protocol: Protocol::default(),
            server,
            listen_tls: None,
            server_tls: None,
            answer_limit: None,
        }
    }

    /// The terms of a way, whose certificates are read.
    ///
    /// # Errors
    /// In a line, what is wrong with a file of TLS.
    pub fn read(way: &Way, answer_limit: Option<Duration>) -> Result<Self, String> {
        let listen_tls = match &way.listen_tls {
            None => None,
            Some(files) => Some(ListenTls::read(files)?),
        };
        let server_tls = match &way.server_tls {
            None => None,
            Some((name, files)) => Some(ServerTls::read(name, files)?),
        };
        Ok(Self {
            protocol: way.protocol,
            listen_tls,
            server_tls,
            answer_limit,
            server: way.server.clone(),
        })
    }

    /// A connection to the server.
    ///
    /// # Errors
    /// When it cannot be reached.
    pub fn connect(&self) -> Result<Socket, End> {
        let connected = self.server.connect();
        connected.map_err(|error| End::Broken(format!("the server cannot be reached: {error}")))
    }
}

/// TLS for clients.
pub struct ListenTls(Renewed<ServerConfig>);

impl ListenTls {
    fn read(files: &Files) -> Result<Self, String> {
        let renewed = Renewed::open(files.clone(), server_configuration);
        renewed
            .map(Self)
            .map_err(|why| format!("route.listen_tls.{why}"))
    }

    /// A session with a client.
    ///
    /// # Errors
    /// When there can be none.
    pub fn session(&self) -> Result<Connection, End> {
        let current = self.0.current(|why| stays("listen_tls", why));
        let session = ServerConnection::new(current).map_err(broken)?;
        Ok(session.into())
    }
}

/// TLS to a server.
pub struct ServerTls {
    name: ServerName<'static>,
    renewed: Renewed<ClientConfig>,
}

impl ServerTls {
    fn read(name: &ServerName<'static>, files: &Files) -> Result<Self, String> {
        let renewed = Renewed::open(files.clone(), client_configuration)
            .map_err(|why| format!("route.server_tls.{why}"))?;
        let name = name.clone();
        Ok(Self { name, renewed })
    }

    /// A session with the server.
    ///
    /// # Errors
    /// When there can be none.
    pub fn session(&self) -> Result<Connection, End> {
        let current = self.renewed.current(|why| stays("server_tls", why));
        let session = ClientConnection::new(current, self.name.clone()).map_err(broken)?;
        Ok(session.into())
    }
}

fn stays(key: &str, why: &str) {
    LOG.line(format_args!(
        "route.{key}.{why}; what was read before stays in use"
    ));
}

fn broken(error: ascar_tls::rustls::Error) -> End {
    End::Broken(format!("TLS: {error}"))
}

impl fmt::Debug for ListenTls {
    /// Without secrets.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ListenTls")
    }
}

impl fmt::Debug for ServerTls {
    /// Without secrets.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ServerTls {{ name: {:?} }}", self.name)
    }
}
