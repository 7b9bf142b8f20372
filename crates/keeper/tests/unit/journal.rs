use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ascar_keeper::fault::Fault;
use ascar_keeper::journal::{
    Alone, Change, Deadline, Entry, Header, Journal, SCHEMA, Stale, Standing, Unconfirmed, stale,
    waiting,
};
use proptest::prelude::*;

use crate::scratch::Scratch;

fn header() -> Header {
    let (boot_id, owner) = ("a boot".to_owned(), "a study".to_owned());
    Header {
        schema: SCHEMA,
        boot_id,
        owner,
        pid: 42,
        uid: 0,
        started_unix_s: 1,
        machine: None,
    }
}

fn knob(name: &str) -> Change {
    Change::Knob {
        target: name.to_owned(),
        old: "1".to_owned(),
        expected: Some("2".to_owned()),
    }
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    entries
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "jsonl")
        })
        .collect()
}

fn find(directory: &Path) -> Vec<Result<Stale, Fault>> {
    let alone = Alone::wait(directory).unwrap();
    stale(directory, &alone, false).unwrap()
}

/// What a dead keeper's only journal says.
fn entries(directory: &Path) -> Vec<Entry> {
    let mut found = find(directory);
    assert_eq!(found.len(), 1);
    found.remove(0).unwrap().journal.entries().to_vec()
}

#[test]
fn a_file_is_there_only_while_something_is_changed() {
    let scratch = Scratch::new();
    let mut journal = Journal::new(scratch.path(), header());
    assert!(files(scratch.path()).is_empty());
    let numbers = journal.record(vec![knob("a"), knob("b")]).unwrap();
    assert_eq!(files(scratch.path()).len(), 1);
    journal.undone(&numbers[..1]).unwrap();
    assert_eq!(files(scratch.path()).len(), 1);
    journal.undone(&numbers[1..]).unwrap();
    assert!(files(scratch.path()).is_empty());
    journal.record(vec![knob("c")]).unwrap();
    assert_eq!(files(scratch.path()).len(), 1);
}

#[test]
fn the_journal_of_a_living_keeper_is_not_touched() {
    let scratch = Scratch::new();
    let mut journal = Journal::new(scratch.path(), header());
    journal.record(vec![knob("a")]).unwrap();
    assert!(find(scratch.path()).is_empty());
    drop(journal);
    assert_eq!(entries(scratch.path()).len(), 1);
}

#[test]
fn a_journal_that_its_keeper_removes_meanwhile_is_no_failure() {
    let scratch = Scratch::new();
    fs::write(scratch.path().join("00.jsonl"), "garbage\n").unwrap();
    let alone = Alone::wait(scratch.path()).unwrap();
    let directory = scratch.path().to_owned();
    let vanishing = directory.join("01.jsonl");
    let made = vanishing.clone();
    let end = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !end.load(std::sync::atomic::Ordering::Relaxed) {
                fs::write(&made, "").unwrap();
                let _ = fs::remove_file(&made);
            }
        });
        let mut failed = std::collections::BTreeSet::new();
        for _ in 0..3000 {
            let found = stale(&directory, &alone, false).into_iter().flatten();
            failed.extend(found.filter_map(|one| Some(one.err()?.message)));
        }
        end.store(true, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(failed.len(), 1, "the garbage alone: {failed:?}");
    });
}

#[test]
fn everything_is_found_again() {
    let scratch = Scratch::new();
    let mut journal = Journal::new(scratch.path(), header());
    let numbers = journal
        .record(vec![
            knob("a"),
            knob("b"),
            Change::Directory {
                target: "/x y".into(),
            },
        ])
        .unwrap();
    journal.found(numbers[0], Some("3".to_owned())).unwrap();
    journal.found(numbers[1], None).unwrap();
    let expected = journal.entries().to_vec();
    drop(journal);
    let found = find(scratch.path()).remove(0).unwrap();
    assert_eq!(found.journal.entries(), expected);
    assert_eq!(found.journal.header(), &header());
    assert_eq!(found.standing, Standing::Open);
}

