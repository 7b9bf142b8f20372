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

#[test]
fn what_is_not_in_the_subset_is_refused_with_line_and_word() {
    let cases = [
        ("echo \"hello\"", 1, "echo"),
        ("set $a=1\n\nsystem \"rm -rf /\"", 3, "system"),
        ("define posset name=x", 1, "posset"),
        ("define file name=x", 1, "file"),
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
        ("flowop hog name=x,value=1", 6, "hog"),
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
