//! What is refused, and what happens when things go wrong.

use crate::common::{self, Scratch};

#[test]
fn a_load_that_is_refused_makes_nothing() {
    let scratch = Scratch::new();
    let mail = ["--personality", "mailserver", "--seconds", "0.1"];
    let left = || std::fs::read_dir(scratch.path()).unwrap().count();
    for (words, named) in [
        (
            ["--record", "/proc/absent/record.csv"].as_slice(),
            "--record",
        ),
        (&["--no-fill"], "--no-fill"),
        (&["--fill-only", "--record", "/dev/null"], "--record"),
    ] {
        let (status, text) = scratch.load(&[&mail[..], words].concat()).unwrap_err();
        assert!(status == 2 && text.contains(named), "{words:?}: {text}");
        assert_eq!(left(), 0, "{words:?}");
    }
    scratch.load(&[&mail[..], &["--clean"]].concat()).unwrap();
    assert_eq!(left(), 0);
}

#[test]
fn options_are_refused_by_name() {
    let scratch = Scratch::new();
    let mail = ["--personality", "mailserver"];
    let cases: [(&[&str], &str); 12] = [
        (&["--personality", "nosuch"], "--personality"),
        (&["--wml", "/proc/absent.f"], "--wml"),
        (&[], "--personality or --wml"),
        (
            &["--personality", "mailserver", "--wml", "x"],
            "--personality and --wml",
        ),
        (
            &["--personality", "mailserver", "--seconds", "0"],
            "--seconds",
        ),
        (
            &["--personality", "mailserver", "--seconds", "soon"],
            "--seconds",
        ),
        (&["--personality", "mailserver", "--scale", "-1"], "--scale"),
        (
            &["--personality", "mailserver", "--scale", "nan"],
            "--scale",
        ),
        (
            &["--personality", "mailserver", "--threads", "0"],
            "--threads",
        ),
        (&["--personality", "mailserver", "--seed", "x"], "--seed"),
        (
            &["--personality", "mailserver", "--seed", "1", "--seed", "2"],
            "--seed",
        ),
        (
            &["--personality", "mailserver", "--frobnicate"],
            "--frobnicate",
        ),
    ];
    for (words, named) in cases {
        let (status, text) = scratch.load(words).unwrap_err();
        assert!(
            status == 2 && text.contains(named) && !text.contains('\n'),
            "{words:?}: {text}"
        );
    }
    let nowhere = [&mail[..], &["--dir", "/proc/absent"]].concat();
    let (status, text) = common::load(&nowhere).unwrap_err();
    assert!(status == 2 && text.contains("--dir"), "{text}");
    let (status, text) = common::load(&mail).unwrap_err();
    assert!(status == 2 && text.contains("--dir"), "{text}");
}

#[test]
fn files_that_vanish_end_the_load_with_one_line() {
    let scratch = Scratch::new();
    let dir = scratch.path().join("mailboxes");
    let remover = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(300));
        while std::fs::remove_dir_all(&dir).is_err() {}
    });
    let begun = std::time::Instant::now();
    let (status, text) = scratch
        .load(&["--personality", "mailserver", "--seconds", "30"])
        .unwrap_err();
    remover.join().unwrap();
    assert!(
        status == 1 && !text.contains('\n') && text.contains("mailboxes"),
        "{text}"
    );
    assert!(begun.elapsed().as_secs() < 25);
}

#[test]
fn a_fill_that_cannot_fit_is_refused_before_it_begins() {
    let scratch = Scratch::new();
    let (status, text) = scratch
        .load(&[
            "--personality",
            "videoserver",
            "--seconds",
            "1",
            "--scale",
            "1000",
        ])
        .unwrap_err();
    assert!(
        status == 1 && text.contains("--scale") && !text.contains('\n'),
        "{text}"
    );
    assert_eq!(scratch.files(), 0);
}
