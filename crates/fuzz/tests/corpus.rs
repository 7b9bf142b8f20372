//! Each parser has a corpus, and reads all of it: among it what once made one fail.

use std::path::{Path, PathBuf};

use ascar_fuzz::PARSERS;

fn entries(folder: &Path) -> Vec<PathBuf> {
    let read =
        std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = read.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths
}

#[test]
fn each_parser_reads_its_corpus() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let names: Vec<String> = entries(&corpus)
        .iter()
        .map(|path| {
            path.file_name()
                .expect("a name")
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    assert_eq!(names, PARSERS.iter().map(|it| it.0).collect::<Vec<_>>());
    for (name, feed) in PARSERS {
        let inputs = entries(&corpus.join(name));
        assert!(!inputs.is_empty(), "{name}: no inputs");
        for input in inputs {
            feed(&std::fs::read(&input).expect("an input"));
        }
        feed(b"");
    }
    std::fs::remove_dir_all(ascar_fuzz::scratch()).expect("the folder was made");
}

#[test]
fn the_corpora_are_small() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let bytes: u64 = entries(&corpus)
        .iter()
        .flat_map(|folder| entries(folder))
        .map(|path| path.metadata().expect("an input").len())
        .sum();
    assert!(bytes < 40_000, "{bytes} bytes");
}
