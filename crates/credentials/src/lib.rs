//! Who we are, by a `.creds` file of a NATS server's operator: the user's token (a JWT that the account has signed) and
//! the seed of an Ed25519 key, with which the nonce of the server's greeting is signed. The seed never leaves the machine.

mod text;

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use ring::signature::Ed25519KeyPair;

/// Longest file, and longest nonce.
const BYTES_MAX: u64 = 64 * 1024;
/// First five bits of a seed, and of a user's: `S` and `U` in base 32.
const SEED: u8 = 18 << 3;
const USER: u8 = 20 << 3;

/// A user.
#[derive(Debug)]
pub struct Credentials {
    token: String,
    key: Ed25519KeyPair,
}

/// What a login has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// For the key `jwt`.
    pub token: String,
    /// For the key `sig`: base 64, as in URLs, without padding.
    pub signature: String,
}

impl Credentials {
    /// Reads a file, which nobody else may read.
    ///
    /// # Errors
    /// What is wrong with it; nothing of its content.
    pub fn read(path: &Path) -> Result<Self, String> {
        let wrong = |what: &dyn std::fmt::Display| format!("credentials = {path:?}: {what}");
        let file = std::fs::File::open(path).map_err(|error| wrong(&error))?;
        let about = file.metadata().map_err(|error| wrong(&error))?;
        if !about.is_file() {
            return Err(wrong(&"is not a file"));
        }
        if about.permissions().mode() & 0o077 != 0 {
            return Err(wrong(&"others can read the secret in it: `chmod 600` it"));
        }
        let mut content = String::new();
        file.take(BYTES_MAX + 1)
            .read_to_string(&mut content)
            .map_err(|error| wrong(&error))?;
        if content.len() as u64 > BYTES_MAX {
            return Err(wrong(&"larger than 64 KiB: it is no .creds file"));
        }
        Self::parse(&content).map_err(|what| wrong(&what))
    }

    /// Takes a file's text.
    ///
    /// # Errors
    /// What is missing or damaged; nothing of what is secret.
    pub fn parse(content: &str) -> Result<Self, String> {
        let token = block(content, "NATS USER JWT")?;
        let is_token = token.split('.').count() == 3
            && token
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte));
        if !is_token {
            return Err("its NATS USER JWT is damaged: ask for the file again".to_owned());
        }
        let key = key(block(content, "USER NKEY SEED")?)
            .ok_or("its USER NKEY SEED is none of a user, or damaged: ask for the file again")?;
        Ok(Self {
            token: token.to_owned(),
            key,
        })
    }

    /// What is said to a server that greets with `nonce`.
    ///
    /// # Errors
    /// When the nonce is none.
    pub fn login(&self, nonce: &str) -> Result<Login, String> {
        if nonce.is_empty() || nonce.len() as u64 > BYTES_MAX {
            return Err("the server wants no signature: is it set up with an operator?".to_owned());
        }
        Ok(Login {
            token: self.token.clone(),
            signature: text::to_base64(self.key.sign(nonce.as_bytes()).as_ref()),
        })
    }
}

/// The line between `BEGIN name` and `END name`.
fn block<'a>(content: &'a str, name: &str) -> Result<&'a str, String> {
    let is_fence = |line: &str, word: &str| {
        let inner = line.trim().trim_matches('-');
        line.trim().starts_with("-----") && inner.trim() == format!("{word} {name}")
    };
    let mut lines = content.lines().skip_while(|line| !is_fence(line, "BEGIN"));
    let found = (lines.next(), lines.next(), lines.next());
    match found {
        (Some(_), Some(value), Some(end)) if is_fence(end, "END") => Ok(value.trim()),
        _ => Err(format!("has no block {name}: it is no .creds file")),
    }
}

