//! Both ends together; bytes that nobody wrote.

use ascar_wire::{Decoder, Encoder, Frame, INDICATORS_MAX, Malformed};
use proptest::prelude::*;

fn frame(tick: i64, values: &[f32]) -> Frame {
    Frame {
        tick,
        layout: 7,
        values: values.to_vec(),
    }
}

fn encode(encoder: &mut Encoder, frame: &Frame) -> Vec<u8> {
    let mut bytes = Vec::new();
    encoder.encode(frame, &mut bytes);
    bytes
}

fn same(left: &[f32], right: &[f32]) -> bool {
    left.len() == right.len()
        && left
            .iter()
            .zip(right)
            .all(|(a, b)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan())
}

/// Floats as they come: counters, shares, sizes, and any bits at all.
fn value() -> impl Strategy<Value = f32> {
    prop_oneof![
        Just(f32::NAN),
        Just(0.0),
        Just(-0.0),
        (0_u32..1000).prop_map(|it| it as f32 / 1000.0),
        (0_u32..10_000_000).prop_map(|it| it as f32),
        (0_u32..1000).prop_map(|it| it as f32 * 1_048_576.0),
        any::<u32>().prop_map(f32::from_bits),
    ]
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(
        ticks in proptest::collection::vec((proptest::collection::vec(value(), 6), any::<i64>(), any::<bool>()), 1..60),
        key_every in 1_u32..20,
    ) {
        let (mut encoder, mut decoder) = (Encoder::new(key_every), Decoder::new());
        for (values, tick, is_next) in ticks {
            let frame = frame(if is_next { 5 } else { tick }, &values);
            let back = decoder.decode(&encode(&mut encoder, &frame)).unwrap();
            prop_assert_eq!(back.tick, frame.tick);
            prop_assert_eq!(back.layout, 7);
            prop_assert!(same(&back.values, &frame.values));
        }
    }

    #[test]
    fn any_bytes_give_a_frame_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Decoder::new().decode(&bytes);
        // Behind a valid beginning as well.
        let mut key = encode(&mut Encoder::new(9), &frame(1, &[1.5; 40]));
        let mut decoder = Decoder::new();
        decoder.decode(&key).unwrap();
        let mut next = vec![1, 2, 0];
        next.extend_from_slice(&bytes);
        let _ = decoder.decode(&next);
        key.truncate(17);
        key.extend_from_slice(&bytes);
        if let Ok(frame) = Decoder::new().decode(&key) {
            prop_assert_eq!(frame.values.len(), 40);
        }
    }

    #[test]
    fn a_changed_byte_is_no_panic_and_mended_by_a_key_frame(at in 0_usize..64, flip in 1_u8..) {
        let (mut encoder, mut decoder) = (Encoder::new(100), Decoder::new());
        for tick in 0..4 {
            let mut bytes = encode(&mut encoder, &frame(tick, &[tick as f32, 0.5, 1e7, f32::NAN]));
            if tick == 2 {
                let at = at % bytes.len();
                bytes[at] ^= flip;
            }
            let _ = decoder.decode(&bytes);
        }
        encoder.start_anew();
        let back = decoder.decode(&encode(&mut encoder, &frame(4, &[1.0, 2.0, 3.0, 4.0]))).unwrap();
        prop_assert!(same(&back.values, &[1.0, 2.0, 3.0, 4.0]));
    }
}

#[test]
fn a_lost_frame_is_noticed_and_a_key_frame_goes_on() {
    let (mut encoder, mut decoder) = (Encoder::new(1000), Decoder::new());
    let mut send = |tick| encode(&mut encoder, &frame(tick, &[tick as f32]));
    decoder.decode(&send(1)).unwrap();
    send(2);
    assert_eq!(decoder.decode(&send(3)), Err(Malformed::Lost));
    // Not even what would follow is believed now.
    assert_eq!(decoder.decode(&send(4)), Err(Malformed::Lost));
    encoder.start_anew();
    let key = encode(&mut encoder, &frame(5, &[5.0]));
    assert_eq!(decoder.decode(&key).unwrap().values, [5.0]);
}

#[test]
fn a_late_listener_waits_for_a_key_frame() {
    let mut encoder = Encoder::new(3);
    let mut decoder = Decoder::new();
    let outcomes: Vec<bool> = (0..7)
        .map(|tick| encode(&mut encoder, &frame(tick, &[1.0])))
        .skip(1)
        .map(|bytes| decoder.decode(&bytes).is_ok())
        .collect();
    assert_eq!(outcomes, [false, false, true, true, true, true]);
}

#[test]
fn another_layout_starts_anew() {
    let (mut encoder, mut decoder) = (Encoder::new(100), Decoder::new());
    decoder
        .decode(&encode(&mut encoder, &frame(1, &[1.0, 2.0])))
        .unwrap();
    let other = Frame {
        tick: 2,
        layout: 8,
        values: vec![3.0],
    };
    assert_eq!(decoder.decode(&encode(&mut encoder, &other)), Ok(other));
}

#[test]
fn another_version_is_named() {
    let mut bytes = encode(&mut Encoder::new(1), &frame(1, &[1.0]));
    bytes[0] = 0x12;
    assert_eq!(Decoder::new().decode(&bytes), Err(Malformed::Version(2)));
}

#[test]
fn more_indicators_than_allowed_are_refused_before_memory_is_taken() {
    let mut bytes = encode(&mut Encoder::new(1), &frame(1, &[1.0]));
    bytes[7..9].copy_from_slice(&(INDICATORS_MAX as u16 + 1).to_le_bytes());
    assert_eq!(Decoder::new().decode(&bytes), Err(Malformed::Garbage));
}

#[test]
fn what_does_not_change_costs_a_few_bytes() {
    let mut encoder = Encoder::new(10_000);
    let values: Vec<f32> = (0..44).map(|it| it as f32 * 1.37).collect();
    let sizes: Vec<usize> = (0..200)
        .map(|tick| encode(&mut encoder, &frame(tick, &values)).len())
        .collect();
    assert!(sizes[199] <= 6, "{sizes:?}");
}
