//! Rates, delays, and when a load ends.

use crate::common::{Scratch, ops, sooner_or_later};
use crate::wml;

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
        sooner_or_later(|| {
            let summary = scratch.summary(&["--wml", &file, "--seconds", "1"]);
            let rate = ops(&summary, "o") / summary["load_s"].as_f64().unwrap();
            // At the start a tenth of a second's events may be made up for.
            assert!(rate <= 1.15 * expected, "{limit}: {rate}");
            let is_kept = expected >= 10_000.0 || rate >= 0.8 * expected;
            is_kept.then_some(()).ok_or(format!("{limit}: {rate}"))
        });
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
    sooner_or_later(|| {
        let summary = scratch.summary(&["--wml", &file, "--seconds", "1"]);
        let rate = summary["throughput_ops_per_s"].as_f64().unwrap();
        assert!(rate <= 1200.0, "{rate}");
        (rate >= 800.0).then_some(()).ok_or(rate.to_string())
    });
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
    sooner_or_later(|| {
        let summary = scratch.summary(&["--wml", &file, "--seconds", "1"]);
        let (delays, passed) = (
            ops(&summary, "d"),
            summary["load_s"].as_f64().unwrap() / 0.05,
        );
        assert!(delays <= passed + 1.0, "{summary}");
        let mean = summary["flowops"]["w"]["bytes"].as_f64().unwrap() / ops(&summary, "w");
        let is_near = delays >= 0.7 * passed && (mean / 8192.0 - 1.0).abs() < 0.03;
        is_near.then_some(()).ok_or(summary.to_string())
    });
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
    sooner_or_later(|| {
        let (short, long) = (slowed("1000"), slowed("1000000"));
        assert_eq!(ops(&short, "s"), short["ops"].as_f64().unwrap());
        let is_slower = ops(&short, "h") > 5.0 * ops(&long, "h");
        is_slower.then_some(()).ok_or(format!("{short} {long}"))
    });
    // Longer than the run: it ends all the same.
    sooner_or_later(|| {
        let endless = slowed("900000000");
        let is_over = endless["load_s"].as_f64().unwrap() < 5.0;
        is_over.then_some(()).ok_or(endless.to_string())
    });
}

#[test]
fn readings_add_up_to_the_summary() {
    let scratch = Scratch::new();
    let words = [
        "--personality",
        "mailserver",
        "--seconds",
        "0.75",
        "--reading-ms",
        "100",
        "--cdf",
    ];
    sooner_or_later(|| add_up(&scratch.load(&words).unwrap()));
}

/// On a busy machine a reading can come so late that the next one is left out, or that it tells of too little.
fn add_up(lines: &[serde_json::Value]) -> Result<(), String> {
    let readings: Vec<_> = lines
        .iter()
        .filter(|line| line["kind"] == "reading")
        .collect();
    let summary = lines.last().unwrap();
    assert!(readings.len() <= 7, "{}", readings.len());
    let sum: f64 = readings
        .iter()
        .map(|reading| reading["ops"].as_f64().unwrap())
        .sum();
    let whole = summary["ops"].as_f64().unwrap();
    assert!(sum <= whole, "{sum} of {whole}");
    for line in readings.iter().chain([&summary]) {
        let by_flowop: f64 = line["flowops"]
            .as_object()
            .unwrap()
            .keys()
            .map(|name| ops(line, name))
            .sum();
        assert_eq!(by_flowop, line["ops"].as_f64().unwrap());
        if line["ops"] == 0 {
            continue; // right after one that came late
        }
        let latency = |key: &str| line[key].as_f64().unwrap();
        assert!(latency("latency_ms_p50") <= latency("latency_ms_p95"));
        assert!(latency("latency_ms_p95") <= latency("latency_ms_p99"));
        assert!(latency("latency_ms_p99") <= latency("latency_ms_max"));
    }
    let cdf = summary["latency_cdf_ms"]["fsync1"].as_array().unwrap();
    assert!((cdf.last().unwrap()[1].as_f64().unwrap() - 1.0).abs() < 1e-9);
    let is_most = readings.len() >= 4 && sum > 0.5 * whole;
    is_most
        .then_some(())
        .ok_or(format!("{} readings, {sum} of {whole}", readings.len()))
}

#[test]
fn delays_that_end_late_shorten_the_next() {
    let scratch = Scratch::new();
    let text = wml(
        "size=4k,prealloc",
        "thread name=t { flowop delay name=d,value=0.0002 }",
    );
    let file = scratch.wml(&text);
    sooner_or_later(|| {
        let summary = scratch.summary(&["--wml", &file, "--seconds", "1"]);
        // A sleep ends some 0.06 ms late even on an idle machine: alone, that would leave 3,900.
        let passed = summary["load_s"].as_f64().unwrap() / 0.0002;
        let delays = ops(&summary, "d");
        assert!(delays <= passed + 1.0, "{delays} of {passed}");
        (delays >= 0.9 * passed)
            .then_some(())
            .ok_or(format!("{delays} of {passed}"))
    });
}
