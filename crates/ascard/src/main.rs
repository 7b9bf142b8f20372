//! `ascard`: the node binary. Arguments -> subcommand; each subcommand is a crate behind a Cargo feature.

// A line that cannot be written is no reason to panic.
#![deny(clippy::print_stderr, clippy::print_stdout)]

use std::fmt::Display;
use std::process::ExitCode;

use ascar_arguments::{Arguments, Mistake, Word, show};
use ascar_log::Log;

const LOG: Log = Log::of("ascard");

const HELP: &str = "\
The parts of ascar that run on a node.

Usage: ascard COMMAND [OPTIONS]
       ascard --help | --version

Commands:
  agent      Sample this node's indicators once a tick, and set its knobs when told.
  disk       Serve a modelled disk over the network (NBD), in real time.
  interface  Gather agents' frames into ticks; check and relay actions.
  keeper     Change the machine on behalf of ascar, and put everything back.
  load       Run a workload written in Filebench's language, and report every second.
  proxy      Hold clients of this node to a window and a pace.

Options:
  -h, --help     Print this help.
  -V, --version  Print the version, and the commands that were built in.

Examples:
  ascard load --personality varmail --dir /mnt/test --seconds 60
  ascard agent --config agent.toml --check
  ascard keeper --help                        Print the help of a command.
";

/// The commands that this binary was built with.
const COMMANDS: &[&str] = &[
    #[cfg(feature = "agent")]
    "agent",
    #[cfg(feature = "disk")]
    "disk",
    #[cfg(feature = "interface")]
    "interface",
    #[cfg(feature = "keeper")]
    "keeper",
    #[cfg(feature = "load")]
    "load",
    #[cfg(feature = "proxy")]
    "proxy",
];

fn main() -> ExitCode {
    let mut arguments = Arguments::new(HELP, std::env::args_os().skip(1));
    match arguments.next_word() {
        Ok(Some(Word::Value(command))) => {
            let rest = arguments.rest().into_iter();
            match command.to_str() {
                #[cfg(feature = "agent")]
                Some("agent") => ascar_agent::cli::run(rest),
                #[cfg(not(feature = "agent"))]
                Some("agent") => not_built("agent"),
                #[cfg(feature = "disk")]
                Some("disk") => ascar_disk::cli::run(rest),
                #[cfg(not(feature = "disk"))]
                Some("disk") => not_built("disk"),
                #[cfg(feature = "interface")]
                Some("interface") => ascar_interface::cli::run(rest),
                #[cfg(not(feature = "interface"))]
                Some("interface") => not_built("interface"),
                #[cfg(feature = "keeper")]
                Some("keeper") => ascar_keeper::cli::run(rest),
                #[cfg(feature = "load")]
                Some("load") => ascar_load::run(rest).into(),
                #[cfg(feature = "proxy")]
                Some("proxy") => ascar_proxy::cli::run(rest),
                _ => refused(&Mistake(format!(
                    "{command:?}: unknown command; allowed: agent, disk, interface, keeper, load, proxy"
                ))),
            }
        }
        Ok(Some(Word::Option("--version"))) => told(&format!(
            "ascard {} ({})\n",
            env!("CARGO_PKG_VERSION"),
            COMMANDS.join(", ")
        )),
        Ok(Some(Word::Option(_))) => told(HELP),
        Ok(None) => {
            let _ = std::io::Write::write_all(&mut std::io::stderr(), HELP.as_bytes());
            ExitCode::from(2)
        }
        Err(mistake) => refused(&mistake),
    }
}

fn told(text: &str) -> ExitCode {
    match show(text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(mistake) => {
            LOG.line(mistake);
            ExitCode::FAILURE
        }
    }
}

fn refused(mistake: &dyn Display) -> ExitCode {
    LOG.line(mistake);
    ExitCode::from(2)
}

#[cfg(not(all(feature = "agent", feature = "disk", feature = "interface")))]
fn not_built(command: &str) -> ExitCode {
    refused(&format_args!(
        "{command}: this ascard was built without it: run `make online`"
    ))
}
