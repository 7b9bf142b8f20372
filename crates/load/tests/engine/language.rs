//! The workload language: what is read, what is refused and where, and that nothing panics.

use ascar_load::definition::Kind;
use ascar_load::quantity::{Quantity, Shape};
use ascar_load::wml::parse;
use proptest::prelude::*;

const MAIL: &str = "\
set $dir=/tmp
set $nfiles=1000
set $filesize=cvar(type=cvar-gamma,parameters=mean:16384;gamma:1.5)
set $sync=true
eventgen rate=0
define fileset name=mail,path=$dir,size=$filesize,entries=$nfiles,dirwidth=1000000,prealloc=80
define process name=server,instances=2
{
  thread name=user,memsize=10m,instances=8
  {
    flowop deletefile name=delete1,filesetname=mail
    flowop createfile name=create1,filesetname=mail,fd=1
    flowop appendfilerand name=append1,
        iosize=16k,fd=1
    flowop fsync name=sync1,fd=1
    flowop closefile name=close1,fd=1 # a comment
  }
}
run 60
";

#[test]
fn a_personality_is_read() {
    let definition = parse(MAIL).unwrap();
    let set = &definition.filesets[0];
    assert_eq!(
        (set.name.as_str(), set.entries, set.prealloc_percent),
        ("mail", 1000, 80.0)
    );
    let Quantity::Drawn(size) = set.size_bytes else {
        panic!("the size is drawn")
    };
    assert_eq!(
        size.shape,
        Shape::Gamma {
            shape: 1.5,
            mean: 16384.0
        }
    );
    let group = &definition.groups[0];
    assert_eq!((group.threads, group.flowops.len()), (16, 5));
    assert_eq!(group.flowops[2].kind, Kind::AppendFileRand);
    assert_eq!(group.flowops[2].iosize_bytes, Quantity::Fixed(16384.0));
    assert_eq!(definition.run_s, Some(60.0));
}

#[test]
fn random_variables_come_in_both_spellings() {
    let text = "define randvar name=$size,type=gamma,mean=5632,gamma=2000,min=1k,round=512\n\
        define randvar name=$io,type=uniform,min=4k,mean=8k\nset $size.mean=10k\n\
        define fileset name=f,size=$size\ndefine process name=p { thread name=t {\n\
        flowop write name=w,filesetname=f,iosize=$io } }";
    let definition = parse(text).unwrap();
    let Quantity::Drawn(size) = definition.filesets[0].size_bytes else {
        panic!()
    };
    assert_eq!(
        size.shape,
        Shape::Gamma {
            shape: 2.0,
            mean: 10240.0
        }
    );
    assert_eq!((size.min, size.round), (1024.0, 512.0));
    let Quantity::Drawn(io) = definition.groups[0].flowops[0].iosize_bytes else {
        panic!()
    };
    assert_eq!(
        io.shape,
        Shape::Uniform {
            low: 4096.0,
            high: 12288.0
        }
    );
}

/// A thread of these flowops on a file set f of ten files.
fn with_flowops(flowops: &str) -> String {
    format!(
        "define fileset name=f,entries=10,prealloc\ndefine process name=p\n{{\nthread name=t\n{{\n{flowops}\n}}\n}}\n"
    )
}

/// What Filebench's own files are made of, each form once.
const ORIGINAL: &str = r#"#
# Comments before anything else, with "quotes" and a $dollar.
#
set $dir=/tmp
set $eventrate=0
set $runtime=30
set $meandirwidth=1000000
set $filesize=cvar(type=cvar-gamma,parameters=mean:131072;gamma:1.5)
set $logname=logfiles
set $directio=0
set $reuseit=false
set $usermode=200
set $iters=16

set mode quit alldone
enable lathist
eventgen rate = $eventrate

define fileset name=bigfileset, path=$dir, size=$filesize, entries=1000, dirwidth=$meandirwidth, prealloc=80
define fileset name=$logname,path=$dir,size=16k,entries=1,dirwidth=20,prealloc,paralloc,reuse=$reuseit
define file name=largefile1,path=$dir,size=1m,prealloc,reuse,paralloc,cached=$reuseit

