use super::*;

/// Slots in memory; `full`: nothing can be written.
#[derive(Clone, Debug)]
struct Memory {
    slots: [Content; SLOTS],
    full: bool,
    /// A write that fails is done all the same.
    is_done_perhaps: bool,
}

impl Disk for Memory {
    fn read(&self, slot: usize) -> Content {
        self.slots[slot].clone()
    }

    fn write(&mut self, slot: usize, bytes: &[u8]) -> Result<(), Failure> {
        if self.full {
            return Err(Failure {
                why: "no space left".to_owned(),
                is_done_perhaps: self.is_done_perhaps,
            });
        }
        self.slots[slot] = Content::Bytes(bytes.to_vec());
        Ok(())
    }

    fn spoil(&mut self, slot: usize) -> Result<(), String> {
        self.slots[slot] = Content::Bytes(Vec::new());
        Ok(())
    }

    fn name(&self, slot: usize) -> String {
        format!("slot {slot}")
    }
}

fn empty() -> Memory {
    Memory {
        slots: [Content::Missing, Content::Missing],
        full: false,
        is_done_perhaps: false,
    }
}

fn open<D: Disk>(disk: D) -> (Slots<D>, Recalled) {
    Slots::open(disk, Mode::Observe, false)
}

fn draft(text: &str, killed: bool) -> Draft {
    let mode = Mode::Observe;
    Draft {
        number: 0,
        text: text.to_owned(),
        caution: Caution { killed, mode },
    }
}

fn after(states: &[&str]) -> Memory {
    let (mut slots, _) = open(empty());
    for state in states {
        slots.keep(&draft(state, false)).unwrap();
    }
    slots.disk
}

#[test]
fn the_newest_state_is_recalled() {
    assert_eq!(open(empty()).1, Recalled::default());
    for (states, expected) in [
        (vec!["a"], "a"),
        (vec!["a", "b"], "b"),
        (vec!["a", "b", "c"], "c"),
    ] {
        let (_, found) = open(after(&states));
        assert_eq!(found.text.as_deref(), Some(expected));
        assert_eq!(found.damage, None);
    }
}

#[test]
fn both_slots_missing_are_a_first_start_only_where_none_was_written() {
    let (mut slots, found) = Slots::open(empty(), Mode::Observe, true);
    assert!(found.damage.unwrap().contains("are missing"));
    slots.keep(&draft("a", true)).unwrap();
    let (_, found) = Slots::open(slots.into_disk(), Mode::Observe, true);
    assert_eq!((found.text.as_deref(), found.damage), (Some("a"), None));
}

#[test]
fn whatever_is_damaged_is_told() {
    let whole = after(&["{\"a\": 1}", "{\"b\": 22}", "{\"c\": 333}"]);
    for slot in 0..SLOTS {
        let Content::Bytes(bytes) = &whole.slots[slot] else {
            panic!()
        };
        let mut damaged: Vec<Content> = (0..bytes.len())
            .map(|length| Content::Bytes(bytes[..length].to_vec()))
            .collect();
        for bit in 0..8 * bytes.len() {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            damaged.push(Content::Bytes(flipped));
        }
        damaged.push(Content::Missing);
        damaged.push(Content::Unreadable("input/output error".to_owned()));
        // A slot of the same session, but of an earlier time, or the other one.
        damaged.push(after(&["{\"a\": 1}", "{\"b\": 22}"]).slots[1 - slot].clone());
        for content in damaged {
            let mut disk = whole.clone();
            disk.slots[slot] = content.clone();
            let (_, found) = open(disk);
            assert!(found.damage.is_some(), "{slot}: {content:?}");
            // What is left of the session is not lost.
            assert!(found.text.is_some(), "{slot}: {content:?}");
        }
    }
}

#[test]
fn a_kill_that_cannot_be_written_leaves_no_readable_state() {
    for count in 1..4 {
        let (mut slots, _) = open(after(&["a", "b", "c"][..count]));
        slots.disk.full = true;
        // Other states may be lost.
        assert!(slots.keep(&draft("setting", false)).is_err());
        assert_eq!(open(slots.disk.clone()).1.damage, None);
        let told = slots.keep(&draft("killed", true)).unwrap_err();
        assert!(told.contains("stands for the kill"), "{told}");
        assert!(open(slots.disk.clone()).1.damage.is_some());
        // With space again everything is as it should be.
        slots.disk.full = false;
        slots.keep(&draft("killed", true)).unwrap();
        assert_eq!(open(slots.disk).1.text.as_deref(), Some("killed"));
    }
}

