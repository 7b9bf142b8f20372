//! All streams of the proxy, and what holds them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ascar_congestion::{
    AnyController, Deployment, Fixed, RuleSet, WINDOW_X100_DEFAULT, WINDOW_X100_MAX,
};
use ascar_plane::{GoneStreams, StreamIndicators};

use crate::recorder::{Recorder, StreamRecord};
use crate::stream::{Hold, Member, Stream};
use crate::turns::{ActiveStreams, ServerTurns, StreamTurn, TurnLength};

/// What holds streams while no rules do, and where they begin when some do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnHold {
    /// Requests in flight a stream; None: any number.
    pub window: Option<u32>,
    /// The least gap between two requests of a stream.
    pub gap_us: u32,
    /// Streams to a server that are active at a time; None: any number.
    pub active_streams: Option<u32>,
    /// How long their turns are, also where rules say how many have one.
    pub turn: TurnLength,
}

/// All streams.
#[derive(Debug)]
pub struct Streams {
    own: OwnHold,
    recorder: Arc<Recorder>,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// By client and server.
    streams: BTreeMap<(String, String), Arc<Stream>>,
    /// Those of each server that there was a stream to: no more than there are routes.
    turns: BTreeMap<String, Arc<ServerTurns>>,
    deployment: Option<Arc<Deployment>>,
    /// Streams that there were; the number of one tells its probes apart from others'.
    count: u64,
    /// What streams had moved that are gone, by server: no more than there are routes.
    gone: BTreeMap<String, GoneStreams>,
}

impl Streams {
    /// None yet.
    #[must_use]
    pub fn new(own: OwnHold) -> Self {
        Self {
            own,
            recorder: Arc::default(),
            inner: Mutex::default(),
        }
    }

    /// The stream of a client to a server, for one more connection.
    pub fn join(&self, client: &str, server: &str) -> (Arc<Stream>, Arc<Member>) {
        let mut inner = self.inner();
        let pair = (client.to_owned(), server.to_owned());
        let stream = match inner.streams.get(&pair) {
            Some(stream) => Arc::clone(stream),
            None => {
                inner.count += 1;
                let hold = self.hold(inner.deployment.as_ref(), inner.count);
                let limit = self.active_streams(inner.deployment.as_ref());
                let of_server = inner.turns.entry(pair.1.clone()).or_insert_with(|| {
                    let turns = ServerTurns::default();
                    turns.limit(limit);
                    Arc::new(turns)
                });
                let of_server = Arc::clone(of_server);
                let turn = StreamTurn::new(inner.count as u32, of_server);
                let record = StreamRecord::new(Arc::clone(&self.recorder), inner.count, server);
                let stream = Stream::new(pair.0.clone(), pair.1.clone(), hold, turn);
                let stream = Arc::new(stream.written_down(record));
                inner.streams.insert(pair, Arc::clone(&stream));
                stream
            }
        };
        let member = stream.join();
        (stream, member)
    }

    /// What writes down what they do.
    #[must_use]
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// A connection of a stream is over, with requests that nobody will answer. A stream ends with its last one.
    pub fn leave(&self, stream: &Arc<Stream>, member: &Arc<Member>, requests: u32, bytes: u64) {
        let mut inner = self.inner();
        if stream.leave(member, requests, bytes) {
            stream.turn().end();
            stream.add_to(inner.gone.entry(stream.server().to_owned()).or_default());
            inner.streams.retain(|_, one| !Arc::ptr_eq(one, stream));
        }
    }

    /// Puts rules in force on all streams, which begin anew; None: the proxy's own hold.
    pub fn follow(&self, rules: Option<RuleSet>) {
        let mut inner = self.inner();
        inner.deployment = rules.map(|rules| Arc::new(Deployment::new(rules)));
        for (number, stream) in inner.streams.values().enumerate() {
            stream.hold(self.hold(inner.deployment.as_ref(), number as u64));
        }
        let limit = self.active_streams(inner.deployment.as_ref());
        for turns in inner.turns.values() {
            turns.limit(limit);
        }
    }

    /// The rules in force, with their use.
    pub fn used(&self) -> Option<RuleSet> {
        let inner = self.inner();
        inner.deployment.as_ref().map(|it| it.observed_rules())
    }

    /// What each stream shows.
    pub fn observe(&self) -> Vec<StreamIndicators> {
        let inner = self.inner();
        inner.streams.values().map(|it| it.indicators()).collect()
    }

    /// What streams to each server have moved that are gone.
    pub fn gone(&self) -> Vec<GoneStreams> {
        self.inner().gone.values().cloned().collect()
    }

