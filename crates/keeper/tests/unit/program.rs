use std::time::{Duration, Instant};

use ascar_keeper::fault::Kind;
use ascar_keeper::interrupt::{Interrupt, Limit};
use ascar_keeper::program::run;

const SHELL: &str = "sh";

fn with_limit<T>(allowed: Duration, work: impl FnOnce(&Limit) -> T) -> T {
    let interrupt = Interrupt::new().unwrap();
    work(&Limit::new(&interrupt, allowed))
}

#[test]
fn a_program_sees_only_a_fixed_environment() {
    let finished = with_limit(Duration::from_secs(60), |limit| {
        run("env", &[] as &[&str], limit)
    })
    .unwrap();
    let mut lines: Vec<_> = finished.stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["LC_ALL=C", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"]);
}

#[test]
fn failure_comes_with_status_and_last_words() {
    let script = "echo out; echo first >&2; echo last words >&2; exit 3";
    let finished = with_limit(Duration::from_secs(60), |limit| {
        run(SHELL, &["-c", script], limit)
    })
    .unwrap();
    assert_eq!(finished.stdout, "out");
    let fault = finished.success("thing").unwrap_err();
    assert_eq!(fault.kind, Kind::Failed);
    assert_eq!(fault.message, "thing: exit status 3: last words");
    assert_eq!(fault.stderr, "first\nlast words");
}

#[test]
fn output_without_end_is_cut_to_its_tail() {
    let script = "yes 0123456789 | head -c 10000000; echo end";
    let finished = with_limit(Duration::from_secs(60), |limit| {
        run(SHELL, &["-c", script], limit)
    })
    .unwrap();
    assert!(finished.stdout.len() <= 16 * 1024);
    assert!(finished.stdout.ends_with("end"));
}

#[test]
fn a_program_over_its_time_is_killed_with_what_it_started() {
    let mark = format!("1000.{}", std::process::id());
    let script = format!("echo stuck >&2; sleep {mark} & sleep {mark}; echo never");
    let fault_after = |seconds| {
        let fault = with_limit(Duration::from_secs(seconds), |limit| {
            run(SHELL, &["-c", &script], limit)
        })
        .unwrap_err();
        assert_eq!(fault.kind, Kind::Timeout);
        fault
    };
    let started = Instant::now();
    // On a busy machine the shell may not come to say it in a second.
    let said = [1, 4, 16]
        .into_iter()
        .any(|seconds| fault_after(seconds).stderr == "stuck");
    assert!(said);
    assert!(started.elapsed() < Duration::from_secs(60));
    let command = |entry: std::fs::DirEntry| {
        std::fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default()
    };
    let left = || {
        std::fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .any(|entry| command(entry).contains(&mark))
    };
    let deadline = Instant::now() + Duration::from_secs(60);
    while left() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(!left());
}

#[test]
fn the_end_of_the_session_stops_a_program() {
    let interrupt = Interrupt::new().unwrap();
    let started = Instant::now();
    let fault = std::thread::scope(|scope| {
        let limit = Limit::new(&interrupt, Duration::from_secs(60));
        let running = scope.spawn(move || run("sleep", &["60"], &limit));
        std::thread::sleep(Duration::from_millis(100));
        interrupt.raise();
        running.join().unwrap().unwrap_err()
    });
    assert_eq!(fault.kind, Kind::Failed);
    assert!(started.elapsed() < Duration::from_secs(30));
}

#[test]
fn a_missing_program_is_named_with_where_it_was_looked_for() {
    let fault = with_limit(Duration::from_secs(1), |limit| {
        run("no-such-program", &[] as &[&str], limit)
    })
    .unwrap_err();
    assert_eq!(fault.kind, Kind::Input);
    assert!(
        fault
            .message
            .contains("no-such-program is not installed in /usr/sbin:"),
        "{}",
        fault.message
    );
}
