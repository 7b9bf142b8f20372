//! Which operations are done, where, and that a seed decides it.

use std::collections::{HashMap, HashSet};

use crate::common::{Scratch, ops, sooner_or_later};
use crate::{Operation, record, wml};

#[test]
fn a_seed_gives_one_sequence_of_choices() {
    let scratch = Scratch::new();
    let text = wml(
        "entries=200,dirwidth=5,size=64k,prealloc=80",
        "thread name=t { flowop createfile name=c,filesetname=f,fd=1\n\
         flowop writewholefile name=w,fd=1,iosize=16k\nflowop closefile name=x,fd=1\n\
         flowop deletefile name=d,filesetname=f\nflowop statfile name=s,filesetname=f\n\
         flowop read name=r,filesetname=f,iosize=4k,random,opennext\n\
         flowop finishoncount name=end,value=3000 }",
    );
    let file = scratch.wml(&text);
    let run = |seed| {
        record(
            &scratch,
            &["--wml", &file, "--seconds", "20", "--seed", seed, "--clean"],
        )
    };
    let first = run("7");
    assert!(first.len() >= 3000);
    assert_eq!(first, run("7"));
    assert_ne!(first, run("8"));
}

#[test]
fn threads_choose_alike_whatever_the_others_do() {
    let scratch = Scratch::new();
    let text = wml(
        "entries=50,size=1m,prealloc,readonly",
        "thread name=t,instances=6 { flowop read name=r,filesetname=f,iosize=4k,random,opennext\n\
         flowop statfile name=s,filesetname=f }",
    );
    let file = scratch.wml(&text);
    let by_thread = || {
        let mut lists: HashMap<String, Vec<Operation>> = HashMap::new();
        for operation in record(&scratch, &["--wml", &file, "--seconds", "0.5"]) {
            lists
                .entry(operation.0.clone())
                .or_default()
                .push(operation);
        }
        lists
    };
    sooner_or_later(|| {
        let (first, second) = (by_thread(), by_thread());
        for (thread, list) in &first {
            let other = second.get(thread).map_or(&[][..], Vec::as_slice);
            let common = list.len().min(other.len());
            assert_eq!(list[..common], other[..common]);
        }
        let came = first.len().min(second.len());
        (came == 6)
            .then_some(())
            .ok_or(format!("{came} of 6 threads"))
    });
}

#[test]
fn sequential_io_goes_round_and_random_io_stays_inside() {
    let scratch = Scratch::new();
    let text = wml(
        "entries=1,size=1m,prealloc",
        "thread name=a { flowop write name=seq,filesetname=f,iosize=192k }\n\
         thread name=b { flowop read name=rnd,filesetname=f,iosize=12k,random\n\
         flowop finishoncount name=end,value=3000,target=rnd }",
    );
    let file = scratch.wml(&text);
    let operations = record(&scratch, &["--wml", &file, "--seconds", "20"]);
    let sequential: Vec<u64> = operations
        .iter()
        .filter(|o| o.1 == "seq")
        .map(|o| o.3 / 196_608)
        .collect();
    assert!(
        sequential
            .iter()
            .enumerate()
            .all(|(place, offset)| *offset == place as u64 % 5)
    );
    let random: HashSet<u64> = operations
        .iter()
        .filter(|o| o.1 == "rnd")
        .map(|o| o.3)
        .collect();
    assert!(
        random
            .iter()
            .all(|offset| offset % 12_288 == 0 && offset + 12_288 <= 1 << 20)
    );
    assert_eq!(random.len(), 85);
}

/// Many threads on few files: no operation fails, and at the end the account agrees with the disk.

#[test]
fn direct_and_synchronous_io_of_odd_sizes_work() {
    let scratch = Scratch::new();
    let text = wml(
        "entries=8,size=10001,prealloc=50",
        "thread name=t,instances=3 { flowop createfile name=c,filesetname=f,fd=1,directio,dsync\n\
         flowop writewholefile name=w,fd=1,iosize=3000\nflowop appendfilerand name=a,fd=1,iosize=5000\n\
         flowop fsync name=y,fd=1\nflowop fsyncset name=z,filesetname=f\nflowop closefile name=x,fd=1\n\
         flowop openfile name=o,filesetname=f,fd=1,directio\nflowop readwholefile name=r,fd=1,iosize=3000\n\
         flowop read name=q,fd=1,iosize=100,random\nflowop closefile name=v,fd=1\n\
         flowop deletefile name=e,filesetname=f\n\
         flowop aiowrite name=b,filesetname=f,fd=3,iosize=700,random,iters=5,directio,dsync\n\
         flowop aiowait name=g }",
    );
    let file = scratch.wml(&text);
    sooner_or_later(|| {
        let summary = scratch.summary(&["--wml", &file, "--seconds", "0.5", "--clean"]);
        assert_eq!(summary["starved"], 0);
        (ops(&summary, "b") >= 5.0 && ops(&summary, "r") >= 1.0)
            .then_some(())
            .ok_or(summary.to_string())
    });
}
