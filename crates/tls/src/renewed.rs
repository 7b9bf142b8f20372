//! What is read from files, again when they were replaced.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use crate::Files;

/// What a file is now: another one, or another time, means another content. None where it cannot be looked at.
type Stamp = Option<(u64, u64, i64, i64, u64)>;

/// A value that is made of files.
#[derive(Debug)]
pub struct Renewed<T> {
    files: Files,
    read: fn(&Files) -> Result<T, String>,
    current: Mutex<Current<T>>,
}

#[derive(Debug)]
struct Current<T> {
    /// Of the files that the value is made of.
    stamps: Vec<Stamp>,
    value: Arc<T>,
    /// What was said last of files that are wrong.
    said: Option<String>,
}

impl<T> Renewed<T> {
    /// Reads the files.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn open(files: Files, read: fn(&Files) -> Result<T, String>) -> Result<Self, String> {
        // Before the content: what is replaced meanwhile is read again.
        let stamps = stamps(&files);
        let value = Arc::new(read(&files)?);
        Ok(Self {
            files,
            read,
            current: Mutex::new(Current {
                stamps,
                value,
                said: None,
            }),
        })
    }

    /// The value of the files as they are now. Where they were replaced by something wrong, it stays as it was, and
    /// `say` is told why, once. They are read again until they are right: what makes them so may leave no trace, as
    /// `chmod` does.
    pub fn current(&self, say: impl FnOnce(&str)) -> Arc<T> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let now = stamps(&self.files);
        if current.stamps != now {
            match (self.read)(&self.files) {
                Ok(value) => {
                    *current = Current {
                        stamps: now,
                        value: Arc::new(value),
                        said: None,
                    };
                }
                Err(why) if current.said.as_ref() == Some(&why) => {}
                Err(why) => {
                    say(&why);
                    current.said = Some(why);
                }
            }
        } else {
            current.said = None;
        }
        Arc::clone(&current.value)
    }
}

fn stamps(files: &Files) -> Vec<Stamp> {
    files.each().map(stamp).collect()
}

fn stamp(path: &Path) -> Stamp {
    let found = path.metadata().ok()?;
    Some((
        found.dev(),
        found.ino(),
        found.mtime(),
        found.mtime_nsec(),
        found.size(),
    ))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn length(files: &Files) -> Result<usize, String> {
        let path = files.ca.as_ref().unwrap();
        let text = std::fs::read(path).map_err(|error| error.to_string())?;
        if text.is_empty() {
            return Err("it is empty".to_owned());
        }
        Ok(text.len())
    }

    #[test]
    fn what_is_replaced_is_read_again_and_what_is_wrong_is_not_taken() {
        let name = format!("ascar-tls-renewed-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let files = Files {
            ca: Some(path.clone()),
            ..Files::default()
        };
        assert!(Renewed::open(files.clone(), length).is_err());
        std::fs::write(&path, "a").unwrap();
        let renewed = Renewed::open(files, length).unwrap();
        let current = || {
            let mut said = String::new();
            let value = renewed.current(|why| why.clone_into(&mut said));
            (*value, said)
        };
        assert_eq!(current(), (1, String::new()));
        std::fs::write(&path, "abc").unwrap();
        assert_eq!(current(), (3, String::new()));
        std::fs::write(&path, "").unwrap();
        assert_eq!(current(), (3, "it is empty".to_owned()));
        assert_eq!(current(), (3, String::new()), "once");
        std::fs::remove_file(&path).unwrap();
        let (value, said) = current();
        assert!(value == 3 && said.contains("No such file"), "{said}");
        std::fs::write(&path, "ab").unwrap();
        assert_eq!(current(), (2, String::new()));
        std::fs::remove_file(&path).unwrap();
    }

    /// As the reading of a key: one that others can read is refused.
    fn own(files: &Files) -> Result<usize, String> {
        let path = files.ca.as_ref().unwrap();
        match path.metadata().unwrap().mode() & 0o007 {
            0 => length(files),
            _ => Err("others can read it".to_owned()),
        }
    }

    #[test]
    fn what_is_mended_without_being_replaced_is_read_again() {
        let name = format!("ascar-tls-mended-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let put = |text: &str, mode: u32| {
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        };
        put("a", 0o600);
        let files = Files {
            ca: Some(path.clone()),
            ..Files::default()
        };
        let renewed = Renewed::open(files, own).unwrap();
        let said = std::cell::RefCell::new(Vec::new());
        let current = || *renewed.current(|why| said.borrow_mut().push(why.to_owned()));
        put("abc", 0o604);
        assert_eq!((current(), current()), (1, 1));
        assert_eq!(*said.borrow(), ["others can read it"]);
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        assert_eq!(current(), 3);
        put("abcd", 0o604);
        assert_eq!(current(), 3);
        assert_eq!(said.borrow().len(), 2, "another mistake is another word");
        std::fs::remove_file(&path).unwrap();
    }
}
