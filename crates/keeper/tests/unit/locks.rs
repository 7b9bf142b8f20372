//! Locks that outlive the session that took them.

use ascar_keeper::locks::{self, DIRECTORY, Held, Locks};

#[test]
fn a_lock_is_held_until_whoever_restores_is_done() {
    if !nix::unistd::geteuid().is_root() {
        return; // only root may write where lock files live
    }
    let name = format!("test.{}.held", std::process::id());
    let held = Held::default();
    let mut first = Locks::new(
        "the first",
        std::path::Path::new(locks::DIRECTORY),
        std::path::Path::new("/nowhere"),
        Held::clone(&held),
    );
    first.take(&name).unwrap();
    drop(first);
    let mut second = Locks::new(
        "the second",
        std::path::Path::new(locks::DIRECTORY),
        std::path::Path::new("/nowhere"),
        Held::default(),
    );
    let refused = second.take(&name).unwrap_err().message;
    assert!(refused.contains("is locked by \"the first\""), "{refused}");
    drop(held);
    second.take(&name).unwrap();
    std::fs::remove_file(format!("{DIRECTORY}/{name}.lock")).unwrap();
}