define process name=filereader,instances=1
{
  thread name=filereaderthread,memsize=10m,instances=3,useism
  {
    flowop createfile name=createfile1,filesetname=bigfileset,fd=1
    flowop writewholefile name=wrtfile1,srcfd=1,fd=1,iosize=1m
    flowop closefile name=closefile1, fd=1
    flowop deletefile name=deletefile1,filesetname=bigfileset
    flowop appendfilerand name=appendlog,filesetname=$logname,iosize=16k,fd=2
    flowop hog name=think,value=$usermode
    flowop eventlimit name=random-rate
  }
  thread name=rand-w-thread,memsize=5m
  {
    flowop write name=rand-write1,filename=largefile1,
        iosize=8k,random,workingset=0,iters=$iters,directio=$directio
    flowop fsync name=sync-file
    flowop finishoncount name=finish,value=100
  }
}

echo  "File-server Version 3.0 personality successfully loaded"
usage "Usage: set \$dir=<dir>           defaults to $dir"
usage "       run runtime (e.g. run 60)"
create files
create processes
psrun -10 $runtime
quit
"#;

#[test]
fn the_forms_of_filebenchs_own_files_are_read() {
    let definition = parse(ORIGINAL).unwrap();
    assert_eq!(definition.run_s, Some(30.0));
    let sets: Vec<_> = definition
        .filesets
        .iter()
        .map(|set| (set.name.as_str(), set.entries, set.prealloc_percent))
        .collect();
    assert_eq!(
        sets,
        [
            ("bigfileset", 1000, 80.0),
            ("logfiles", 1, 100.0),
            ("largefile1", 1, 100.0)
        ]
    );
    let kinds: Vec<Kind> = definition.groups[0].flowops[5..]
        .iter()
        .map(|flowop| flowop.kind)
        .collect();
    assert_eq!(kinds, [Kind::Hog, Kind::EventLimit]);
    assert_eq!(definition.groups[1].flowops[0].iters, 16);
    for (end, seconds) in [("run", 60.0), ("psrun -5", 60.0), ("psrun 20", 20.0)] {
        let text = ORIGINAL.replace("psrun -10 $runtime", end);
        assert_eq!(parse(&text).unwrap().run_s, Some(seconds), "{end}");
    }
}

#[test]
fn what_is_not_in_the_subset_is_refused_with_line_and_word() {
    let cases = [
        ("echo {", 1, "{"),
        ("usage", 1, ""),
        ("\nset mode quit never", 2, "never"),
        ("set mode noreset", 1, "noreset"),
        ("enable multi", 1, "multi"),
        ("create disks", 1, "disks"),
        ("psrun -10 -60", 1, "-60"),
        ("run -60", 1, "-60"),
        ("shutdown processes", 1, "shutdown"),
        ("define fileset name=a,entries=-3", 1, "entries"),
        ("set $a=cvar(type=cvar-gamma,parameters=mean:-1)", 1, "mean"),
        (
            "define flowop name=pair\n{\n flowop statfile name=s\n}",
            1,
            "flowop",
        ),
        ("set $a = randvar(type=tabular, min=1k)", 1, "("),
        ("set $a=1\n\nsystem \"rm -rf /\"", 3, "system"),
        ("define posset name=x", 1, "posset"),
        ("define file name=x,entries=2", 1, "entries"),
        ("set $a=$b", 1, "$b"),
        ("set $a=12q", 1, "12q"),
        ("set $a=99999999999999999t", 1, "99999999999999999t"),
        (
            "set $a=cvar(type=cvar-erlang,parameters=mean:1)",
            1,
            "cvar-erlang",
        ),
        ("define fileset name=a,leafdirs=4", 1, "leafdirs"),
        ("define fileset name=../../etc", 1, "../../etc"),
        ("define fileset name=a,path=/etc", 1, "/etc"),
        ("define fileset name=a,entries=1.5", 1, "entries"),
        (
            "define fileset name=a,entries=1000000,dirwidth=1.0000001",
            1,
            "dirwidth",
        ),
        (
            "\ndefine fileset name=a,entries=100000000,dirwidth=20",
            2,
            "dirwidth",
        ),
        ("define fileset name=a,entries=0", 1, "entries"),
        ("define fileset name=a,prealloc=180", 1, "prealloc"),
        ("define fileset name=a\ndefine fileset name=a", 2, "a"),
        ("set $\u{1F600}=1", 1, "$\u{1F600}=1"),
        ("define process name=p { }", 1, "p"),
        ("run 0", 1, "0"),
        ("run 5\nrun 6", 2, "run"),
    ];
    for (text, line, word) in cases {
        let error = parse(text).expect_err(text);
        assert_eq!(
            (error.line, error.word.as_str()),
            (line, word),
            "{text}: {error}"
        );
    }
    let flowops = [
        ("flowop hog name=x", 6, "value"),
        ("flowop eventlimit name=x,target=y", 6, "target"),
        ("flowop makedir name=x,filesetname=f", 6, "makedir"),
        (
            "flowop statfile name=x,filesetname=f\nflowop statfile name=x,filesetname=f",
            7,
            "x",
        ),
        ("flowop statfile name=x,filesetname=g", 6, "g"),
        (
            "flowop statfile name=x,filesetname=f,indexed=3",
            6,
            "indexed",
        ),
        ("flowop closefile name=x,fd=1", 6, "x"),
        ("flowop openfile name=x,filesetname=f,fd=1", 6, "x"),
        ("flowop readwholefile name=x,fd=2", 6, "x"),
        ("flowop read name=x,filesetname=f", 6, "read"),
        ("flowop read name=x,filesetname=f,iosize=4k,fd=500", 6, "fd"),
        ("flowop sempost name=x,target=nobody", 6, "nobody"),
        (
            "flowop statfile name=y,filesetname=f\nflowop sempost name=x,target=y",
            7,
            "y",
        ),
        ("flowop delay name=x", 6, "value"),
        (
            "flowop openfile name=o,filesetname=f,fd=1\nflowop read name=r,fd=1,iosize=4k,directio\n\
             flowop closefile name=c,fd=1",
            7,
            "r",
        ),
    ];
    for (text, line, word) in flowops {
        let error = parse(&with_flowops(text)).expect_err(text);
        assert_eq!(
            (error.line, error.word.as_str()),
            (line, word),
            "{text}: {error}"
        );
    }
}

