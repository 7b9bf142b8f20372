//! The replay database of a session, as somebody else's or as a damaged disk leaves it.

use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};

use ascar_interface::history::{Reader, Request};
use ascar_interface::merge::merge;
use ascar_interface::schema;
use serde_json::Value;

use crate::scratch;

const RANGE: &str = r#"{"version": 1, "from_tick": 0, "to_tick": 100}"#;
const EXTENT: &str = r#"{"version": 1, "extent": true}"#;

struct Place {
    folder: PathBuf,
    reader: Reader,
}

static PLACE: LazyLock<Mutex<Place>> = LazyLock::new(|| {
    let folder = scratch().join("replay");
    std::fs::create_dir_all(&folder).expect("a folder can be made in memory");
    let reader = Reader::start().expect("a thread can be started");
    Mutex::new(Place { folder, reader })
});

/// Reads it in all ways, merges it with itself, and opens it to go on.
pub fn database(bytes: &[u8]) {
    let place = PLACE.lock().unwrap_or_else(PoisonError::into_inner);
    let (path, into) = (
        place.folder.join("replay.sqlite"),
        place.folder.join("merged.sqlite"),
    );
    remove(&path);
    std::fs::write(&path, bytes).expect("a file can be written in memory");
    let read = |text| serde_json::from_str::<Request>(text).expect("a request is well formed");
    for request in [Request::audit(10), read(EXTENT), read(RANGE)] {
        place
            .reader
            .ask(&path, "reply", request, true)
            .expect("nothing else waits");
        // A plain reply comes last, and alone is JSON as a whole.
        let is_last = |payload: &[u8]| serde_json::from_slice::<Value>(payload).is_ok();
        while !is_last(&place.reader.parts.recv().expect("the reader lives").payload) {}
    }
    let _ = merge(&[path.clone(), path.clone()], &into);
    remove(&into);
    if let Ok(connection) = schema::open(&path) {
        let _ = schema::last_tick(&connection);
    }
}

fn remove(path: &Path) {
    for end in ["", "-wal", "-shm", "-journal", ".draft"] {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        let _ = std::fs::remove_file(name);
    }
}
