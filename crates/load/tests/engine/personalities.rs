//! Every built-in workload runs, and does what its definition says in the proportion it says.

use crate::common::{Scratch, ops, sooner_or_later};
use ascar_load::definition::{Definition, Kind};
use ascar_load::{personality, scale, wml};

/// Small enough for a test; the videos are the largest files.
fn small(name: &str) -> [&'static str; 2] {
    if name == "videoserver" {
        ["--scale", "0.00005"]
    } else {
        ["--scale", "0.002"]
    }
}

/// Each thread is at most one round ahead of or behind another step of its own round, and nothing else differs: for
/// two steps of a group, rounds differ by at most one a thread. Writes in the background may all be pending.
fn assert_mix(definition: &Definition, summary: &serde_json::Value, name: &str) {
    for group in &definition.groups {
        let rounds = |place: usize| {
            let flowop = &group.flowops[place];
            ops(summary, &flowop.name) / flowop.iters as f64
        };
        let slack = f64::from(group.threads);
        for place in 1..group.flowops.len() {
            let limited =
                group.flowops[place].kind == Kind::BwLimit && definition.event_rate_per_s == 0.0;
            if !limited {
                let (first, this) = (rounds(0), rounds(place));
                assert!(
                    (first - this).abs() <= slack,
                    "{name} {}: {first} {this}",
                    group.flowops[place].name
                );
            }
        }
    }
}

#[test]
fn every_personality_keeps_its_mix() {
    let scratch = Scratch::new();
    for personality in personality::ALL {
        let name = personality.name;
        let [option, factor] = small(name);
        let summary = scratch.summary(&[
            "--personality",
            name,
            option,
            factor,
            "--seconds",
            "0.2",
            "--clean",
        ]);
        let mut definition = wml::parse(personality.text).unwrap();
        scale::data(&mut definition, factor.parse().unwrap());
        assert_mix(&definition, &summary, name);
        assert_eq!(summary["starved"], 0, "{name}");
        assert_eq!(scratch.files(), 0, "{name}");
    }
}

#[test]
fn the_database_reads_ten_times_as_often_as_it_writes() {
    let scratch = Scratch::new();
    let words = [
        "--personality",
        "dbserver",
        "--scale",
        "0.1",
        "--seconds",
        "1",
    ];
    sooner_or_later(|| {
        let summary = scratch.summary(&words);
        let (reads, writes) = (ops(&summary, "dbread"), ops(&summary, "dbwrite"));
        if reads * writes == 0.0 {
            return Err(summary.to_string());
        }
        // Readers run at most highwater + one batch a waiting writer ahead: 200 + 10 * 100 reads.
        let (ratio, ahead) = (reads / writes, 1300.0 / reads);
        assert!((ratio / 10.0 - 1.0).abs() < 0.01 + ahead, "{ratio}");
        Ok(())
    });
}

#[test]
fn published_parameters_are_the_published_ones() {
    let of = |name: &str| wml::parse(personality::find(name).unwrap().text).unwrap();
    // Cao, Table 4.2: mean size, directory width, files, threads, running time.
    let table = [
        ("fileserver-def", 131_072.0, 20.0, 10_000, 50, 100.0),
        ("mailserver-def", 16_384.0, 1000.0, 1000, 16, 100.0),
        ("webserver-def", 16_384.0, 20.0, 1000, 100, 100.0),
        ("fileserver-heavy", 131_072.0, 20.0, 80_000, 50, 800.0),
        (
            "mailserver-heavy",
            16_384.0,
            1_000_000.0,
            640_000,
            16,
            2000.0,
        ),
        ("webserver-heavy", 16_384.0, 20.0, 640_000, 100, 800.0),
    ];
    for (name, size, width, files, threads, run_s) in table {
        let definition = of(name);
        let set = &definition.filesets[0];
        assert_eq!(
            (set.size_bytes.mean(), set.dirwidth, set.entries),
            (size, width, files),
            "{name}"
        );
        assert_eq!(
            (definition.threads(), definition.run_s),
            (threads, Some(run_s)),
            "{name}"
        );
    }
    for (name, size) in [
        ("dbserver-def", 10_485_760.0),
        ("dbserver-heavy", 1_073_741_824.0),
    ] {
        let set = &of(name).filesets[0];
        assert_eq!(
            (set.size_bytes.mean(), set.dirwidth, set.entries),
            (size, 1024.0, 10),
            "{name}"
        );
    }
    let ascar = of("ascar-fileserver");
    let set = &ascar.filesets[0];
    assert_eq!(
        (set.entries, set.size_bytes.mean(), set.dirwidth),
        (1000, 5_242_880.0, 20.0)
    );
    assert_eq!(ascar.threads(), 50);
    assert_eq!(
        (
            of("capes-fileserver").threads(),
            of("capes-fileserver-thesis").threads()
        ),
        (32, 2)
    );
    assert_eq!(
        (
            of("btio-b").groups[1].threads,
            of("btio-c").groups[1].threads
        ),
        (4, 25)
    );
    for (name, reads, writes) in [("random-rw-9-1", 9, 1), ("random-rw-1-4", 1, 4)] {
        let flowops = &of(name).groups[0].flowops;
        assert_eq!((flowops[0].iters, flowops[1].iters), (reads, writes));
    }
}

#[test]
fn one_factor_scales_the_bytes_of_every_personality() {
    for personality in personality::ALL {
        let whole = wml::parse(personality.text).unwrap().expected_bytes();
        for factor in [0.01, 0.1, 0.5, 2.0, 10.0] {
            let mut definition = wml::parse(personality.text).unwrap();
            scale::data(&mut definition, factor);
            let share = definition.expected_bytes() / whole / factor;
            // Numbers of files are rounded; the database's log of 10 MB keeps room for one write.
            let slack = if factor < 0.05 { 0.15 } else { 0.03 };
            assert!(
                (share - 1.0).abs() < slack,
                "{} at {factor}: {share}",
                personality.name
            );
        }
    }
}

#[test]
fn threads_are_shared_out_in_proportion() {
    let mut definition = wml::parse(personality::find("dbserver").unwrap().text).unwrap();
    for (wanted, shares) in [
        (21, [1, 10, 10]),
        (42, [2, 20, 20]),
        (5, [1, 2, 2]),
        (1, [1, 1, 1]),
    ] {
        scale::threads(&mut definition, wanted);
        let threads: Vec<u32> = definition
            .groups
            .iter()
            .map(|group| group.threads)
            .collect();
        assert_eq!(threads, shares, "{wanted}");
        definition = wml::parse(personality::find("dbserver").unwrap().text).unwrap();
    }
}

#[test]
fn every_personality_says_what_it_is() {
    for personality in personality::ALL {
        assert!(personality.description().len() > 60, "{}", personality.name);
        assert_eq!(
            personality::find(personality.name).unwrap().name,
            personality.name
        );
    }
    let error = personality::find("nosuch").unwrap_err();
    assert!(error.to_string().contains("mailserver-def"), "{error}");
}
