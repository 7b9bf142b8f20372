//! Answers a rule manager for one plane: rules on trial until they are kept, and put back when they are not; kept ones
//! until their time limit.

use std::collections::VecDeque;
use std::time::Duration;

use ascar_congestion::RuleSet;

use crate::messages::{Asked, Told};
use crate::plane::Plane;
use crate::recording::{Part, Parted};

/// The longest time that rules are on trial without a word from the manager.
pub const TRIAL_S_MAX: f64 = 3_600.0;

/// The longest time limit of kept rules: 365 days.
pub const KEPT_S_MAX: f64 = 31_536_000.0;

/// The longest recording.
pub const RECORD_S_MAX: f64 = 3_600.0;

/// How long a recording that is over can be read.
const READABLE: Duration = Duration::from_secs(60);

/// Signs of an id or a name.
const TOKEN_SIGNS_MAX: usize = 64;

/// Rules with what the manager calls them.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedRules {
    /// Their id.
    pub id: String,
    /// The rules.
    pub rules: RuleSet,
}

/// How long kept rules stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeLimit {
    /// The time that they were given.
    pub length: Duration,
    /// When it is over.
    pub ends_at: Duration,
}

/// Rules that are kept.
#[derive(Clone, Debug, PartialEq)]
pub struct KeptRules {
    /// The rules.
    pub named: NamedRules,
    /// How long they stay; None: until another word of the manager.
    pub limit: Option<TimeLimit>,
}

impl KeptRules {
    fn is_over(&self, now: Duration) -> bool {
        self.limit.is_some_and(|limit| limit.ends_at <= now)
    }
}

/// What kept rules took the place of.
#[derive(Clone, Debug, PartialEq)]
struct Before(Option<KeptRules>);

/// Rules on trial, and when it ends.
#[derive(Clone, Debug, PartialEq)]
struct Trial {
    named: NamedRules,
    ends_at: Duration,
}

/// What clients do, while it is written down and until it was read.
#[derive(Clone, Debug, PartialEq)]
struct Recorded {
    ends_at: Duration,
    /// What there is to be told, once somebody has asked for it after its end.
    parted: Option<Parted>,
}

/// Answers a manager for one plane. Times count from any beginning that stays the same.
#[derive(Clone, Debug)]
pub struct Endpoint<P> {
    controller: String,
    workload: String,
    instance: String,
    plane: P,
    kept: Option<KeptRules>,
    /// What the last deployment took the place of: it can be taken back, once, and until another one begins. The same
    /// rules may be deployed again, so their id does not tell deployments apart.
    before: Option<Before>,
    trial: Option<Trial>,
    /// Counts the recordings; the number of the last one.
    recordings: u64,
    recorded: Option<Recorded>,
    /// Counts the changes of `kept`.
    kept_changes: u64,
    /// The lines of what has ended by itself, until they are said.
    ended: VecDeque<String>,
    tick: u64,
    /// Id of what was in force at the end of the last tick, and whether it has changed since.
    ticked: (Option<String>, bool),
}

impl<P: Plane> Endpoint<P> {
    /// The endpoint of a plane without rules. `instance` is the id of this process.
    ///
    /// # Errors
    /// When a name is none.
    pub fn new(controller: &str, workload: &str, instance: &str, plane: P) -> Result<Self, String> {
        Ok(Self {
            controller: token("controller", controller)?,
            workload: token("workload", workload)?,
            instance: instance.to_owned(),
            plane,
            kept: None,
            before: None,
            trial: None,
            recordings: 0,
            recorded: None,
            kept_changes: 0,
            ended: VecDeque::new(),
            tick: 0,
            ticked: (None, false),
        })
    }

    /// The plane.
    #[must_use]
    pub fn plane(&self) -> &P {
        &self.plane
    }

    /// The plane, which its owner has look at what it controls.
    pub fn plane_mut(&mut self) -> &mut P {
        &mut self.plane
    }

    /// Id of the rules in force, on trial or kept.
    #[must_use]
    pub fn rules(&self) -> Option<&str> {
        let on_trial = self.trial.as_ref().map(|trial| &trial.named);
        let kept = self.kept.as_ref().map(|kept| &kept.named);
        on_trial.or(kept).map(|named| &*named.id)
    }

