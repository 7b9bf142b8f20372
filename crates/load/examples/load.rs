//! The load generator alone: `cargo run -p ascar-load --example load -- --list`.

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    std::process::exit(ascar_load::run(&args));
}
