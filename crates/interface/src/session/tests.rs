use ascar_messaging::file::ConfigFile;
use ascar_wire::Encoder;
use serde_json::Map;

use super::*;
use crate::layouts::Layout;

fn row(node: &str) -> Row {
    let layout = Layout::new(0, vec!["x".to_owned()]);
    Row {
        node: node.into(),
        layout: Arc::new(layout),
        values: vec![1.0],
    }
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("ascar-session-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn session(&self, text: &str) -> Session {
        let database = self.0.join("replay.sqlite");
        let file = format!("connection = 'none.toml'\ndatabase = {database:?}\n{text}\n");
        Session::new(Config::parse(&file).unwrap(), || false).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const KNOB: &str = "[[knob]]\nname = 'd.*.x'\nscope = 'stream'\nminimum = 0\nmaximum = 9";

fn say(session: &mut Session, node: &str, what: &str, message: &Value) {
    send(session, node, what, message.to_string().into_bytes());
}

fn send(session: &mut Session, node: &str, what: &str, payload: Vec<u8>) {
    session.take(&Message {
        subject: format!("{}.agents.{node}.{what}", session.prefix),
        reply: None,
        payload,
    });
}

fn hello(streams: impl Iterator<Item = String>) -> Value {
    let streams: Map<String, Value> = streams.map(|it| (it, json!(1))).collect();
    json!({"version": 1, "layout": "00000007", "names": ["x"],
        "knobs": [{"name": "d.*.x", "value": 1, "streams": streams}]})
}

/// The parts of a status put together again.
fn status(session: &Session, bytes_max: usize) -> Value {
    let mut all = Map::new();
    for text in session.status(bytes_max) {
        assert!(text.len() <= bytes_max, "{}", text.len());
        for (key, value) in serde_json::from_str::<Map<String, Value>>(&text).unwrap() {
            match (all.get_mut(&key), value) {
                (Some(Value::Object(known)), Value::Object(more)) => known.extend(more),
                (Some(Value::Array(known)), Value::Array(more)) => known.extend(more),
                (_, value) => drop(all.insert(key, value)),
            }
        }
    }
    Value::Object(all)
}

#[test]
fn a_name_of_a_megabyte_is_cut_off_and_named_and_goes_nowhere() {
    let folder = Folder::new("long-name");
    let mut session = folder.session(KNOB);
    say(
        &mut session,
        "good",
        "hello",
        &hello(["a".to_owned()].into_iter()),
    );
    // Two: one within the length of a hello, one beyond it.
    for (node, bytes) in [("bad1", 500_000), ("bad2", 1_000_000)] {
        say(
            &mut session,
            node,
            "hello",
            &hello(["x".repeat(bytes)].into_iter()),
        );
    }
    say(
        &mut session,
        "bad3",
        "hello",
        &hello((0..5000).map(|at| at.to_string())),
    );
    let text = status(&session, 1 << 20);
    let reasons = [
        "null",
        "stream of d.*.x = ",
        "bytes of hello: ",
        "streams of all knobs: 5000",
    ];
    assert_eq!(text["nodes"].as_array().unwrap().len(), 4);
    for (node, reason) in text["nodes"].as_array().unwrap().iter().zip(reasons) {
        let said = node["cut_off"].as_str().unwrap_or("null");
        assert!(said.starts_with(reason) && said.len() < 300, "{node}");
    }
    assert_eq!(text["setting"], json!({"d.*.x@good/a": 1}));
    assert_eq!(text["counters"]["cut_off"], json!(3));
    // Nothing more is read of them for a while.
    say(
        &mut session,
        "bad1",
        "hello",
        &hello(["a".to_owned()].into_iter()),
    );
    assert!(status(&session, 1 << 20)["nodes"][1]["cut_off"].is_string());
    session.remember();
    session.writer.stop();
    let state = std::fs::read(folder.0.join("replay.sqlite.state.0")).unwrap();
    assert!(state.len() < 1000, "{}", state.len());
}

#[test]
fn an_agent_of_another_version_is_named_and_disturbs_no_node_that_is_here() {
    let folder = Folder::new("versions");
    let mut session = folder.session(KNOB);
    let known = || hello(["a".to_owned()].into_iter());
    let mut later = known();
    later["version"] = json!(2);
    // What is new beside what is known is passed over.
    let mut newer = known();
    newer["news"] = json!({"of": "a later agent"});
    say(&mut session, "good", "hello", &newer);
    session.nodes.node(0).here = true;
    say(&mut session, "good", "hello", &later);
    say(&mut session, "later", "hello", &later);
    // Also where nothing else of it is understood.
    let other = json!({"version": 3, "names": {"x": 1}});
    say(&mut session, "latest", "hello", &other);
    let text = status(&session, 1 << 20);
    let reason = "version = 2: this interface speaks 1, install matching versions of ascard";
    assert_eq!(text["nodes"][0]["cut_off"], json!(null));
    assert_eq!(text["nodes"][1]["cut_off"], json!(reason));
    assert!(
        text["nodes"][2]["cut_off"]
            .as_str()
            .unwrap()
            .starts_with("version = 3: ")
    );
    assert_eq!(text["setting"], json!({"d.*.x@good/a": 1}));
    assert_eq!(text["counters"]["garbage"], json!(3));
    session.writer.stop();
}

#[test]
fn an_agent_whose_frames_are_of_another_version_is_named_and_disturbs_no_node_that_is_here() {
    let folder = Folder::new("forms");
    let mut session = folder.session(KNOB);
    let mut frame = Vec::new();
    Encoder::new(1).encode(
        &ascar_wire::Frame {
            tick: session.tick(),
            layout: 7,
            values: vec![1.0],
        },
        &mut frame,
    );
    // The version is in the lower half of the first byte.
    let mut later = frame.clone();
    later[0] = later[0] & 0xf0 | 2;
    for (node, payload) in [("good", frame), ("later", later.clone())] {
        say(
            &mut session,
            node,
            "hello",
            &hello(["a".to_owned()].into_iter()),
        );
        send(&mut session, node, "frames", payload);
    }
    session.nodes.node(0).here = true;
    send(&mut session, "good", "frames", later);
    let nodes = status(&session, 1 << 20)["nodes"].take();
    assert_eq!(nodes[0]["cut_off"], json!(null));
    let reason = "frame of version 2: this side speaks 1: install matching versions";
    assert_eq!(nodes[1]["cut_off"], json!(reason));
    session.writer.stop();
}

#[test]
fn a_value_that_is_none_is_not_taken_from_an_answer() {
    let folder = Folder::new("answer");
    let mut session = folder.session(&format!("mode = 'automatic'\n{KNOB}"));
    say(
        &mut session,
        "n",
        "hello",
        &hello(["a".to_owned()].into_iter()),
    );
    session.nodes.node(0).here = true;
    let action = json!({"id": "a", "set": {"d.*.x@n/a": 2}});
    let verdict = session.judge(serde_json::from_value(action).unwrap(), false);
    assert_eq!(verdict["verdict"], json!("accepted"), "{verdict}");
    let restored = json!({"id": "restore-1", "ok": {"failed": [["x", "y"]]}});
    say(&mut session, "n", "results", &restored);
    assert_eq!(session.relay.busy(), Some("a"));
    let long = json!({"id": "a/0", "ok": {"d.*.x/a": "x".repeat(100_000)}});
    say(&mut session, "n", "results", &long);
    assert_eq!(session.relay.busy(), None);
    assert!(
        session.nodes.all()[0]
            .standing
            .reason()
            .unwrap()
            .starts_with("value of d.*.x/a = ")
    );
    // It was to be changed, so it is to be put back when the node is listened to again.
    assert_eq!(
        session.setting.current(),
        &Values::from([("d.*.x@n/a".to_owned(), json!(1))])
    );
    session.writer.stop();
}

#[test]
fn six_hundred_clients_with_thirty_two_streams_fit_into_messages() {
    let folder = Folder::new("many");
    let mut session = folder.session(KNOB);
    for client in 0..600 {
        let streams = (0..32).map(|at| format!("scratch-OST{at:04x}-osc-ffff9a0b1c2d3e4f"));
        say(
            &mut session,
            &format!("client{client}"),
            "hello",
            &hello(streams),
        );
    }
    let whole = status(&session, 1 << 20);
    assert_eq!(whole["setting"].as_object().unwrap().len(), 600 * 32);
    assert_eq!(
        (&whole["defaults"], &whole["node_count"]),
        (&whole["setting"], &json!(600))
    );
    session.told.keep_up(&session.setting, 1 << 18);
    assert!(session.told.pieces().iter().all(|it| it.len() <= 1 << 18));
    assert!(session.told.pieces().len() > 1);
    session.writer.stop();
}

#[test]
fn a_joiners_frame_does_not_stand_in_for_a_silent_nodes() {
    let folder = Folder::new("joiner");
    // The grace period outlasts the test: a tick closes only because its frames are there.
    let mut session = folder.session("interval_s = 0.1\ngrace_s = 60");
    let tick = session.ticks.oldest(session.tick());
    let (silent, joiner) = (
        session.nodes.place("silent").unwrap(),
        session.nodes.place("joiner").unwrap(),
    );
    session.nodes.node(silent).here = true;
    session.ticks.take(joiner, tick, tick, row("joiner"));
    while Instant::now() < session.clock.end(tick) {
        std::thread::sleep(Duration::from_millis(10));
    }
    session.close_ticks();
    assert_eq!(session.ticks.oldest(session.tick()), tick);
    assert!(!session.nodes.all()[joiner].here);

    session.ticks.take(silent, tick, tick, row("silent"));
    session.close_ticks();
    assert_eq!(session.ticks.oldest(session.tick()), tick + 1);
    assert!(session.nodes.all()[joiner].here);
    session.writer.stop();
}

#[test]
fn a_reply_goes_to_an_inbox_of_the_user_who_asks_and_nowhere_else() {
    let ask = |user: &str, reply: &str| {
        let message = Message {
            subject: String::new(),
            reply: Some(reply.to_owned()),
            payload: Vec::new(),
        };
        inbox::may_ask(user, &message)
    };
    assert!(ask("viewer", "_INBOX.viewer.a") && ask("viewer", "_INBOX.viewer.a.b-1_2"));
    for reply in [
        "_INBOX.operator.a",
        "_INBOX.viewer2.a",
        "_INBOX.viewer",
        "_INBOX.viewer.",
        "_INBOX.viewer.*",
        "_INBOX.viewer.a.>",
        "ascar.capes.default.nodes.all",
        "",
    ] {
        assert!(!ask("viewer", reply), "{reply}");
    }
    assert!(!ask(
        "viewer",
        &format!("_INBOX.viewer{}", ".a".repeat(200))
    ));
    assert!(!ask("*", "_INBOX.*.a"));
}
