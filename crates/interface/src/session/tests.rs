use super::*;
use crate::nodes::Layout;

fn row(node: &str) -> Row {
    let layout = Layout {
        id: "00000000".to_owned(),
        number: 0,
        names: vec!["x".to_owned()],
    };
    Row {
        node: node.into(),
        layout: Arc::new(layout),
        values: vec![1.0],
    }
}

#[test]
fn a_joiners_frame_does_not_stand_in_for_a_silent_nodes() {
    let folder = std::env::temp_dir().join(format!("ascar-session-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    // The grace period outlasts the test: a tick closes only because its frames are there.
    let file = format!(
        "interval_s = 0.1\ngrace_s = 60\nconnection = 'none.toml'\ndatabase = {:?}\n",
        folder.join("replay.sqlite")
    );
    let mut session = Session::new(Config::parse(&file).unwrap(), || false).unwrap();
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
    let _ = std::fs::remove_dir_all(&folder);
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
