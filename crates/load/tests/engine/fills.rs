//! File sets: used again, cleaned, and what is nobody's business.

use crate::common::{self, Scratch};
use crate::wml;

#[test]
fn a_fill_is_used_again_by_whom_it_fits() {
    let scratch = Scratch::new();
    let mail = ["--personality", "mailserver"];
    let refused = scratch
        .load(&[&mail[..], &["--no-fill"]].concat())
        .unwrap_err();
    assert!(
        refused.0 == 2 && refused.1.contains("--fill-only"),
        "{refused:?}"
    );
    let filled = scratch
        .load(&[&mail[..], &["--fill-only"]].concat())
        .unwrap();
    assert_eq!(
        (filled[0]["files"].as_u64(), scratch.files()),
        (Some(800), 800)
    );
    let run = [&mail[..], &["--no-fill", "--seconds", "0.2", "--seed", "5"]].concat();
    for _ in 0..2 {
        let before = scratch.files() as u64;
        let lines = scratch.load(&run).unwrap();
        assert_ne!(lines[0]["kind"], "fill");
        assert_eq!(lines.last().unwrap()["data_files"], before);
    }
    let other = scratch
        .load(&["--personality", "mailserver", "--scale", "2", "--no-fill"])
        .unwrap_err();
    assert!(
        other.0 == 2 && other.1.contains("another workload"),
        "{other:?}"
    );
    // A fresh fill after a run that changed the files makes all anew.
    let again = scratch
        .load(&[&mail[..], &["--fill-only"]].concat())
        .unwrap();
    assert_eq!(
        (again[0]["files_made"].as_u64(), scratch.files()),
        (Some(800), 800)
    );
    let kept = scratch
        .load(&[&mail[..], &["--fill-only"]].concat())
        .unwrap();
    assert_eq!(kept[0]["files_made"], 0);
    scratch.load(&["--clean"]).unwrap();
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0);
}

#[test]
fn nothing_foreign_is_touched() {
    let scratch = Scratch::new();
    let foreign = scratch.path().join("mailboxes");
    std::fs::create_dir(&foreign).unwrap();
    std::fs::write(foreign.join("precious"), "x").unwrap();
    let refused = scratch
        .load(&["--personality", "mailserver", "--seconds", "1", "--clean"])
        .unwrap_err();
    assert!(
        refused.0 == 2 && refused.1.contains("mailboxes"),
        "{refused:?}"
    );
    assert!(foreign.join("precious").exists());
    std::fs::write(
        scratch.path().join(".ascar-load.json"),
        "{\"format\":1,\"fingerprint\":\"\",\"seed\":1,\
        \"filesets\":[\"../escape\"],\"complete\":true,\"changed\":false}",
    )
    .unwrap();
    let refused = scratch.load(&["--clean"]).unwrap_err();
    assert!(refused.1.contains("outside"), "{refused:?}");
}

#[test]
fn what_has_the_name_of_the_note_is_left_alone() {
    let (scratch, other) = (Scratch::new(), Scratch::new());
    let note = scratch.path().join(".ascar-load.json");
    let elsewhere = other.path().join("empty");
    std::fs::write(&elsewhere, "").unwrap();
    std::os::unix::fs::symlink(&elsewhere, &note).unwrap();
    let words = ["--personality", "mailserver", "--seconds", "0.1"];
    let (status, text) = scratch.load(&words).unwrap_err();
    assert!(status == 2 && text.contains(".ascar-load.json"), "{text}");
    assert_eq!(std::fs::metadata(&elsewhere).unwrap().len(), 0);
    std::fs::remove_file(&note).unwrap();
    let name = std::ffi::CString::new(note.to_str().unwrap()).unwrap();
    // SAFETY: the name ends with NUL.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    let (status, text) = scratch.load(&words).unwrap_err();
    assert!(status == 2 && text.contains("is not a file"), "{text}");
    assert!(note.symlink_metadata().is_ok(), "it stays");
}

#[test]
fn cleaning_leaves_what_no_load_made() {
    let scratch = Scratch::new();
    let words = ["--personality", "webserver", "--scale", "0.2"];
    scratch
        .load(&[&words[..], &["--fill-only"]].concat())
        .unwrap();
    let set = std::fs::read_dir(scratch.path())
        .unwrap()
        .map(|item| item.unwrap().path())
        .find(|path| path.is_dir() && path.join("000001").is_dir())
        .unwrap();
    let outside = scratch.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("000000001"), "x").unwrap();
    std::fs::write(set.join("000001/notes.txt"), "x").unwrap();
    std::os::unix::fs::symlink(&outside, set.join("999999")).unwrap();
    let refused = scratch.load(&["--clean"]).unwrap_err();
    assert!(refused.0 == 1 && refused.1.contains("stays"), "{refused:?}");
    assert!(set.join("000001/notes.txt").exists() && outside.join("000000001").exists());
    std::fs::remove_file(set.join("000001/notes.txt")).unwrap();
    std::fs::remove_file(set.join("999999")).unwrap();
    scratch.load(&["--clean"]).unwrap();
    assert!(!set.exists() && outside.join("000000001").exists());
    assert!(!scratch.path().join(".ascar-load.json").exists());
}

#[test]
fn a_signal_ends_the_removal_of_an_earlier_fill_and_nothing_is_lost_of_it() {
    let scratch = Scratch::new();
    let text = wml(
        "entries=5000,size=0,dirwidth=20,prealloc",
        "thread name=t { flowop statfile name=s,filesetname=f }",
    );
    let file = scratch.wml(&text);
    scratch
        .load(&["--wml", &file, "--fill-only"])
        .expect("filled");
    let terminate = || {
        // SAFETY: the set is valid; the signal is held back from this thread before it is sent to it.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            libc::sigaddset(&raw mut set, libc::SIGTERM);
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
            assert_eq!(libc::raise(libc::SIGTERM), 0);
        }
    };
    // Another seed: the earlier files do not fit.
    let other = ["--wml", &file, "--seconds", "0.05", "--seed", "2"];
    terminate();
    assert_eq!(scratch.load(&other).unwrap_err().0, 3);
    assert!(scratch.files() > 4900);
    let refused = scratch.load(&["--wml", &file, "--seconds", "0.05", "--no-fill"]);
    assert_eq!(refused.unwrap_err().0, 2);
    terminate();
    let dir = scratch.path().display().to_string();
    let (status, text) = common::load(&["--dir", &dir, "--clean"]).unwrap_err();
    assert_eq!(status, 1);
    assert!(text.contains("--clean"), "{text}");
    assert!(scratch.load(&other).is_ok());
    assert_eq!(scratch.files(), 5000);
    terminate();
    let cleaned = [&other[..], &["--seed=3", "--clean"]].concat();
    let cleaned: Vec<&str> = cleaned
        .into_iter()
        .filter(|w| *w != "--seed" && *w != "2")
        .collect();
    assert_eq!(scratch.load(&cleaned).unwrap_err().0, 3);
    assert_eq!(scratch.files(), 0);
}
