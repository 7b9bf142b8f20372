//! What rustls is configured with.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{ClientConfig, RootCertStore, ServerConfig};

use crate::files::{Files, Keyed};

/// A certificate with its key.
type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// What a client checks its servers by, and shows them where they ask: the server's certificate must be signed by one
/// of `ca`, and be for the name that is asked for.
///
/// # Errors
/// In a line, after its key, what is wrong with a file.
pub fn client_configuration(files: &Files) -> Result<ClientConfig, String> {
    let ca = keyed("ca", files.ca.as_deref())?;
    let roots = roots(&ca)?;
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots);
    let mut configuration = match identity(files)? {
        None => builder.with_no_client_auth(),
        Some((chain, key)) => builder
            .with_client_auth_cert(chain, key)
            .map_err(|error| unusable(files, &error))?,
    };
    configuration.resumption = Resumption::disabled();
    Ok(configuration)
}

/// What a server shows its clients, and checks them by: with `ca`, clients must show a certificate that one of these
/// has signed.
///
/// # Errors
/// In a line, after its key, what is wrong with a file.
pub fn server_configuration(files: &Files) -> Result<ServerConfig, String> {
    keyed("certificate", files.certificate.as_deref())?;
    let builder = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let builder = match &files.ca {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let ca = Keyed { key: "ca", path };
            let roots = Arc::new(roots(&ca)?);
            let checks = WebPkiClientVerifier::builder_with_provider(roots, provider())
                .build()
                .map_err(|error| ca.wrong(&error))?;
            builder.with_client_cert_verifier(checks)
        }
    };
    let (chain, key) = identity(files)?.ok_or_else(|| missing("certificate"))?;
    let mut configuration = builder
        .with_single_cert(chain, key)
        .map_err(|error| unusable(files, &error))?;
    configuration.session_storage = Arc::new(NoServerSessionStorage {});
    configuration.send_tls13_tickets = 0;
    Ok(configuration)
}

/// The name that a server's certificate must be for: a host's, or an address.
///
/// # Errors
/// For another text.
pub fn server_name(text: &str) -> Result<ServerName<'static>, String> {
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Ok(address.into());
    }
    ServerName::try_from(text.to_owned())
        .map_err(|_| format!("{text:?}: must be the name of a host, or its address"))
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn missing(key: &str) -> String {
    format!("{key}: is missing: TLS needs it")
}

fn keyed<'a>(key: &'a str, path: Option<&'a Path>) -> Result<Keyed<'a>, String> {
    let path = path.ok_or_else(|| missing(key))?;
    Ok(Keyed { key, path })
}

fn roots(ca: &Keyed<'_>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in ca.certificates()? {
        roots.add(certificate).map_err(|error| ca.wrong(&error))?;
    }
    Ok(roots)
}

/// Our own certificate; None without one.
fn identity(files: &Files) -> Result<Option<Identity>, String> {
    let (certificate, key) = match (&files.certificate, &files.key) {
        (Some(certificate), Some(key)) => (certificate, key),
        (None, None) => return Ok(None),
        (Some(_), None) => return Err(missing("key")),
        (None, Some(_)) => return Err(missing("certificate")),
    };
    let chain = Keyed {
        key: "certificate",
        path: certificate,
    };
    let secret = Keyed {
        key: "key",
        path: key,
    };
    Ok(Some((chain.certificates()?, secret.private_key()?)))
}

/// The certificate and its key are of no use together.
fn unusable(files: &Files, error: &rustls::Error) -> String {
    let path = files.certificate.as_deref().unwrap_or(Path::new(""));
    let certificate = Keyed {
        key: "certificate",
        path,
    };
    match error {
        rustls::Error::InconsistentKeys(_) => certificate.wrong(&"is not that of key"),
        other => certificate.wrong(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_addresses_are_told_apart() {
        for text in ["storage1", "storage1.example.org"] {
            assert!(matches!(server_name(text), Ok(ServerName::DnsName(_))));
        }
        for text in ["192.0.2.1", "::1", "[::1]"] {
            assert!(matches!(server_name(text), Ok(ServerName::IpAddress(_))));
        }
        for text in ["", "a b", "a/b", "*", "[storage1]"] {
            assert!(server_name(text).unwrap_err().contains("name of a host"));
        }
    }

    #[test]
    fn what_is_not_given_is_named() {
        let none = Files::default();
        assert!(client_configuration(&none).unwrap_err().starts_with("ca: "));
        let said = server_configuration(&none).unwrap_err();
        assert!(said.starts_with("certificate: is missing"), "{said}");
        let half = Files {
            certificate: Some("/nowhere/a.pem".into()),
            ..Files::default()
        };
        let said = server_configuration(&half).unwrap_err();
        assert!(said.starts_with("key: is missing"), "{said}");
    }
}