#[test]
fn a_held_journal_says_so() {
    let scratch = Scratch::new();
    let mut journal = Journal::new(scratch.path(), header());
    journal.record(vec![knob("a")]).unwrap();
    journal.hold().unwrap();
    drop(journal);
    let found = find(scratch.path()).remove(0).unwrap();
    assert_eq!(found.standing, Standing::Held);
}

#[test]
fn what_waits_for_its_confirmation_says_until_when() {
    let scratch = Scratch::new();
    let own = Header {
        boot_id: ascar_keeper::kernel::boot_id(),
        ..header()
    };
    let mut journal = Journal::new(scratch.path(), own.clone());
    journal.record(vec![knob("a"), knob("b")]).unwrap();
    assert!(waiting(scratch.path()).is_empty());
    let unconfirmed = Unconfirmed {
        until: Deadline::after(Duration::from_secs(100)),
        locks: vec!["a".to_owned()],
    };
    journal.leave_unconfirmed(unconfirmed.clone()).unwrap();
    // Its keeper still lives: who only looks needs no lock.
    let found = waiting(scratch.path()).remove(0);
    assert_eq!((found.header, found.changes), (own.clone(), 2));
    let left = unconfirmed.left(&own).unwrap();
    assert!(left > Duration::from_secs(90) && left <= Duration::from_secs(100));
    assert_eq!(
        unconfirmed.left(&header()),
        None,
        "the deadline of another boot is over"
    );
    drop(journal);
    let mut stale = find(scratch.path()).remove(0).unwrap();
    assert_eq!(stale.standing, Standing::Unconfirmed(unconfirmed));
    stale.journal.hold().unwrap();
    drop(stale);
    assert_eq!(
        find(scratch.path()).remove(0).unwrap().standing,
        Standing::Held
    );
    assert!(waiting(scratch.path()).is_empty());
}

#[test]
fn a_deadline_that_is_over_has_no_time_left() {
    let now = Deadline::after(Duration::ZERO);
    assert_eq!(now.left(), Duration::ZERO);
    let never = Deadline {
        unix_s: 0,
        boot_ms: u64::MAX,
    };
    assert!(never.left() > Duration::from_secs(1 << 40));
}

#[test]
fn a_torn_last_line_is_dropped_and_the_journal_can_go_on() {
    let scratch = Scratch::new();
    let mut journal = Journal::new(scratch.path(), header());
    journal.record(vec![knob("a"), knob("b")]).unwrap();
    drop(journal);
    let path = files(scratch.path()).remove(0);
    let mut text = fs::read(&path).unwrap();
    text.extend(b"{\"change\":{\"n\":2,\"cha");
    fs::write(&path, text).unwrap();
    let mut found = find(scratch.path()).remove(0).unwrap();
    assert_eq!(found.journal.entries().len(), 2);
    found.journal.undone(&[0]).unwrap();
    drop(found);
    assert_eq!(entries(scratch.path()).len(), 1);
}

#[test]
fn an_empty_file_is_swept_away() {
    let scratch = Scratch::new();
    fs::write(scratch.path().join("1-1.jsonl"), "").unwrap();
    fs::write(scratch.path().join("2-1.jsonl"), "{\"schema\":1,").unwrap();
    assert!(find(scratch.path()).is_empty());
    assert!(files(scratch.path()).is_empty());
}

