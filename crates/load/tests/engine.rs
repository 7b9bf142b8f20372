//! What flowops do: choices, bounds, rates, ends, shared files, and what happens when things go wrong.

mod common;

use std::collections::{HashMap, HashSet};

use common::{Scratch, ops};

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
        for operation in record(&scratch, &["--wml", &file, "--seconds", "0.2"]) {
            lists
                .entry(operation.0.clone())
                .or_default()
                .push(operation);
        }
        lists
    };
    let (first, second) = (by_thread(), by_thread());
    assert_eq!(first.len(), 6);
    for (thread, list) in &first {
        let other = &second[thread];
        let common = list.len().min(other.len());
        assert_eq!(list[..common], other[..common]);
    }
}

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
    let summary = scratch.summary(&["--wml", &file, "--seconds", "1.5"]);
    assert!(ops(&summary, "e") > 100.0, "{summary}");
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
    let begun = std::time::Instant::now();
    let summary = scratch.summary(&["--wml", &file, "--seconds", "1.5"]);
    assert!(begun.elapsed().as_secs_f64() < 2.5);
    assert_eq!(
        (ops(&summary, "c"), summary["starved"].as_u64()),
        (3.0, Some(1))
    );
}

#[test]
fn a_workload_that_only_makes_files_ends_when_all_are_made() {
    let scratch = Scratch::new();
    let text = wml(
        "entries=500,dirwidth=10,size=1k",
        "thread name=t,instances=4 { flowop createfile name=c,filesetname=f,fd=1\n\
         flowop writewholefile name=w,fd=1\nflowop closefile name=x,fd=1 }",
    );
    let file = scratch.wml(&text);
    let summary = scratch.summary(&["--wml", &file, "--seconds", "30"]);
    assert_eq!(
        (ops(&summary, "c"), summary["ended"].as_str()),
        (500.0, Some("finished"))
    );
    assert_eq!(scratch.files(), 500);
}

#[test]
fn counts_and_bytes_end_a_run() {
    let scratch = Scratch::new();
    for (finish, low, high) in [
        ("finishoncount name=end,value=1000", 1000, 1000),
        ("finishonbytes name=end,value=1m", 256, 256),
    ] {
        let text = wml(
            "size=1m,prealloc",
            &format!(
                "thread name=t {{ flowop read name=r,filesetname=f,iosize=4k\nflowop {finish} }}"
            ),
        );
        let file = scratch.wml(&text);
        let summary = scratch.summary(&["--wml", &file, "--seconds", "30"]);
        assert_eq!(summary["ended"], "finished");
        assert!(
            (f64::from(low)..=f64::from(high)).contains(&ops(&summary, "r")),
            "{summary}"
        );
    }
}

#[test]
fn rates_are_kept() {
    let scratch = Scratch::new();
    let cases = [
        ("statfile name=o,filesetname=f", "opslimit name=l", 2000.0),
        ("statfile name=o,filesetname=f", "eventlimit name=l", 2000.0),
        (
            "statfile name=o,filesetname=f,iters=4",
            "eventlimit name=l",
            8000.0,
        ),
        (
            "read name=o,filesetname=f,iosize=4k",
            "iopslimit name=l",
            2000.0,
        ),
        (
            "read name=o,filesetname=f,iosize=64k",
            "bwlimit name=l,target=o",
            2000.0 * 16.0,
        ),
    ];
    for (flowop, limit, expected) in cases {
        let text = format!(
            "eventgen rate=2000\n{}",
            wml(
                "size=1m,prealloc",
                &format!("thread name=t,instances=3 {{ flowop {flowop}\nflowop {limit} }}")
            )
        );
        let file = scratch.wml(&text);
        let summary = scratch.summary(&["--wml", &file, "--seconds", "1"]);
        let rate = ops(&summary, "o") / summary["load_s"].as_f64().unwrap();
        // At the start a tenth of a second's events may be made up for.
        assert!(rate <= 1.15 * expected, "{limit}: {rate}");
        if expected < 10_000.0 {
            assert!(rate >= 0.8 * expected, "{limit}: {rate}");
        }
    }
}

#[test]
fn several_limits_of_a_thread_count_each_operation_once() {
    let scratch = Scratch::new();
    let text = format!(
        "eventgen rate=1000\n{}",
        wml(
            "size=1m,prealloc",
            "thread name=t { flowop statfile name=a,filesetname=f,iters=10\nflowop opslimit name=l\n\
             flowop statfile name=b,filesetname=f,iters=10\nflowop opslimit name=m }"
        )
    );
    let file = scratch.wml(&text);
    let summary = scratch.summary(&["--wml", &file, "--seconds", "1"]);
    let rate = summary["throughput_ops_per_s"].as_f64().unwrap();
    assert!((800.0..=1200.0).contains(&rate), "{rate}");
}

