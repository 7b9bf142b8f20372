//! Where the server is, and who we are.

use std::path::{Path, PathBuf};

use ascar_log::Fault;
use ascar_tls::Files;
use serde::Deserialize;

/// How to connect: the keys of a connection file, the same as Python's side reads.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// `nats://HOST:PORT` on this machine, or `tls://HOST:PORT`.
    pub url: String,
    /// The account's user.
    pub user: Option<String>,
    /// Its password.
    pub password: Option<String>,
    /// Instead of both.
    pub token: Option<String>,
    /// Instead of these: a `.creds` file of the server's operator.
    pub credentials: Option<PathBuf>,
    /// Files of TLS.
    #[serde(default)]
    pub tls: Files,
}

impl std::fmt::Debug for Options {
    /// Without secrets.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            formatter,
            "Options {{ url: {:?}, user: {:?} }}",
            self.url, self.user
        )
    }
}

/// Longest connection file.
const FILE_BYTES_MAX: u64 = 64 * 1024;

impl Options {
    /// A server on this machine.
    pub fn local(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            user: None,
            password: None,
            token: None,
            credentials: None,
            tls: Files::default(),
        }
    }

    /// Reads a connection file. Paths in it are relative to its folder.
    ///
    /// # Errors
    /// When it cannot be read, others may read its secrets, or a key is wrong.
    pub fn read(path: &Path) -> Result<Self, Fault> {
        use std::os::unix::fs::PermissionsExt;
        let wrong = |what: &dyn std::fmt::Display| {
            Fault(format!("connection file {}: {what}", path.display()))
        };
        let about = std::fs::metadata(path).map_err(|error| wrong(&error))?;
        if about.len() > FILE_BYTES_MAX {
            return Err(wrong(&"larger than 64 KiB: it is no connection file"));
        }
        let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
        let mut options: Self = toml::from_str(&text).map_err(|error| wrong(&error.message()))?;
        let has_secret = options.password.is_some() || options.token.is_some();
        if has_secret && about.permissions().mode() & 0o077 != 0 {
            return Err(wrong(&"others can read the secret in it: `chmod 600` it"));
        }
        if let Some(folder) = path.parent() {
            for file in options.tls.paths().chain(&mut options.credentials) {
                *file = folder.join(&*file);
            }
        }
        options.check()?;
        Ok(options)
    }

    /// Host and port.
    ///
    /// # Errors
    /// When the address is none, or another machine's and TLS is not set up.
    pub fn address(&self) -> Result<(String, u16), Fault> {
        let shown = &self.url;
        let wrong = || {
            Fault(format!(
                "url = {shown:?}: must be nats://HOST:PORT or tls://HOST:PORT"
            ))
        };
        let (scheme, rest) = self.url.split_once("://").ok_or_else(wrong)?;
        if scheme != "nats" && scheme != "tls" {
            return Err(wrong());
        }
        let rest = rest.trim_end_matches('/');
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
                (host, port.parse().map_err(|_| wrong())?)
            }
            _ => (rest, 4222),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() || host.contains(['@', '/', ',']) || port == 0 {
            return Err(wrong());
        }
        let is_local = host == "localhost"
            || host
                .parse::<std::net::IpAddr>()
                .is_ok_and(|address| address.is_loopback());
        if scheme == "nats" && !is_local {
            return Err(Fault(format!(
                "url = {shown:?}: leaves this machine without TLS: write tls://{host}:{port}, and name the CA of the \
                 server's certificate in tls.ca"
            )));
        }
        if self.is_encrypted() && self.tls.ca.is_none() {
            return Err(Fault(format!(
                "url = {shown:?}: asks for TLS: name the CA of the server's certificate in tls.ca"
            )));
        }
        Ok((host.to_owned(), port))
    }

    /// Whether the address asks for TLS.
    pub fn is_encrypted(&self) -> bool {
        self.url.starts_with("tls://")
    }

    /// Checks all that can be checked without a connection.
    ///
    /// # Errors
    /// When something is missing or does not fit together.
    pub fn check(&self) -> Result<(), Fault> {
        self.address()?;
        let wrong = |text: &str| Err(Fault(text.to_owned()));
        let ways = [
            ("user", self.user.is_some()),
            ("token", self.token.is_some()),
            ("credentials", self.credentials.is_some()),
        ];
        let given: Vec<&str> = ways.iter().filter(|it| it.1).map(|it| it.0).collect();
        if given.len() > 1 {
            return wrong(&format!(
                "{}: give only one of these credentials",
                given.join(" and ")
            ));
        }
        if self.user.is_some() != self.password.is_some() {
            return wrong("user and password: give both or none");
        }
        if self.tls.certificate.is_some() != self.tls.key.is_some() {
            return wrong("tls.certificate and tls.key: give both or none");
        }
        if self.tls.ca.is_some() && !self.is_encrypted() {
            return wrong("tls: is of no use with a nats:// address: write tls:// instead");
        }
        Ok(())
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
            assert!(address(wrong).unwrap_err().0.contains("url = "), "{wrong}");
        }
    }

    #[test]
    fn another_machine_needs_tls() {
        assert!(
            address("nats://10.0.0.1:4222")
                .unwrap_err()
                .0
                .contains("tls.ca")
        );
        assert!(
            address("tls://10.0.0.1:4222")
                .unwrap_err()
                .0
                .contains("tls.ca")
        );
        let mut options = Options::local("tls://10.0.0.1:4222");
        options.tls.ca = Some("ca.pem".into());
        assert!(options.check().is_ok());
    }

    #[test]
    fn connection_files_are_read_and_their_secrets_guarded() {
        use std::os::unix::fs::PermissionsExt;
        let path =
            std::env::temp_dir().join(format!("ascar-connection-{}.toml", std::process::id()));
        let written = |text: &str, mode: u32| {
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            Options::read(&path)
        };
        let good =
            "url = 'tls://127.0.0.1:4222'\nuser = 'a'\npassword = 'b'\n[tls]\nca = 'ca.pem'\n";
        let options = written(good, 0o600).unwrap();
        assert_eq!(options.tls.ca, Some(std::env::temp_dir().join("ca.pem")));
        assert!(!format!("{options:?}").contains("'b'"));
        assert!(written(good, 0o644).unwrap_err().0.contains("chmod 600"));
        let named = written("url = 'nats://127.0.0.1'\ncredentials = 'a.creds'", 0o644).unwrap();
        assert_eq!(
            named.credentials,
            Some(std::env::temp_dir().join("a.creds"))
        );
        for wrong in [
            "url = 1",
            "uri = 'x'",
            "url = 'nats://127.0.0.1'\nuser = 'a'",
            "url = 'nats://127.0.0.1'\ntoken = 'a'\ncredentials = 'b.creds'",
            "\u{0}",
        ] {
            assert!(written(wrong, 0o600).is_err(), "{wrong}");
        }
        std::fs::remove_file(&path).unwrap();
        assert!(Options::read(&path).is_err());
    }

    #[test]
    fn names_are_one_token() {
        assert!(check_name("node", "client-1_a").is_ok());
        for wrong in ["", "a.b", "a b", "*", ">", "ü", &"x".repeat(65)] {
            assert!(check_name("node", wrong).is_err(), "{wrong:?}");
        }
    }
}
