use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ascar_keeper::started::{Started, VARIABLE};

/// A mark of this process: other runs of these tests, at the same time, have others.
fn mark(number: u8) -> String {
    format!("{:024x}{number:08x}", std::process::id())
}

/// A shell script as the leader of a session of its own, and what `--end` calls it.
fn start(script: &str, mark: &str) -> (Child, Started) {
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", script])
        .env(VARIABLE, mark)
        .stdin(Stdio::null());
    // SAFETY: setsid is async-signal-safe.
    unsafe {
        command.pre_exec(|| Ok(nix::unistd::setsid().map(|_| ())?));
    }
    let child = command.spawn().unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    let began = stat
        .rsplit_once(')')
        .unwrap()
        .1
        .split_whitespace()
        .nth(19)
        .unwrap();
    let started = Started::parse(&format!("{}:{began}:{mark}", child.id())).unwrap();
    (child, started)
}

fn until(condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_program_ends_with_its_children_and_with_those_that_left_its_session() {
    let (mut child, started) = start("setsid sleep 1000 & env -i sleep 1000 & wait", &mark(1));
    until(|| started.processes().len() == 3);
    let reaper = std::thread::spawn(move || child.wait());
    started.end(Duration::from_secs(30)).unwrap();
    assert!(started.processes().is_empty());
    reaper.join().unwrap().unwrap();
}

#[test]
fn one_that_ignores_the_request_is_killed() {
    let (mut child, started) = start("trap '' TERM; sleep 1000 & wait", &mark(2));
    // The sleep begins after the trap: a request before it would end the shell.
    until(|| started.processes().len() == 2);
    let reaper = std::thread::spawn(move || child.wait());
    let begun = Instant::now();
    started.end(Duration::from_millis(200)).unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(200));
    assert!(started.processes().is_empty());
    reaper.join().unwrap().unwrap();
}

#[test]
fn another_process_of_the_same_number_is_left_alone() {
    let (mut child, _) = start("exec sleep 1000", &mark(3));
    let other = Started::parse(&format!("{}:1:{}", child.id(), mark(4))).unwrap();
    assert!(other.processes().is_empty());
    other.end(Duration::ZERO).unwrap();
    assert!(child.try_wait().unwrap().is_none());
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn what_ascar_did_not_write_is_refused() {
    for text in [
        "",
        "12",
        "12:13",
        "1:13:0123456789abcdef0123456789abcdef",
        "-5:13:0123456789abcdef0123456789abcdef",
        "12:13:mark",
        "12:x:0123456789abcdef0123456789abcdef",
    ] {
        let fault = Started::parse(text).unwrap_err();
        assert!(fault.message.starts_with("--end = "), "{}", fault.message);
    }
}
