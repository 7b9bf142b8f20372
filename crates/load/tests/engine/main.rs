//! What flowops do: choices, bounds, rates, ends, shared files, and what happens when things go wrong.

mod choices;
mod common;
mod fills;
mod language;
mod limits;
mod mishaps;
mod personalities;
mod shared;

use common::Scratch;

/// A process of these threads on a file set f with these attributes.
fn wml(fileset: &str, threads: &str) -> String {
    format!("define fileset name=f,{fileset}\ndefine process name=p\n{{\n{threads}\n}}\n")
}

/// One recorded operation: thread, flowop, file, offset, bytes.
type Operation = (String, String, String, u64, u64);

/// Run with a record; the operations in the order each thread did them.
fn record(scratch: &Scratch, words: &[&str]) -> Vec<Operation> {
    let file = scratch.path().join("record.csv");
    let shown = file.display().to_string();
    let mut all = words.to_vec();
    all.extend(["--record", &shown]);
    scratch.summary(&all);
    let text = std::fs::read_to_string(file).unwrap();
    let lines = text.lines().skip(1).map(|line| {
        let fields: Vec<&str> = line.split(',').collect();
        assert_eq!(fields.len(), 8, "{line}");
        let own = |place: usize| fields[place].to_owned();
        (
            own(1),
            own(2),
            own(4),
            fields[5].parse().unwrap(),
            fields[6].parse().unwrap(),
        )
    });
    lines.collect()
}