/// Of a seed: two bytes that say whose, 32 of the key, two that check them (CRC-16/XMODEM).
fn key(seed: &str) -> Option<Ed25519KeyPair> {
    let bytes = text::from_base32(seed)?;
    let (body, check) = bytes.split_last_chunk::<2>()?;
    let is_user = body.len() == 34
        && body[0] & 0xf8 == SEED
        && (body[0] & 7) << 5 | (body[1] & 0xf8) >> 3 == USER
        && u16::from_le_bytes(*check) == text::crc16(body);
    is_user
        .then(|| Ed25519KeyPair::from_seed_unchecked(&body[2..]).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::signature::KeyPair;

    // Of the nkeys documentation's kind: the seed of 32 bytes of 7.
    fn seed(kind: u8) -> String {
        let mut bytes = vec![SEED | kind >> 5, kind << 3];
        bytes.extend([7; 32]);
        let check = text::crc16(&bytes);
        bytes.extend(check.to_le_bytes());
        text::to_base32(&bytes)
    }

    fn file(seed: &str) -> String {
        format!(
            "-----BEGIN NATS USER JWT-----\na.b-_.c\n------END NATS USER JWT------\n\n*** IMPORTANT ***\n\n\
             -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n\n***\n"
        )
    }

    #[test]
    fn a_nonce_is_signed() {
        assert!(seed(USER).starts_with("SU"));
        let user = Credentials::parse(&file(&seed(USER))).unwrap();
        let login = user.login("nonce").unwrap();
        assert_eq!(login.token, "a.b-_.c");
        assert_eq!(login.signature.len(), 86);
        let public = user.key.public_key();
        let key = ring::signature::UnparsedPublicKey::new(&ring::signature::ED25519, public);
        assert!(
            key.verify(b"nonce", user.key.sign(b"nonce").as_ref())
                .is_ok()
        );
        assert!(!format!("{user:?}").contains(&seed(USER)));
        assert!(user.login("").unwrap_err().contains("operator"));
        // With the line ends of another system.
        let there = file(&seed(USER)).replace('\n', "\r\n");
        assert_eq!(
            Credentials::parse(&there).unwrap().login("nonce").unwrap(),
            login
        );
    }

    #[test]
    fn what_is_damaged_is_refused_and_not_told() {
        let good = seed(USER);
        let account = seed(0);
        let mut turned = good.clone();
        turned.replace_range(10..11, if &good[10..11] == "A" { "B" } else { "A" });
        for wrong in [
            &good[..20],
            &turned,
            "",
            "!!!",
            &account,
            &"A".repeat(10_000),
        ] {
            let fault = Credentials::parse(&file(wrong)).unwrap_err();
            assert!(fault.contains("USER NKEY SEED"), "{fault}");
            assert!(wrong.len() < 10 || !fault.contains(wrong), "{fault}");
        }
        for wrong in [
            "",
            "-----BEGIN NATS USER JWT-----",
            "-----BEGIN NATS USER JWT-----\na.b.c\nmore\n",
        ] {
            assert!(
                Credentials::parse(wrong)
                    .unwrap_err()
                    .contains("no .creds file")
            );
        }
        let token = file(&good).replace("a.b-_.c", "a.b\"c");
        assert!(Credentials::parse(&token).unwrap_err().contains("JWT"));
    }

    #[test]
    fn a_file_that_others_can_read_is_refused() {
        let path = std::env::temp_dir().join(format!("ascar-{}.creds", std::process::id()));
        let written = |mode: u32| {
            std::fs::write(&path, file(&seed(USER))).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            Credentials::read(&path)
        };
        assert!(written(0o600).is_ok());
        assert!(written(0o640).unwrap_err().contains("chmod 600"));
        std::fs::remove_file(&path).unwrap();
        assert!(
            Credentials::read(&path)
                .unwrap_err()
                .contains("credentials = ")
        );
        assert!(
            Credentials::read(&std::env::temp_dir())
                .unwrap_err()
                .contains("not a file")
        );
    }
}
