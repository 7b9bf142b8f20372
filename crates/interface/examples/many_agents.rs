//! Simulated agents, to see what the interface carries: `many_agents PORT AGENTS SECONDS [INDICATORS [STREAMS]]`. Each
//! sends a frame a second of values that move like a real node's, and has a knob `osc.*.max_rpcs_in_flight` with so many
//! streams; in the end it says how many were sent, and asks the interface how many are on disk. Session `test`.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ascar_messaging::{Link, Options};
use ascar_wire::{Encoder, Frame};
use serde_json::{Value, json};

fn main() {
    let arguments: Vec<usize> = std::env::args()
        .skip(1)
        .map(|it| it.parse().expect("whole numbers"))
        .collect();
    let (port, agents, seconds) = (arguments[0], arguments[1], arguments[2]);
    let indicators = arguments.get(3).copied().unwrap_or(44);
    let streams = arguments.get(4).copied().unwrap_or(0);
    let options = Options::local(&format!("nats://127.0.0.1:{port}"));
    let mut link = Link::connect(&options, "many agents").expect("a server");
    let names: Vec<String> = (0..indicators)
        .map(|it| format!("simulated.indicator{it}_per_s"))
        .collect();
    let mut hash = 0x811c_9dc5_u32;
    for byte in names.iter().flat_map(|name| name.bytes().chain([0])) {
        hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    }
    let streams: serde_json::Map<String, Value> = (0..streams)
        .map(|it| {
            (
                format!("scratch-OST{it:04x}-osc-ffff9a0b1c2d3e4f"),
                json!(8),
            )
        })
        .collect();
    let knob = json!({"name": "osc.*.max_rpcs_in_flight", "value": 8, "minimum": 1, "maximum": 256, "streams": streams});
    let knobs: Vec<Value> = if streams.is_empty() {
        vec![]
    } else {
        vec![knob]
    };
    let hello = json!({"version": 1, "layout": format!("{hash:08x}"), "names": names, "monitor_only": knobs.is_empty(),
        "knobs": knobs})
    .to_string();
    let mut encoders: Vec<Encoder> = (0..agents).map(|_| Encoder::new(300)).collect();
    let mut values = vec![vec![0.0_f32; indicators]; agents];
    let subject =
        |agent: usize, what: &str| format!("ascar.capes.test.agents.simulated{agent}.{what}");
    link.subscribe("ascar.capes.test.nodes.*");
    for agent in 0..agents {
        link.publish(&subject(agent, "hello"), None, hello.as_bytes());
    }
    assert!(
        link.flush(Duration::from_secs(30))
            .expect("the server takes it")
    );
    std::thread::sleep(Duration::from_secs(2));
    let wall = || {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
    };
    let mut state = 7_u64;
    let (mut sent, mut bytes_sent) = (0_u64, 0_u64);
    let first = wall().as_secs() + 1;
    let mut bytes = Vec::new();
    for second in first..first + seconds as u64 {
        // Spread over the half second behind the tick's middle, as clocks are.
        for agent in 0..agents {
            let due = Duration::from_secs(second)
                + Duration::from_micros(400_000 + 400_000 * agent as u64 / agents as u64);
            let now = wall();
            // Also behind time the server is to be heard. Who is asked says hello again, as agents do.
            while let Some(message) = (agent % 100 == 0)
                .then(|| link.receive(Instant::now()).expect("the connection holds"))
                .flatten()
            {
                let name = message.subject.rsplit('.').next().unwrap_or_default();
                let number = name.strip_prefix("simulated").map(str::parse::<usize>);
                if let Some(Ok(asked)) = number
                    && asked < agents
                {
                    link.publish(&subject(asked, "hello"), None, hello.as_bytes());
                    encoders[asked].start_anew();
                }
            }
            if due > now + Duration::from_millis(1) {
                std::thread::sleep(due - now);
            }
            for (index, value) in values[agent].iter_mut().enumerate() {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                // Half of the indicators change.
                if (state >> 40) & 1 == 0 {
                    *value = ((state >> 33) % (1 << (4 + index % 20))) as f32;
                }
            }
            bytes.clear();
            let frame = Frame {
                tick: second as i64,
                layout: hash,
                values: values[agent].clone(),
            };
            encoders[agent].encode(&frame, &mut bytes);
            link.publish(&subject(agent, "frames"), None, &bytes);
            sent += 1;
            bytes_sent += bytes.len() as u64;
        }
        link.flush(Duration::from_secs(1))
            .expect("the server takes it");
    }
    std::thread::sleep(Duration::from_secs(3));
    let status = link
        .request(
            "ascar.capes.test.control.anyone.status",
            br#"{"op": "status"}"#,
            Duration::from_secs(10),
        )
        .expect("the connection holds")
        .expect("the interface answers");
    let status: Value = serde_json::from_slice(&status.payload).expect("JSON");
    println!(
        "{}",
        json!({
            "agents": agents, "seconds": seconds, "indicators": indicators, "frames_sent": sent,
            "bytes_a_frame": bytes_sent as f64 / sent as f64, "counters": status["ok"]["counters"],
        })
    );
}
