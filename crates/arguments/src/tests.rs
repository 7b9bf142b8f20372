use super::*;

const HELP: &str = "\
Usage: try --file FILE [--count N]

Options:
  --file FILE   Read FILE.
  --count N     Count to N.
  --check       Only check.
  -h, --help    Print this help.

Examples:
  try --file a --check    Only checks a.
";

fn arguments(words: &[&str]) -> Arguments {
    Arguments::new(HELP, words.iter().map(OsString::from))
}

#[test]
fn the_help_is_the_list_of_options() {
    let found: Vec<String> = options::described(HELP)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(found, ["--file FILE", "--count N", "--check", "--help"]);
}

#[test]
fn options_come_with_their_values() {
    let mut words = arguments(&["--file", "--check", "--count=3", "more", "-h"]);
    assert_eq!(words.next_word(), Ok(Some(Word::Option("--file"))));
    assert_eq!(words.path(), Ok("--check".into()));
    assert_eq!(words.next_word(), Ok(Some(Word::Option("--count"))));
    assert_eq!(words.number(1, 3), Ok(3));
    assert_eq!(words.next_word(), Ok(Some(Word::Value("more".into()))));
    assert_eq!(words.next_word(), Ok(Some(Word::Option("--help"))));
    assert_eq!(words.next_word(), Ok(None));
}

/// Reads as a subcommand does, up to the first mistake.
fn mistake(words: &[&str]) -> String {
    let mut arguments = arguments(words);
    loop {
        let read = arguments.next_word().and_then(|word| match word {
            Some(Word::Option("--file")) => arguments.text().map(|_| true),
            Some(Word::Option("--count")) => arguments.number(1.5, 9.0).map(|_| true),
            Some(Word::Value(word)) => Err(arguments.unknown(word)),
            other => Ok(other.is_some()),
        });
        match read {
            Ok(true) => {}
            Ok(false) => return String::new(),
            Err(Mistake(text)) => return text,
        }
    }
}

#[test]
fn a_mistake_names_the_option_its_value_and_what_is_allowed() {
    let allowed = "unknown argument; allowed: --file FILE, --count N, --check, --help";
    for (words, text) in [
        (vec!["--fil", "a"], format!("\"--fil\": {allowed}")),
        (vec!["-x"], format!("\"-x\": {allowed}")),
        (vec!["extra"], format!("\"extra\": {allowed}")),
        (vec!["a\nb"], format!("\"a\\nb\": {allowed}")),
        (
            vec!["--file"],
            "--file: needs a value after it: FILE".into(),
        ),
        (
            vec!["--check=yes"],
            "--check = \"yes\": the option takes no value".into(),
        ),
        (
            vec!["--file", "a", "--file", "b"],
            "--file: is given twice; give it once".into(),
        ),
        (
            vec!["--count", "1"],
            "--count = \"1\": must be a number from 1.5 to 9".into(),
        ),
        (
            vec!["--count", "NaN"],
            "--count = \"NaN\": must be a number from 1.5 to 9".into(),
        ),
        (vec!["--check", "--check"], String::new()),
    ] {
        assert_eq!(mistake(&words), text, "{words:?}");
    }
}

#[test]
fn bytes_that_are_no_text_are_paths_and_nothing_else() {
    use std::os::unix::ffi::OsStringExt;
    let wrong = OsString::from_vec(vec![b'a', 0xff]);
    let mut words = Arguments::new(HELP, ["--file".into(), wrong.clone()].into_iter());
    words.next_word().unwrap();
    assert_eq!(words.path(), Ok(PathBuf::from(&wrong)));
    let mut words = Arguments::new(HELP, ["--file".into(), wrong.clone()].into_iter());
    words.next_word().unwrap();
    assert_eq!(
        words.text(),
        Err(Mistake("--file = \"a\\xFF\": is not UTF-8 text".to_owned()))
    );
    let mut words = Arguments::new(HELP, [wrong].into_iter());
    assert!(matches!(words.next_word(), Ok(Some(Word::Value(_)))));
}