    /// Whether the rules in force are on trial.
    #[must_use]
    pub fn is_on_trial(&self) -> bool {
        self.trial.is_some()
    }

    /// How long the rules in force stay unless another word of the manager comes; None: they stay.
    #[must_use]
    pub fn left(&self, now: Duration) -> Option<Duration> {
        let kept = || self.kept.as_ref()?.limit.map(|limit| limit.ends_at);
        let trial = self.trial.as_ref().map(|trial| trial.ends_at);
        Some(trial.or_else(kept)?.saturating_sub(now))
    }

    /// The rules that are kept, whether or not others are on trial.
    #[must_use]
    pub fn kept(&self) -> Option<&KeptRules> {
        self.kept.as_ref()
    }

    /// A number that is another one whenever other rules are kept, or for another time.
    #[must_use]
    pub fn kept_changes(&self) -> u64 {
        self.kept_changes
    }

    /// Goes on with rules that an endpoint before this one has kept; before the first request.
    ///
    /// # Errors
    /// When their id is none, their time is over, or they cannot be followed.
    pub fn take_up(&mut self, kept: KeptRules, now: Duration) -> Result<(), String> {
        token("rules", &kept.named.id)?;
        if kept.is_over(now) {
            return Err(format!("rules {}: their time is over", kept.named.id));
        }
        self.follow(Some(&kept.named))?;
        self.kept = Some(kept);
        // What they took the place of is not known any more, and none is always safe.
        self.before = Some(Before(None));
        Ok(())
    }

    /// When the time of rules on trial or kept ends next, if it does: [`Endpoint::expire`] is due then.
    #[must_use]
    pub fn ends_at(&self) -> Option<Duration> {
        let trial = self.trial.as_ref().map(|trial| trial.ends_at);
        let kept = self.kept.as_ref().and_then(|kept| kept.limit);
        trial.into_iter().chain(kept.map(|it| it.ends_at)).min()
    }

    /// Ends what is over. Says in a line what has ended by itself and was not said yet; called again until it says nothing.
    pub fn expire(&mut self, now: Duration) -> Option<String> {
        self.end_in_time(now);
        self.ended.pop_front()
    }

    fn end_in_time(&mut self, now: Duration) {
        self.end_kept(now);
        self.end_trial(now);
        if self
            .recorded
            .take_if(|it| it.ends_at + READABLE <= now)
            .is_some()
        {
            drop(self.plane.take_recorded());
        }
    }

    /// Nothing is kept any more: not what was kept before either, which is older still.
    fn end_kept(&mut self, now: Duration) {
        let Some(kept) = self.kept.take_if(|kept| kept.is_over(now)) else {
            return;
        };
        self.kept_changes += 1;
        self.before = None;
        if self.trial.is_none() {
            // It has done without any before.
            let _ = self.follow(None);
        }
        self.say_ended(&kept.named.id);
    }

    fn end_trial(&mut self, now: Duration) {
        let Some(trial) = self.trial.take_if(|trial| trial.ends_at <= now) else {
            return;
        };
        // It followed these before.
        let _ = self.follow_kept();
        self.say_ended(&trial.named.id);
    }

    fn say_ended(&mut self, id: &str) {
        let now_in_force = self.rules().unwrap_or("none");
        let line = format!("rules {id}: their time is over; in force: {now_in_force}");
        self.ended.push_back(line);
    }

    /// Answers a request; None where another controller is meant, or nothing is to be said yet.
    pub fn answer(&mut self, asked: &Asked, now: Duration) -> Option<Told> {
        self.end_in_time(now);
        let answer = match asked {
            Asked::Find { workload } => {
                let is_meant = workload.as_ref().is_none_or(|it| *it == self.workload);
                return is_meant.then(|| self.here());
            }
            Asked::Listen {} => return None,
            Asked::Load {
                rules,
                text,
                within_s,
            } => self.load(rules, text, *within_s, now),
            Asked::Renew { rules, within_s } => self.renew(rules, *within_s, now),
            Asked::Keep { rules, within_s } => self.keep(rules, *within_s, now),
            Asked::Back { rules } => self.back(rules, now),
            Asked::Stop {} => self.stop(),
            Asked::Show {} => return Some(self.shown(now)),
            Asked::Observe {} => return Some(self.observed()),
            Asked::Record { seconds } => return Some(told(self.record(*seconds, now))),
            Asked::Read { number, part } => return Some(told(self.read(*number, *part, now))),
        };
        Some(match answer {
            Ok(()) => self.in_force(),
            Err(reason) => Told::refusal(&reason),
        })
    }

