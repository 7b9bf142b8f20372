//! `ascard`: the node binary. Arguments -> subcommand; each subcommand is a crate behind a Cargo feature.

use std::process::ExitCode;

const HELP: &str = "\
ascard: the parts of ascar that run on a node

Usage: ascard COMMAND [OPTIONS]
       ascard --help | --version

Commands:
  agent      sample this node's indicators once a tick, and set its knobs when told
  interface  gather agents' frames into ticks, check and relay actions
  keeper     change the machine on behalf of ascar, and put everything back
  load       run a workload written in Filebench's language, and tell how each second went

`ascard COMMAND --help` tells more.
";

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let first = arguments.next();
    match first.as_ref().and_then(|argument| argument.to_str()) {
        #[cfg(feature = "agent")]
        Some("agent") => ascar_agent::cli::run(arguments),
        #[cfg(not(feature = "agent"))]
        Some("agent") => not_built("agent"),
        #[cfg(feature = "interface")]
        Some("interface") => ascar_interface::cli::run(arguments),
        #[cfg(not(feature = "interface"))]
        Some("interface") => not_built("interface"),
        #[cfg(feature = "keeper")]
        Some("keeper") => ascar_keeper::cli::run(arguments),
        #[cfg(feature = "load")]
        Some("load") => ascar_load::run(arguments).into(),
        Some("--help" | "-h") => {
            print!("{HELP}");
            ExitCode::SUCCESS
        }
        Some("--version" | "-V") => {
            println!("ascard {}", env!("CARGO_PKG_VERSION"));
            ExitCode::SUCCESS
        }
        None => {
            eprint!("{HELP}");
            ExitCode::from(2)
        }
        Some(_) => {
            eprintln!("ascard: {first:?}: unknown command: see `ascard --help`");
            ExitCode::from(2)
        }
    }
}

#[cfg(not(all(feature = "agent", feature = "interface")))]
fn not_built(command: &str) -> ExitCode {
    eprintln!("ascard: {command}: this ascard was built without it: run `make online`");
    ExitCode::from(2)
}