    /// Counts something of a server's connections.
    pub fn count(&self, server: &str, add: impl FnOnce(&mut GoneStreams)) {
        let mut inner = self.inner();
        let gone = inner.gone.entry(server.to_owned()).or_default();
        server.clone_into(&mut gone.server);
        add(gone);
    }

    /// Bytes that all streams have moved, also those that are gone.
    pub fn moved_bytes(&self) -> u64 {
        let inner = self.inner();
        let now: u64 = inner.streams.values().map(|it| it.moved_bytes()).sum();
        let gone = inner.gone.values();
        gone.map(|it| it.read_bytes + it.written_bytes).sum::<u64>() + now
    }

    fn hold(&self, deployment: Option<&Arc<Deployment>>, seed: u64) -> Hold {
        let window_x100 = self.own.window.map(|window| window * 100);
        let Some(deployment) = deployment else {
            let fixed = Fixed::new(window_x100.unwrap_or(WINDOW_X100_MAX), self.own.gap_us);
            return Hold {
                controller: AnyController::Fixed(fixed),
                has_window: window_x100.is_some(),
            };
        };
        let window_x100 = window_x100.unwrap_or(WINDOW_X100_DEFAULT);
        Hold {
            controller: AnyController::by_rules(Arc::clone(deployment), window_x100, false, seed),
            has_window: true,
        }
    }

    /// How many streams to a server are active at a time: as rules say, or the proxy's own file.
    fn active_streams(&self, deployment: Option<&Arc<Deployment>>) -> Option<ActiveStreams> {
        let of_rules = deployment.map(|it| it.rules.active_files());
        let most = of_rules
            .filter(|most| *most > 0)
            .or(self.own.active_streams)?;
        let length = self.own.turn;
        Some(ActiveStreams { most, length })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use ascar_congestion::Action;

    use super::*;

    fn uniform(tau_us: u32) -> RuleSet {
        RuleSet::uniform(Action {
            m100: 100,
            b100: 0,
            tau_us,
        })
    }

    #[test]
    fn connections_of_a_pair_share_a_stream_until_the_last_ends() {
        let streams = Streams::new(OwnHold::default());
        let (one, member) = streams.join("pid:1", "unix:/a");
        let (same, again) = streams.join("pid:1", "unix:/a");
        let (other, _) = streams.join("pid:1", "unix:/b");
        assert!(Arc::ptr_eq(&one, &same) && !Arc::ptr_eq(&one, &other));
        streams.leave(&one, &member, 0, 0);
        assert_eq!(streams.observe().len(), 2);
        streams.leave(&same, &again, 0, 0);
        assert_eq!(streams.observe().len(), 1);
    }

    #[test]
    fn rules_hold_what_is_there_and_what_comes() {
        let streams = Streams::new(OwnHold::default());
        streams.join("pid:1", "unix:/a");
        assert_eq!(streams.observe()[0].window, None);
        streams.follow(Some(uniform(7)));
        streams.join("pid:2", "unix:/a");
        let windows: Vec<_> = streams.observe().iter().map(|it| it.window).collect();
        assert_eq!(windows, [Some(8.0), Some(8.0)]);
        assert_eq!(streams.used().unwrap().rules().len(), 1);
        streams.follow(None);
        let windows: Vec<_> = streams.observe().iter().map(|it| it.window).collect();
        assert_eq!(windows, [None, None]);
        assert!(streams.used().is_none());
    }

    #[test]
    fn rules_say_how_many_streams_are_active_or_the_file_does() {
        let own = OwnHold {
            active_streams: Some(1),
            ..OwnHold::default()
        };
        let streams = Streams::new(own);
        let join = |client, server| streams.join(client, server).0;
        let (one, two) = (join("pid:1", "unix:/a"), join("pid:2", "unix:/a"));
        let third = join("pid:3", "unix:/b");
        let may = |stream: &Stream| stream.state().has_turn(10);
        assert!(may(&one) && !may(&two), "one a server");
        assert!(may(&third));
        streams.follow(Some(uniform(0).with_active_files(2).unwrap()));
        assert!(may(&one) && may(&two));
        assert!(!may(&join("pid:4", "unix:/a")));
        streams.follow(Some(uniform(0)));
        assert!(may(&two) && !may(&one));
        let shown: Vec<_> = streams.observe().iter().map(|it| it.has_turn).collect();
        assert_eq!(shown, [Some(false), Some(true), Some(false), Some(false)]);
    }

    #[test]
    fn without_rules_the_own_window_holds() {
        let own = OwnHold {
            window: Some(4),
            gap_us: 50,
            ..OwnHold::default()
        };
        let streams = Streams::new(own);
        streams.join("pid:1", "unix:/a");
        let shown = &streams.observe()[0];
        assert_eq!((shown.window, shown.tau_us), (Some(4.0), 50));
    }
}