    /// The word of a tick that ends now.
    pub fn beat(&mut self, tick_s: f64, mb_per_s: f64) -> Told {
        self.tick += 1;
        let rules = self.rules().map(str::to_owned);
        let (before, has_changed) = std::mem::replace(&mut self.ticked, (rules.clone(), false));
        Told::Beat {
            controller: self.controller.clone(),
            workload: self.workload.clone(),
            instance: self.instance.clone(),
            rules: rules.filter(|now| !has_changed && Some(now) == before.as_ref()),
            tick: self.tick,
            tick_s,
            mb_per_s,
        }
    }

    fn here(&self) -> Told {
        Told::Here {
            controller: self.controller.clone(),
            workload: self.workload.clone(),
            instance: self.instance.clone(),
            rules: self.rules().map(str::to_owned),
        }
    }

    fn in_force(&self) -> Told {
        Told::InForce {
            controller: self.controller.clone(),
            rules: self.rules().map(str::to_owned),
        }
    }

    fn shown(&self, now: Duration) -> Told {
        Told::Shown {
            controller: self.controller.clone(),
            workload: self.workload.clone(),
            rules: self.rules().map(str::to_owned),
            on_trial: self.is_on_trial(),
            text: self.plane.used().map(|rules| rules.to_text()),
            left_s: self.left(now).map(|left| left.as_secs_f64()),
        }
    }

    fn observed(&self) -> Told {
        Told::Observed {
            controller: self.controller.clone(),
            streams: self.plane.observe(),
            gone: self.plane.gone(),
        }
    }

    fn follow(&mut self, named: Option<&NamedRules>) -> Result<(), String> {
        self.plane.follow(named.map(|it| &it.rules))?;
        self.ticked.1 = true;
        Ok(())
    }

    fn follow_kept(&mut self) -> Result<(), String> {
        let kept = self.kept.as_ref().map(|it| it.named.clone());
        self.follow(kept.as_ref())
    }

    fn load(&mut self, id: &str, text: &str, within_s: f64, now: Duration) -> Result<(), String> {
        if self.kept.as_ref().is_some_and(|kept| kept.named.id == id) {
            // Another deployment of the same: who takes that back, even where it is refused here, means these.
            self.before = None;
        }
        if let Some(trial) = &self.trial
            && trial.named.id != id
        {
            return Err(format!(
                "rules {} are on trial here; wait until the trial ends",
                trial.named.id
            ));
        }
        let ends_at = now + within(within_s, TRIAL_S_MAX)?;
        let rules = RuleSet::parse(text).map_err(|fault| format!("text: {fault}"))?;
        let named = NamedRules {
            id: token("rules", id)?,
            rules,
        };
        self.follow(Some(&named))?;
        self.trial = Some(Trial { named, ends_at });
        self.before = None;
        Ok(())
    }

    fn renew(&mut self, id: &str, within_s: f64, now: Duration) -> Result<(), String> {
        let ends_at = now + within(within_s, TRIAL_S_MAX)?;
        match &mut self.trial {
            Some(trial) if trial.named.id == id => {
                trial.ends_at = ends_at;
                Ok(())
            }
            _ => Err(not_on_trial(id)),
        }
    }

