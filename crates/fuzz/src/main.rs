//! Feeds one parser: `PARSER=wml ascar-fuzz [options of libFuzzer] [corpus]`.
#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;

static FEED: OnceLock<ascar_fuzz::Feed> = OnceLock::new();

fn named() -> ascar_fuzz::Feed {
    let name = std::env::var("PARSER").unwrap_or_default();
    ascar_fuzz::find(&name).unwrap_or_else(|| {
        let names: Vec<&str> = ascar_fuzz::PARSERS.iter().map(|it| it.0).collect();
        eprintln!("PARSER = {name:?}: allowed are {}", names.join(", "));
        std::process::exit(2);
    })
}

fuzz_target!(|bytes: &[u8]| FEED.get_or_init(named)(bytes));