#[test]
fn a_newer_schema_and_garbage_are_refused_and_kept() {
    let scratch = Scratch::new();
    let newer = "{\"schema\":6,\"something\":\"new\"}\n";
    fs::write(scratch.path().join("1-1.jsonl"), newer).unwrap();
    fs::write(scratch.path().join("2-1.jsonl"), "garbage\n").unwrap();
    let good = serde_json::to_string(&header()).unwrap();
    fs::write(
        scratch.path().join("3-1.jsonl"),
        format!("{good}\n{{\"change\":7}}\n"),
    )
    .unwrap();
    let messages: Vec<String> = find(scratch.path())
        .into_iter()
        .map(|it| it.unwrap_err().message)
        .collect();
    assert_eq!(messages.len(), 3);
    assert!(messages[0].contains("3-1.jsonl: line 2"), "{messages:?}");
    assert!(
        messages[2].contains("its schema is 6, this ascard knows 1 to 5"),
        "{messages:?}"
    );
    assert_eq!(files(scratch.path()).len(), 3);
}

#[test]
fn the_newest_is_undone_first() {
    let scratch = Scratch::new();
    for name in ["first", "second", "third"] {
        let mut journal = Journal::new(
            scratch.path(),
            Header {
                owner: name.to_owned(),
                ..header()
            },
        );
        journal.record(vec![knob("a")]).unwrap();
    }
    let owners: Vec<String> = find(scratch.path())
        .into_iter()
        .map(|it| it.unwrap().journal.header().owner.clone())
        .collect();
    assert_eq!(owners, ["third", "second", "first"]);
}

#[test]
fn a_sealed_journal_takes_no_new_change_and_a_frozen_one_keeps_its_file() {
    let scratch = Scratch::new();
    let mut journal = Journal::new(scratch.path(), header());
    let numbers = journal.record(vec![knob("a")]).unwrap();
    journal.seal();
    assert!(journal.record(vec![knob("b")]).is_err());
    journal.freeze();
    journal.undone(&numbers).unwrap();
    assert!(journal.entries().is_empty());
    drop(journal);
    assert_eq!(entries(scratch.path()).len(), 1);
}

#[test]
fn a_directory_that_others_may_write_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = Scratch::new();
    let place = scratch.path().join("journal");
    fs::create_dir(&place).unwrap();
    fs::set_permissions(&place, fs::Permissions::from_mode(0o777)).unwrap();
    assert!(
        Alone::wait(&place)
            .unwrap_err()
            .message
            .contains("may be written by others")
    );
    fs::set_permissions(&place, fs::Permissions::from_mode(0o700)).unwrap();
    assert!(Alone::wait(&place).is_ok());
}

fn command(word: &str, stdin: Option<&str>) -> Change {
    Change::Command {
        target: vec![word.to_owned()],
        limit_ms: 1,
        stdin: stdin.map(str::to_owned),
    }
}

#[test]
fn a_command_is_another_one_with_another_standard_input() {
    let scratch = Scratch::new();
    let mut journal = Journal::new(scratch.path(), header());
    for stdin in [None, Some("one"), Some("two"), Some("one")] {
        journal.record(vec![command("undo", stdin)]).unwrap();
    }
    assert_eq!(journal.entries().len(), 3, "the same again is one");
    journal.forget(&["undo".to_owned()], Some("one")).unwrap();
    drop(journal);
    let left: Vec<Change> = entries(scratch.path())
        .into_iter()
        .map(|entry| entry.change)
        .collect();
    assert_eq!(left, [command("undo", None), command("undo", Some("two"))]);
}