#[test]
fn what_is_refused_at_the_end_of_the_file_still_has_a_line() {
    let error = parse("define fileset name=a,").unwrap_err();
    assert_eq!((error.line, error.word.as_str()), (1, ""));
    let error = parse("define process name=p\n{\n thread name=t\n {\n  flowop statfile name=s\n")
        .unwrap_err();
    assert_eq!((error.line, error.word.as_str()), (5, ""));
    assert!(error.text.contains("the file ends"), "{error}");
    assert!(parse("").is_err());
    assert!(
        parse(&"#\n".repeat(1 << 20))
            .unwrap_err()
            .to_string()
            .contains("longer than")
    );
}

#[test]
fn too_many_threads_are_refused() {
    let text = with_flowops("flowop statfile name=x,filesetname=f")
        .replace("name=t", "name=t,instances=4096");
    assert!(parse(&text).is_ok());
    let more = text.replace("name=p", "name=p,instances=2");
    assert_eq!(parse(&more).unwrap_err().word, "t");
}

proptest! {
    /// Any bytes: an answer, never a panic.
    #[test]
    fn garbage_is_refused_or_read(text in "\\PC*") {
        let _ = parse(&text);
    }

    /// A real file with a piece cut out, doubled or replaced: an answer, never a panic, and a line in range.
    #[test]
    fn damaged_files_are_refused_or_read(from in 0usize..800, length in 0usize..60, junk in "[ -~\\n]{0,12}") {
        let mut text = MAIL.to_owned();
        let from = from.min(text.len());
        let to = (from + length).min(text.len());
        text.replace_range(from..to, &junk);
        if let Err(error) = parse(&text) {
            prop_assert!(error.line >= 1 && error.line <= text.lines().count().max(1));
        }
    }

    /// Tokens of the language in any order.
    #[test]
    fn shuffled_words_are_refused_or_read(words in prop::collection::vec(prop::sample::select(vec![
        "set", "$a", "$a.mean", "=", "define", "fileset", "process", "thread", "flowop", "randvar", "cvar", "(", ")",
        "{", "}", ",", ":", ";", "name", "x", "type", "gamma", "uniform", "1k", "1.5", "run", "eventgen", "rate",
        "read", "iosize", "filesetname", "true", "\"", "#", "\n",
    ]), 0..60)) {
        let _ = parse(&words.join(" "));
    }
}
