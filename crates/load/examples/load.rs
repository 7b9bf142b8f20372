//! The load generator alone: `cargo run -p ascar-load --example load -- --list`.

fn main() -> std::process::ExitCode {
    ascar_load::run(std::env::args_os().skip(1)).into()
}