#[test]
fn a_command_without_standard_input_is_written_as_before() {
    let text = serde_json::to_string(&command("undo", None)).unwrap();
    assert_eq!(text, r#"{"kind":"command","target":["undo"],"limit_ms":1}"#);
    assert_eq!(
        serde_json::from_str::<Change>(&text).unwrap(),
        command("undo", None)
    );
}

#[test]
fn a_journal_of_long_entries_is_not_written_anew_with_each() {
    let scratch = Scratch::new();
    let mut journal = Journal::new(scratch.path(), header());
    let record = "x".repeat(500_000);
    let mut made = std::collections::BTreeSet::new();
    for turn in 0..40 {
        let text = format!("{record}{turn}");
        journal.record(vec![command("undo", Some(&text))]).unwrap();
        made.insert(files(scratch.path()).remove(0));
    }
    assert!(made.len() <= 4, "{} files for 20 MB", made.len());
    for turn in 0..39 {
        let text = format!("{record}{turn}");
        journal.forget(&["undo".to_owned()], Some(&text)).unwrap();
    }
    for _ in 0..2 {
        journal.record(vec![command("undo", None)]).unwrap();
    }
    let path = files(scratch.path()).remove(0);
    let grown = fs::metadata(&path).unwrap().len();
    assert!(grown < 45 << 20, "{grown} bytes");
    drop(journal);
    assert_eq!(entries(scratch.path()).len(), 2);
}

#[test]
fn a_long_journal_goes_on_in_a_short_one() {
    let scratch = Scratch::new();
    let mut journal = Journal::new(scratch.path(), header());
    journal
        .record(vec![Change::Directory {
            target: "/kept".into(),
        }])
        .unwrap();
    let long = "x".repeat(100_000);
    let length = || fs::metadata(&files(scratch.path())[0]).unwrap().len();
    let (mut longest, mut shrank) = (0, false);
    for turn in 0..60 {
        let old = "1".to_owned();
        let expected = Some(format!("{long}{turn}"));
        let numbers = journal
            .record(vec![Change::Knob {
                target: "a".into(),
                old,
                expected,
            }])
            .unwrap();
        journal.found(numbers[0], Some(turn.to_string())).unwrap();
        assert_eq!(files(scratch.path()).len(), 1);
        shrank |= length() < longest;
        longest = length();
    }
    assert!(shrank);
    let expected = journal.entries().to_vec();
    assert!(find(scratch.path()).is_empty(), "it is still locked");
    drop(journal);
    assert_eq!(entries(scratch.path()), expected);
}

#[derive(Clone, Debug)]
enum Step {
    Record(usize),
    Found(usize, Option<String>),
    Undone(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (1usize..4).prop_map(Step::Record),
        (0usize..8, proptest::option::of("[a-z\n\"\\\\]{0,5}"))
            .prop_map(|(n, value)| Step::Found(n, value)),
        (0usize..8).prop_map(Step::Undone),
    ];
    prop::collection::vec(step, 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever happened, and wherever the file is cut, what is read is a state that the journal once had, with
    /// nothing in it that was not recorded.
    #[test]
    fn a_cut_file_reads_as_an_earlier_state(steps in steps(), cut in 0.0f64..1.0) {
        let scratch = Scratch::new();
        let mut journal = Journal::new(scratch.path(), header());
        // One change stays, so that the file does.
        journal.record(vec![knob("first")]).unwrap();
        let mut states = vec![Vec::new(), journal.entries().to_vec()];
        for (turn, step) in steps.into_iter().enumerate() {
            let pick = |index: usize| journal.entries().get(index + 1).map(|entry| entry.n);
            match step {
                Step::Record(count) => {
                    for each in 0..count {
                        journal.record(vec![knob(&format!("{turn}.{each}"))]).unwrap();
                        states.push(journal.entries().to_vec());
                    }
                }
                Step::Found(index, value) => if let Some(n) = pick(index) { journal.found(n, value).unwrap() },
                Step::Undone(index) => if let Some(n) = pick(index) { journal.undone(&[n]).unwrap() },
            }
            states.push(journal.entries().to_vec());
        }
        drop(journal);
        prop_assert_eq!(&entries(scratch.path()), states.last().unwrap());
        let path = files(scratch.path()).remove(0);
        let text = fs::read(&path).unwrap();
        fs::write(&path, &text[..(text.len() as f64 * cut) as usize]).unwrap();
        let mut found = find(scratch.path());
        let read = found.pop().map(|it| it.unwrap().journal.entries().to_vec()).unwrap_or_default();
        prop_assert!(states.contains(&read), "{:?}", read);
    }
}
