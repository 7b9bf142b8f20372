//! Where the server is, and who we are.

use std::path::PathBuf;

use serde::Deserialize;

/// What went wrong, in words that name the offending key or address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault(pub String);

impl std::fmt::Display for Fault {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Fault {}

/// The section `[messaging]` of a configuration file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// `nats://HOST:PORT`, or `tls://HOST:PORT`.
    pub url: String,
    /// Which session's subjects: `ascar.capes.SESSION`.
    #[serde(default = "default_session")]
    pub session: String,
    /// The account's user.
    pub user: Option<String>,
    /// Its password, or
    pub password: Option<String>,
    /// a file with it.
    pub password_file: Option<PathBuf>,
    /// Certificates of the authority that signed the server's: TLS from here on.
    pub ca_file: Option<PathBuf>,
    /// Our own certificate, where the server asks for one,
    pub certificate_file: Option<PathBuf>,
    /// and its key.
    pub key_file: Option<PathBuf>,
}

fn default_session() -> String {
    "default".to_owned()
}

impl Options {
    /// A server on this machine, without TLS.
    pub fn local(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            session: default_session(),
            user: None,
            password: None,
            password_file: None,
            ca_file: None,
            certificate_file: None,
            key_file: None,
        }
    }

    /// What all subjects of the session begin with.
    pub fn prefix(&self) -> String {
        format!("ascar.capes.{}", self.session)
    }

    /// Host and port.
    ///
    /// # Errors
    /// When the address is none, or another machine's and TLS is not set up.
    pub fn address(&self) -> Result<(String, u16), Fault> {
        let wrong = || {
            Fault(format!(
                "messaging.url = {:?}: expected nats://HOST:PORT or tls://HOST:PORT",
                self.url
            ))
        };
        let (scheme, rest) = self.url.split_once("://").ok_or_else(wrong)?;
        if scheme != "nats" && scheme != "tls" {
            return Err(wrong());
        }
        let rest = rest.trim_end_matches('/');
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port))
                if !host.ends_with(':') && (!host.contains(':') || host.ends_with(']')) =>
            {
                (host, port.parse().map_err(|_| wrong())?)
            }
            _ => (rest, 4222),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() || host.contains('@') {
            return Err(wrong());
        }
        let is_local = host == "localhost"
            || host
                .parse::<std::net::IpAddr>()
                .is_ok_and(|address| address.is_loopback());
        if !is_local && self.ca_file.is_none() {
            return Err(Fault(format!(
                "messaging.url = {:?}: is another machine: set messaging.ca_file, so that the way there is encrypted",
                self.url
            )));
        }
        if scheme == "tls" && self.ca_file.is_none() {
            return Err(Fault(format!(
                "messaging.url = {:?}: asks for TLS: set messaging.ca_file",
                self.url
            )));
        }
        Ok((host.to_owned(), port))
    }

    /// Checks all that can be checked without a connection.
    ///
    /// # Errors
    /// When something is missing or does not fit together.
    pub fn check(&self) -> Result<(), Fault> {
        self.address()?;
        check_name("messaging.session", &self.session)?;
        if self.password.is_some() && self.password_file.is_some() {
            return Err(Fault(
                "messaging.password, messaging.password_file: only one of them".to_owned(),
            ));
        }
        if self.certificate_file.is_some() != self.key_file.is_some() {
            return Err(Fault(
                "messaging.certificate_file, messaging.key_file: both or none".to_owned(),
            ));
        }
        self.secret().map(|_| ())
    }

    /// The password.
    ///
    /// # Errors
    /// When its file cannot be read.
    pub fn secret(&self) -> Result<Option<String>, Fault> {
        match &self.password_file {
            None => Ok(self.password.clone()),
            Some(path) => std::fs::read_to_string(path)
                .map(|text| Some(text.trim_end().to_owned()))
                .map_err(|error| {
                    Fault(format!(
                        "messaging.password_file = {}: {error}",
                        path.display()
                    ))
                }),
        }
    }
}

/// A session's or node's name: one token of a subject.
///
/// # Errors
/// When it is not.
pub fn check_name(key: &str, name: &str) -> Result<(), Fault> {
    let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if name.is_empty() || name.len() > 64 || !name.bytes().all(is_fine) {
        return Err(Fault(format!(
            "{key} = {name:?}: allowed are 1 to 64 characters of A-Z a-z 0-9 _ -"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(url: &str) -> Result<(String, u16), Fault> {
        Options::local(url).address()
    }

    #[test]
    fn addresses_are_read() {
        assert_eq!(
            address("nats://127.0.0.1:4333").unwrap(),
            ("127.0.0.1".to_owned(), 4333)
        );
        assert_eq!(
            address("nats://localhost").unwrap(),
            ("localhost".to_owned(), 4222)
        );
        assert_eq!(address("nats://[::1]:5").unwrap(), ("::1".to_owned(), 5));
        for wrong in [
            "127.0.0.1:4222",
            "http://127.0.0.1",
            "nats://",
            "nats://127.0.0.1:port",
            "nats://a@b",
        ] {
            assert!(
                address(wrong).unwrap_err().0.contains("messaging.url"),
                "{wrong}"
            );
        }
    }

    #[test]
    fn another_machine_needs_tls() {
        assert!(
            address("nats://10.0.0.1:4222")
                .unwrap_err()
                .0
                .contains("ca_file")
        );
        let mut options = Options::local("nats://10.0.0.1:4222");
        options.ca_file = Some("ca.pem".into());
        assert!(options.address().is_ok());
    }

    #[test]
    fn names_are_one_token() {
        assert!(check_name("node", "client-1_a").is_ok());
        for wrong in ["", "a.b", "a b", "*", ">", "ü", &"x".repeat(65)] {
            assert!(check_name("node", wrong).is_err(), "{wrong:?}");
        }
    }
}
