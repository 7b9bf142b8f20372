//! Files that several threads work on, make and remove.

use std::collections::HashSet;

use crate::common::{Scratch, ops, sooner_or_later};
use crate::{record, wml};

#[test]
fn appends_of_many_threads_to_one_file_never_overlap() {
    let scratch = Scratch::new();
    let text = wml(
        "entries=1,size=0,prealloc",
        "thread name=t,instances=8 { flowop appendfilerand name=a,filesetname=f,iosize=9000\n\
         flowop finishoncount name=end,value=4000 }",
    );
    let file = scratch.wml(&text);
    let mut operations = record(&scratch, &["--wml", &file, "--seconds", "20"]);
    operations.sort_by_key(|operation| operation.3);
    let mut end = 0;
    let mut sizes = HashSet::new();
    for (_, _, _, offset, bytes) in operations {
        assert_eq!(offset, end);
        assert!((1..=9000).contains(&bytes));
        sizes.insert(bytes);
        end = offset + bytes;
    }
    assert!(sizes.len() > 1000);
    let written = std::fs::metadata(scratch.path().join("f/000000000"))
        .unwrap()
        .len();
    assert_eq!(written, end);
}

#[test]
fn a_log_with_a_working_set_begins_anew() {
    let scratch = Scratch::new();
    let text = wml(
        "entries=1,size=0,prealloc",
        "thread name=t,instances=4 { flowop appendfile name=a,filesetname=f,iosize=10k,workingset=100k\n\
         flowop finishoncount name=end,value=500 }",
    );
    let file = scratch.wml(&text);
    let operations = record(&scratch, &["--wml", &file, "--seconds", "20"]);
    assert!(
        operations
            .iter()
            .all(|operation| operation.3 + operation.4 <= 102_400)
    );
    assert!(
        operations
            .iter()
            .filter(|operation| operation.3 == 0)
            .count()
            >= 45
    );
}

#[test]
fn a_log_with_a_working_set_is_cut_back_to_what_it_was_filled_with() {
    let scratch = Scratch::new();
    let text = wml(
        "entries=1,size=40k,prealloc",
        "thread name=t { flowop appendfile name=a,filesetname=f,iosize=10k,workingset=100k\n\
         flowop finishoncount name=end,value=50 }",
    );
    let file = scratch.wml(&text);
    let operations = record(&scratch, &["--wml", &file, "--seconds", "20"]);
    for (place, operation) in operations.iter().enumerate() {
        assert_eq!(operation.3, 40_960 + 10_240 * (place as u64 % 6));
    }
    let path = scratch.path().join("f/000000000");
    let bytes = std::fs::read(path).unwrap();
    let last = operations.last().unwrap();
    assert_eq!(bytes.len() as u64, last.3 + last.4);
    assert!(
        bytes[..40_960]
            .chunks(4096)
            .all(|page| page.iter().any(|byte| *byte != 0)),
        "what it was filled with stays"
    );
}

#[test]
fn threads_that_make_and_remove_the_same_few_files_stay_correct() {
    let scratch = Scratch::new();
    let text = wml(
        "entries=24,dirwidth=3,size=3000,prealloc=50",
        "thread name=t,instances=24 { flowop createfile name=c,filesetname=f,fd=1\n\
         flowop writewholefile name=w,fd=1,iosize=1k\nflowop closefile name=x,fd=1\n\
         flowop openfile name=o,filesetname=f,fd=2\nflowop readwholefile name=r,fd=2,iosize=1k\n\
         flowop closefile name=y,fd=2\nflowop deletefile name=e,filesetname=f\n\
         flowop statfile name=s,filesetname=f\n}",
    );
    let file = scratch.wml(&text);
    sooner_or_later(|| {
        let summary = scratch.summary(&["--wml", &file, "--seconds", "1.5"]);
        (ops(&summary, "e") > 20.0)
            .then_some(())
            .ok_or(summary.to_string())
    });
    let before = scratch.files() as u64;
    let again = scratch
        .load(&["--wml", &file, "--seconds", "0.1", "--no-fill"])
        .unwrap();
    assert_eq!(again.last().unwrap()["data_files"], before);
}

#[test]
fn more_threads_than_files_wait_in_bounds_and_say_so() {
    let scratch = Scratch::new();
    // Four threads hold one file each, of three: the fourth waits in vain, for a second at a time.
    let text = wml(
        "entries=3,size=1k",
        "thread name=t,instances=4 { flowop createfile name=c,filesetname=f,fd=1\nflowop delay name=d,value=30\n\
         flowop deletefile name=e,fd=1\nflowop closefile name=x,fd=1 }",
    );
    let file = scratch.wml(&text);
    sooner_or_later(|| {
        let begun = std::time::Instant::now();
        let summary = scratch.summary(&["--wml", &file, "--seconds", "1.5", "--clean"]);
        let seconds = begun.elapsed().as_secs_f64();
        assert_eq!(ops(&summary, "c"), 3.0);
        let is_bounded = summary["starved"].as_u64() == Some(1) && seconds < 2.5;
        is_bounded
            .then_some(())
            .ok_or(format!("{seconds} s, {summary}"))
    });
}
