//! TLS: the files that people name, and what the other end of a connection says.

use std::io::Write;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, LazyLock};

use ascar_proxy::socket::Socket;
use ascar_proxy::tls::Tls;
use ascar_tls::rustls::crypto::ring;
use ascar_tls::rustls::pki_types::ServerName;
use ascar_tls::rustls::server::ResolvesServerCertUsingSni;
use ascar_tls::rustls::{
    ClientConfig, ClientConnection, Connection, RootCertStore, ServerConfig, ServerConnection,
};
use ascar_tls::{Files, client_configuration, server_configuration};

use crate::scratch;

/// More than this is not said before TLS is there.
const SAID_BYTES_MAX: usize = 64 << 10;

/// Certificates and keys, in one file that is all of them.
pub fn files(bytes: &[u8]) {
    let path = scratch().join("tls.pem");
    std::fs::write(&path, bytes).expect("a file can be written");
    let files = Files {
        ca: Some(path.clone()),
        certificate: Some(path.clone()),
        key: Some(path),
    };
    for why in [
        client_configuration(&files).err(),
        server_configuration(&files).err(),
    ]
    .into_iter()
    .flatten()
    {
        assert!(!why.is_empty() && !why.contains('\n'), "{why:?}");
    }
}

/// What the other end says until TLS is there: the first byte says which end it is.
pub fn peer(bytes: &[u8]) {
    let Some((kind, said)) = bytes.split_first() else {
        return;
    };
    let session: Connection = if kind % 2 == 0 {
        let session = ServerConnection::new(Arc::clone(&SERVER));
        session.expect("a session begins").into()
    } else {
        let name = ServerName::try_from("localhost").expect("a name");
        let session = ClientConnection::new(Arc::clone(&CLIENT), name);
        session.expect("a session begins").into()
    };
    let (mut other, own) = UnixStream::pair().expect("two sockets");
    other
        .write_all(&said[..said.len().min(SAID_BYTES_MAX)])
        .expect("there is room");
    other.shutdown(Shutdown::Write).expect("it is open");
    assert!(Tls::agree(&Socket::Unix(own), session, None).is_err());
}

/// A server without a certificate: it reads whatever a client says first.
static SERVER: LazyLock<Arc<ServerConfig>> = LazyLock::new(|| {
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the versions are there");
    let none = Arc::new(ResolvesServerCertUsingSni::new());
    Arc::new(builder.with_no_client_auth().with_cert_resolver(none))
});

/// A client that believes nobody.
static CLIENT: LazyLock<Arc<ClientConfig>> = LazyLock::new(|| {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the versions are there");
    let nobody = RootCertStore::empty();
    Arc::new(builder.with_root_certificates(nobody).with_no_client_auth())
});