#[test]
fn files_are_written_for_their_owner_alone_and_read_again() {
    use std::os::unix::fs::PermissionsExt;
    let folder = std::env::temp_dir().join(format!("ascar-state-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let database = folder.join("replay.sqlite");
    let (mut slots, found) = open(Files::beside(&database));
    assert_eq!(found, Recalled::default());
    slots.keep(&draft("a", false)).unwrap();
    slots.keep(&draft("b", false)).unwrap();
    let (mut slots, found) = open(Files::beside(&database));
    assert_eq!(found.text.as_deref(), Some("b"));
    let mode = |slot| {
        std::fs::metadata(slots.disk.name(slot))
            .unwrap()
            .permissions()
            .mode()
    };
    assert_eq!([mode(0) & 0o777, mode(1) & 0o777], [0o600, 0o600]);
    slots.disk.spoil(0).unwrap();
    let (_, found) = open(Files::beside(&database));
    assert!(
        found
            .damage
            .unwrap()
            .contains("replay.sqlite.state.0: is damaged")
    );
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_mode_that_may_be_written_all_the_same_counts_as_written() {
    let mode = |text: &str, mode| Draft {
        caution: Caution {
            killed: false,
            mode,
        },
        ..draft(text, false)
    };
    for (is_done_perhaps, spoils) in [(false, false), (true, true)] {
        let (mut slots, _) = open(after(&["observe"]));
        slots.disk.full = true;
        slots.disk.is_done_perhaps = is_done_perhaps;
        let automatic = mode("automatic", Mode::Automatic);
        assert!(slots.keep(&automatic).is_err());
        assert_eq!(open(slots.disk.clone()).1.damage, None);
        // What is in force then: where the other may be on disk, a new start must not find it.
        assert!(slots.keep(&mode("observe", Mode::Observe)).is_err());
        assert_eq!(open(slots.disk.clone()).1.damage.is_some(), spoils);
    }
}

/// A disk that waits until it is allowed to go on, and tells what it wrote.
struct Slow {
    go_on: std::sync::mpsc::Receiver<()>,
    written: std::sync::Arc<std::sync::Mutex<Vec<String>>>,
}

impl Disk for Slow {
    fn read(&self, _slot: usize) -> Content {
        Content::Missing
    }

    fn write(&mut self, _slot: usize, bytes: &[u8]) -> Result<(), Failure> {
        self.go_on.recv().unwrap();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let state = text.split('\n').nth(1).unwrap().to_owned();
        self.written.lock().unwrap().push(state);
        Ok(())
    }

    fn spoil(&mut self, _slot: usize) -> Result<(), String> {
        Ok(())
    }

    fn name(&self, slot: usize) -> String {
        slot.to_string()
    }
}

#[test]
fn nobody_waits_for_the_disk_and_of_several_states_the_newest_is_written() {
    let (allow, go_on) = std::sync::mpsc::channel();
    let written = std::sync::Arc::default();
    let disk = Slow {
        go_on,
        written: std::sync::Arc::clone(&written),
    };
    let mut writer = StateWriter::start(open(disk).0).unwrap();
    let mut send = |number: u64| {
        writer.send(Draft {
            number,
            ..draft(&format!("state {number}"), false)
        });
    };
    // None of these returns later than at once, for the disk has not been allowed anything yet.
    (1..1000).for_each(&mut send);
    allow.send(()).unwrap();
    // The thread may have begun with any of them, but not with more than one.
    let first = writer.outcomes.recv().unwrap().number;
    allow.send(()).unwrap();
    if first < 999 {
        assert_eq!(writer.outcomes.recv().unwrap().number, 999);
    }
    // What is handed over last is written before the end.
    writer.send(Draft {
        number: 1000,
        ..draft("last", false)
    });
    allow.send(()).unwrap();
    writer.stop();
    assert_eq!(writer.outcomes.try_iter().last().unwrap().number, 1000);
    assert_eq!(written.lock().unwrap().last().unwrap(), "last");
}
