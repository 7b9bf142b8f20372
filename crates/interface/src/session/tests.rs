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