    fn keep(&mut self, id: &str, within_s: Option<f64>, now: Duration) -> Result<(), String> {
        let length = within_s.map(|it| within(it, KEPT_S_MAX)).transpose()?;
        let limit = length.map(|length| TimeLimit {
            length,
            ends_at: now + length,
        });
        if let Some(trial) = self.trial.take_if(|trial| trial.named.id == id) {
            let named = trial.named;
            self.before = Some(Before(self.kept.replace(KeptRules { named, limit })));
        } else if let (None, Some(kept)) = (&self.trial, &mut self.kept)
            && kept.named.id == id
        {
            // Kept already: the answer was lost, or their time begins anew.
            kept.limit = limit;
        } else {
            return Err(not_on_trial(id));
        }
        self.kept_changes += 1;
        Ok(())
    }

    fn back(&mut self, id: &str, now: Duration) -> Result<(), String> {
        let is_on_trial = self.trial.as_ref().is_some_and(|it| it.named.id == id);
        if is_on_trial {
            self.follow_kept()?;
            self.trial = None;
        } else if let (None, Some(kept), Some(Before(before))) =
            (&self.trial, &self.kept, &self.before)
            && kept.named.id == id
        {
            let before = before.clone().filter(|before| !before.is_over(now));
            self.follow(before.as_ref().map(|it| &it.named))?;
            self.kept = before;
            self.before = None;
            self.kept_changes += 1;
        }
        Ok(())
    }

    fn record(&mut self, seconds: f64, now: Duration) -> Result<Told, String> {
        if !(seconds > 0.0 && seconds <= RECORD_S_MAX) {
            return Err(format!(
                "seconds = {seconds}: must be above 0, and at most {RECORD_S_MAX}"
            ));
        }
        let length = Duration::from_secs_f64(seconds);
        self.plane.record(length)?;
        self.recordings += 1;
        self.recorded = Some(Recorded {
            ends_at: now + length,
            parted: None,
        });
        Ok(Told::Recording {
            controller: self.controller.clone(),
            number: self.recordings,
        })
    }

    fn read(&mut self, number: u64, part: u64, now: Duration) -> Result<Told, String> {
        let Some(recorded) = self.recorded.as_mut().filter(|_| number == self.recordings) else {
            return Err(format!(
                "number = {number}: there is no such recording here; ask for one"
            ));
        };
        if now < recorded.ends_at {
            return Ok(Told::Part(Box::new(Part::none_yet(&self.controller))));
        }
        let plane = &mut self.plane;
        let parted = recorded
            .parted
            .get_or_insert_with(|| plane.take_recorded().into());
        let found = parted.part(&self.controller, part);
        let found = found.ok_or_else(|| {
            let last = parted.count() - 1;
            format!("part = {part}: must be from 0 to {last}")
        })?;
        Ok(Told::Part(Box::new(found)))
    }

    fn stop(&mut self) -> Result<(), String> {
        self.follow(None)?;
        self.trial = None;
        self.kept = None;
        self.before = None;
        self.kept_changes += 1;
        Ok(())
    }
}

fn told(answer: Result<Told, String>) -> Told {
    answer.unwrap_or_else(|reason| Told::refusal(&reason))
}

fn not_on_trial(id: &str) -> String {
    let shown: String = id.chars().take(TOKEN_SIGNS_MAX).collect();
    format!("rules = {shown:?}: are not on trial here; load them first")
}

fn within(within_s: f64, most_s: f64) -> Result<Duration, String> {
    if within_s > 0.0 && within_s <= most_s {
        return Ok(Duration::from_secs_f64(within_s));
    }
    Err(format!(
        "within_s = {within_s}: must be above 0, and at most {most_s}"
    ))
}

/// A name that may stand in a subject.
///
/// # Errors
/// For anything else: what it is, its value, what is allowed.
pub fn token(what: &str, text: &str) -> Result<String, String> {
    let is_sign = |it: char| it.is_ascii_alphanumeric() || it == '-' || it == '_';
    if !text.is_empty() && text.len() <= TOKEN_SIGNS_MAX && text.chars().all(is_sign) {
        return Ok(text.to_owned());
    }
    let shown: String = text.chars().take(TOKEN_SIGNS_MAX).collect();
    Err(format!(
        "{what} = {shown:?}: must be 1 to {TOKEN_SIGNS_MAX} letters, digits, - or _"
    ))
}

#[cfg(test)]
mod tests;