#[test]
fn delays_and_random_sizes_have_their_means() {
    let scratch = Scratch::new();
    let text = format!(
        "define randvar name=$io,type=uniform,min=4k,max=12k\n{}",
        wml(
            "size=4m,prealloc",
            "thread name=a { flowop delay name=d,value=0.05 }\n\
             thread name=b { flowop write name=w,filesetname=f,iosize=$io,random }"
        )
    );
    let file = scratch.wml(&text);
    let summary = scratch.summary(&["--wml", &file, "--seconds", "1"]);
    assert!((14.0..=20.0).contains(&ops(&summary, "d")), "{summary}");
    let mean = summary["flowops"]["w"]["bytes"].as_f64().unwrap() / ops(&summary, "w");
    assert!((mean / 8192.0 - 1.0).abs() < 0.03, "{mean}");
}

#[test]
fn a_hog_takes_time_in_proportion_and_counts_as_no_operation_on_files() {
    let scratch = Scratch::new();
    let slowed = |steps: &str| {
        let flowops = format!(
            "thread name=t {{ flowop statfile name=s,filesetname=f\nflowop hog name=h,value={steps} }}"
        );
        let file = scratch.wml(&wml("size=4k,prealloc", &flowops));
        scratch.summary(&["--wml", &file, "--seconds", "0.4"])
    };
    let (short, long) = (slowed("1000"), slowed("1000000"));
    assert_eq!(ops(&short, "s"), short["ops"].as_f64().unwrap());
    assert!(ops(&short, "h") > 5.0 * ops(&long, "h"), "{short} {long}");
    // Longer than the run: it ends all the same.
    let endless = slowed("900000000");
    assert!(endless["load_s"].as_f64().unwrap() < 5.0, "{endless}");
}

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
    let summary = scratch.summary(&["--wml", &file, "--seconds", "0.5"]);
    assert!(
        ops(&summary, "b") >= 5.0 && ops(&summary, "r") >= 1.0,
        "{summary}"
    );
    assert_eq!(summary["starved"], 0);
}

#[test]
fn readings_add_up_to_the_summary() {
    let scratch = Scratch::new();
    let lines = scratch
        .load(&[
            "--personality",
            "mailserver",
            "--seconds",
            "0.75",
            "--reading-ms",
            "100",
            "--cdf",
        ])
        .unwrap();
    let readings: Vec<_> = lines
        .iter()
        .filter(|line| line["kind"] == "reading")
        .collect();
    let summary = lines.last().unwrap();
    // On a busy machine a reading can come so late that the next one is left out.
    assert!((4..=7).contains(&readings.len()), "{}", readings.len());
    let sum: f64 = readings
        .iter()
        .map(|reading| reading["ops"].as_f64().unwrap())
        .sum();
    assert!(
        sum > 0.5 * summary["ops"].as_f64().unwrap() && sum <= summary["ops"].as_f64().unwrap()
    );
    for line in readings.iter().chain([&summary]) {
        let by_flowop: f64 = line["flowops"]
            .as_object()
            .unwrap()
            .keys()
            .map(|name| ops(line, name))
            .sum();
        assert_eq!(by_flowop, line["ops"].as_f64().unwrap());
        let latency = |key: &str| line[key].as_f64().unwrap();
        assert!(latency("latency_ms_p50") <= latency("latency_ms_p95"));
        assert!(latency("latency_ms_p95") <= latency("latency_ms_p99"));
        assert!(latency("latency_ms_p99") <= latency("latency_ms_max"));
    }
    let cdf = summary["latency_cdf_ms"]["fsync1"].as_array().unwrap();
    assert!((cdf.last().unwrap()[1].as_f64().unwrap() - 1.0).abs() < 1e-9);
}

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
fn a_load_that_is_refused_makes_nothing() {
    let scratch = Scratch::new();
    let mail = ["--personality", "mailserver", "--seconds", "0.1"];
    let left = || std::fs::read_dir(scratch.path()).unwrap().count();
    for (words, named) in [
        (
            ["--record", "/nonexistent/record.csv"].as_slice(),
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
fn options_are_refused_by_name() {
    let scratch = Scratch::new();
    let mail = ["--personality", "mailserver"];
    let cases: [(&[&str], &str); 12] = [
        (&["--personality", "nosuch"], "--personality"),
        (&["--wml", "/nonexistent.f"], "--wml"),
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
    let nowhere = [&mail[..], &["--dir", "/nonexistent"]].concat();
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
    assert!(begun.elapsed().as_secs() < 5);
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

#[test]
fn delays_that_end_late_shorten_the_next() {
    let scratch = Scratch::new();
    let text = wml(
        "size=4k,prealloc",
        "thread name=t { flowop delay name=d,value=0.0002 }",
    );
    let file = scratch.wml(&text);
    let summary = scratch.summary(&["--wml", &file, "--seconds", "1"]);
    // A sleep ends some 0.06 ms late even on an idle machine: alone, that would leave 3,900.
    let passed = summary["load_s"].as_f64().unwrap() / 0.0002;
    let delays = ops(&summary, "d");
    assert!(
        (0.9 * passed..=passed + 1.0).contains(&delays),
        "{delays} of {passed}"
    );
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
