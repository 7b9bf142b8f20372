use super::*;

/// Slots in memory; `full`: nothing can be written.
#[derive(Clone, Debug)]
struct Memory {
    slots: [Content; SLOTS],
    full: bool,
}

impl Disk for Memory {
    fn read(&self, slot: usize) -> Content {
        self.slots[slot].clone()
    }

    fn write(&mut self, slot: usize, bytes: &[u8]) -> Result<(), String> {
        if self.full {
            return Err("no space left".to_owned());
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
    }
}

fn after(states: &[&str]) -> Memory {
    let (mut slots, _) = Slots::open(empty());
    for state in states {
        slots.keep(state, false).unwrap();
    }
    slots.disk
}

#[test]
fn the_newest_state_is_recalled() {
    assert_eq!(Slots::open(empty()).1, Recalled::default());
    for (states, expected) in [
        (vec!["a"], "a"),
        (vec!["a", "b"], "b"),
        (vec!["a", "b", "c"], "c"),
    ] {
        let (_, found) = Slots::open(after(&states));
        assert_eq!(found.text.as_deref(), Some(expected));
        assert_eq!(found.damage, None);
    }
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
            let (_, found) = Slots::open(disk);
            assert!(found.damage.is_some(), "{slot}: {content:?}");
            // What is left of the session is not lost.
            assert!(found.text.is_some(), "{slot}: {content:?}");
        }
    }
}

#[test]
fn a_kill_that_cannot_be_written_leaves_no_readable_state() {
    for count in 1..4 {
        let (mut slots, _) = Slots::open(after(&["a", "b", "c"][..count]));
        slots.disk.full = true;
        // Other states may be lost.
        assert!(slots.keep("setting", false).is_err());
        assert_eq!(Slots::open(slots.disk.clone()).1.damage, None);
        let told = slots.keep("killed", true).unwrap_err();
        assert!(told.contains("stands for the kill"), "{told}");
        assert!(Slots::open(slots.disk.clone()).1.damage.is_some());
        // With space again everything is as it should be.
        slots.disk.full = false;
        slots.keep("killed", true).unwrap();
        assert_eq!(Slots::open(slots.disk).1.text.as_deref(), Some("killed"));
    }
}

#[test]
fn files_are_written_for_their_owner_alone_and_read_again() {
    use std::os::unix::fs::PermissionsExt;
    let folder = std::env::temp_dir().join(format!("ascar-state-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let database = folder.join("replay.sqlite");
    let (mut slots, found) = Slots::open(Files::beside(&database));
    assert_eq!(found, Recalled::default());
    slots.keep("a", false).unwrap();
    slots.keep("b", false).unwrap();
    let (mut slots, found) = Slots::open(Files::beside(&database));
    assert_eq!(found.text.as_deref(), Some("b"));
    let mode = |slot| {
        std::fs::metadata(slots.disk.name(slot))
            .unwrap()
            .permissions()
            .mode()
    };
    assert_eq!([mode(0) & 0o777, mode(1) & 0o777], [0o600, 0o600]);
    slots.disk.spoil(0).unwrap();
    let (_, found) = Slots::open(Files::beside(&database));
    assert!(
        found
            .damage
            .unwrap()
            .contains("replay.sqlite.state.0: is damaged")
    );
    std::fs::remove_dir_all(&folder).unwrap();
}
