//! Bytes a frame on recorded indicators: `cargo run --release -p ascar-wire --example wire_frames FILE.csv [KEY_EVERY]`.
//! Columns ts and ma_id name tick and node, those that begin with pi are the indicators. Prints one JSON object.

use std::collections::BTreeMap;

use ascar_wire::{Decoder, Encoder, Frame};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let path = arguments
        .next()
        .expect("usage: wire_frames FILE.csv [KEY_EVERY]");
    let key_every = arguments.next().map_or(600, |text| {
        text.parse().expect("KEY_EVERY is a whole number")
    });
    let text = std::fs::read_to_string(&path).expect("the file can be read");
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().expect("a header").split(',').collect();
    let column = |name: &str| {
        header
            .iter()
            .position(|it| *it == name)
            .expect("columns ts and ma_id")
    };
    let (tick, node) = (column("ts"), column("ma_id"));
    let indicators: Vec<usize> = (0..header.len())
        .filter(|it| header[*it].starts_with("pi"))
        .collect();
    let mut ends: BTreeMap<String, (Encoder, Decoder)> = BTreeMap::new();
    let mut sizes = Vec::new();
    let started = std::time::Instant::now();
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        let values = indicators
            .iter()
            .map(|it| cells[*it].parse().unwrap_or(f32::NAN))
            .collect();
        let frame = Frame {
            tick: cells[tick].parse().expect("ts is a whole number"),
            layout: 1,
            values,
        };
        let (encoder, decoder) = ends
            .entry(cells[node].to_owned())
            .or_insert_with(|| (Encoder::new(key_every), Decoder::new()));
        let mut bytes = Vec::new();
        encoder.encode(&frame, &mut bytes);
        let back = decoder.decode(&bytes).expect("what was encoded is decoded");
        assert_eq!(back.tick, frame.tick);
        assert!(
            back.values
                .iter()
                .zip(&frame.values)
                .all(|(a, b)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan())
        );
        sizes.push(bytes.len());
    }
    let total: usize = sizes.iter().sum();
    sizes.sort_unstable();
    println!(
        "{{\"frames\": {}, \"indicators\": {}, \"key_every\": {key_every}, \"bytes_mean\": {:.2}, \"bytes_p50\": {}, \"bytes_p99\": {}, \"bytes_max\": {}, \"seconds\": {:.3}}}",
        sizes.len(),
        indicators.len(),
        total as f64 / sizes.len() as f64,
        sizes[sizes.len() / 2],
        sizes[sizes.len() * 99 / 100],
        sizes[sizes.len() - 1],
        started.elapsed().as_secs_f64()
    );
}
