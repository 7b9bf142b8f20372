//! Which files there are, and what is in them.

use std::fmt::Display;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde::Deserialize;

/// The longest file: more than all certificates that a system trusts.
const BYTES_MAX: u64 = 4 << 20;

/// Files of TLS, in PEM.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Files {
    /// Certificates of who signed the other side's.
    pub ca: Option<PathBuf>,
    /// Our own certificate, and those between it and its CA,
    pub certificate: Option<PathBuf>,
    /// and its key.
    pub key: Option<PathBuf>,
}

impl Files {
    /// Their paths.
    pub fn paths(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        let all = [&mut self.ca, &mut self.certificate, &mut self.key];
        all.into_iter().flatten()
    }

    /// The same, for reading.
    pub(crate) fn each(&self) -> impl Iterator<Item = &Path> {
        let all = [&self.ca, &self.certificate, &self.key];
        all.into_iter().flatten().map(PathBuf::as_path)
    }
}

/// A file under its key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keyed<'a> {
    pub(crate) key: &'a str,
    pub(crate) path: &'a Path,
}

impl Keyed<'_> {
    /// What is wrong with it.
    pub(crate) fn wrong(&self, what: &dyn Display) -> String {
        format!("{} = {}: {what}", self.key, self.path.display())
    }

    /// The certificates in it, at least one.
    pub(crate) fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, String> {
        let text = self.read(false)?;
        let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
        match found {
            Ok(found) if found.is_empty() => Err(self.wrong(&"holds no certificate in PEM")),
            Ok(found) => Ok(found),
            Err(error) => Err(self.wrong(&mistake(&error))),
        }
    }

    /// The private key in it, which nobody else may read.
    pub(crate) fn private_key(&self) -> Result<PrivateKeyDer<'static>, String> {
        let text = self.read(true)?;
        PrivateKeyDer::from_pem_slice(&text).map_err(|error| match error {
            pem::Error::NoItemsFound => {
                self.wrong(&"holds no private key in PEM; one with a passphrase is not read")
            }
            other => self.wrong(&mistake(&other)),
        })
    }

    /// All of it. Not a FIFO that somebody put there: that would wait for a writer.
    fn read(&self, is_secret: bool) -> Result<Vec<u8>, String> {
        let wrong = |error: std::io::Error| match error.kind() {
            ErrorKind::NotFound => self.wrong(&"is not there"),
            _ => self.wrong(&error),
        };
        let file = File::options()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(self.path)
            .map_err(wrong)?;
        let about = file.metadata().map_err(wrong)?;
        if !about.is_file() {
            return Err(self.wrong(&"is not a file"));
        }
        if is_secret && about.mode() & 0o007 != 0 {
            return Err(self.wrong(&"others can read the key: `chmod o= ` it"));
        }
        let mut text = Vec::new();
        file.take(BYTES_MAX + 1)
            .read_to_end(&mut text)
            .map_err(wrong)?;
        if text.len() as u64 > BYTES_MAX {
            return Err(self.wrong(&format_args!("is longer than {BYTES_MAX} bytes")));
        }
        Ok(text)
    }
}

/// What is wrong with a text in PEM, in one line: what it says of itself may hold any bytes.
fn mistake(error: &pem::Error) -> &'static str {
    match error {
        pem::Error::MissingSectionEnd { .. } => "its PEM has a section without an end",
        pem::Error::IllegalSectionStart { .. } => "its PEM has a section with a broken beginning",
        pem::Error::Base64Decode(_) => "its PEM is no base64",
        _ => "is no PEM",
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_is_no_certificate_and_no_key_is_told() {
        let name = format!("ascar-tls-files-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir(&folder).unwrap();
        let path = folder.join("it.pem");
        let keyed = Keyed {
            key: "certificate",
            path: &path,
        };
        let said = |text: &[u8], mode: u32| {
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            let (one, other) = (keyed.certificates().err(), keyed.private_key().err());
            [one.unwrap_or_default(), other.unwrap_or_default()]
        };
        assert!(keyed.certificates().unwrap_err().ends_with("is not there"));
        for text in [
            &b""[..],
            b"\xff\xfe\0",
            b"-----BEGIN CERTIFICATE-----\n",
            b"-----BEGIN CERTIFICATE-----\n!!!!\n-----END CERTIFICATE-----\n",
            b"-----BEGIN PRIVATE KEY-----\n!!!!\n-----END PRIVATE KEY-----\n",
            b"-----BEGIN \n",
        ] {
            for line in said(text, 0o600) {
                assert!(line.starts_with("certificate = /"), "{line}");
                assert!(!line.contains('\n'), "{line}");
            }
        }
        assert!(said(b"", 0o604)[1].contains("others can read the key"));
        let folder_itself = Keyed {
            key: "ca",
            path: &folder,
        };
        let line = folder_itself.certificates().unwrap_err();
        assert!(line.ends_with("is not a file"), "{line}");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
