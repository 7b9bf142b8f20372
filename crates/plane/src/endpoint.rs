//! Answers a rule manager for one plane: rules on trial until they are kept, and put back when they are not.

use std::time::Duration;

use ascar_congestion::RuleSet;

use crate::messages::{Asked, Told};
use crate::plane::Plane;

/// The longest time that rules are on trial without a word from the manager.
pub const TRIAL_S_MAX: f64 = 3_600.0;

/// Signs of an id or a name.
const TOKEN_SIGNS_MAX: usize = 64;

/// Rules with what the manager calls them.
#[derive(Clone, Debug, PartialEq)]
struct Named {
    id: String,
    rules: RuleSet,
}

/// Rules on trial, and when it ends.
#[derive(Clone, Debug, PartialEq)]
struct Trial {
    named: Named,
    ends_at: Duration,
}

/// Answers a manager for one plane. Times count from any beginning that stays the same.
#[derive(Debug)]
pub struct Endpoint<P> {
    controller: String,
    workload: String,
    instance: String,
    plane: P,
    kept: Option<Named>,
    /// What was kept before `kept`.
    before: Option<Named>,
    trial: Option<Trial>,
    /// The line of a trial that has ended by itself, until it is said.
    ended: Option<String>,
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
            ended: None,
            tick: 0,
            ticked: (None, false),
        })
    }

    /// The plane.
    #[must_use]
    pub fn plane(&self) -> &P {
        &self.plane
    }

    /// Id of the rules in force, on trial or kept.
    #[must_use]
    pub fn rules(&self) -> Option<&str> {
        let on_trial = self.trial.as_ref().map(|trial| &trial.named);
        on_trial.or(self.kept.as_ref()).map(|named| &*named.id)
    }

    /// When the trial ends, if there is one: [`Endpoint::expire`] is due then.
    #[must_use]
    pub fn trial_ends_at(&self) -> Option<Duration> {
        self.trial.as_ref().map(|trial| trial.ends_at)
    }

    /// Ends a trial whose time is over. Says in a line what is in force then.
    pub fn expire(&mut self, now: Duration) -> Option<String> {
        self.end_trial(now);
        self.ended.take()
    }

    fn end_trial(&mut self, now: Duration) {
        let Some(trial) = self.trial.take_if(|trial| trial.ends_at <= now) else {
            return;
        };
        // It followed these before.
        let _ = self.follow(self.kept.clone());
        let now_in_force = self.rules().unwrap_or("none");
        self.ended = Some(format!(
            "rules {}: their time is over; in force: {now_in_force}",
            trial.named.id
        ));
    }

    /// Answers a request; None where another controller is meant, or nothing is to be said yet.
    pub fn answer(&mut self, asked: &Asked, now: Duration) -> Option<Told> {
        self.end_trial(now);
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
            Asked::Keep { rules } => self.keep(rules),
            Asked::Back { rules } => self.back(rules),
            Asked::Stop {} => self.stop(),
            Asked::Show {} => return Some(self.shown()),
            Asked::Observe {} => return Some(self.observed()),
            Asked::Record { .. } | Asked::Read { .. } => {
                Err("this controller records nothing; leave it out".to_owned())
            }
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

    fn shown(&self) -> Told {
        Told::Shown {
            controller: self.controller.clone(),
            workload: self.workload.clone(),
            rules: self.rules().map(str::to_owned),
            on_trial: self.trial.is_some(),
            text: self.plane.used().map(|rules| rules.to_text()),
        }
    }

    fn observed(&self) -> Told {
        Told::Observed {
            controller: self.controller.clone(),
            streams: self.plane.observe(),
        }
    }

    fn follow(&mut self, named: Option<Named>) -> Result<(), String> {
        self.plane.follow(named.as_ref().map(|it| &it.rules))?;
        self.ticked.1 = true;
        Ok(())
    }

    fn load(&mut self, id: &str, text: &str, within_s: f64, now: Duration) -> Result<(), String> {
        if let Some(trial) = &self.trial
            && trial.named.id != id
        {
            return Err(format!(
                "rules {} are on trial here; wait until the trial ends",
                trial.named.id
            ));
        }
        let ends_at = now + within(within_s)?;
        let rules = RuleSet::parse(text).map_err(|fault| format!("text: {fault}"))?;
        let named = Named {
            id: token("rules", id)?,
            rules,
        };
        self.follow(Some(named.clone()))?;
        self.trial = Some(Trial { named, ends_at });
        Ok(())
    }

    fn renew(&mut self, id: &str, within_s: f64, now: Duration) -> Result<(), String> {
        let ends_at = now + within(within_s)?;
        match &mut self.trial {
            Some(trial) if trial.named.id == id => {
                trial.ends_at = ends_at;
                Ok(())
            }
            _ => Err(not_on_trial(id)),
        }
    }

    fn keep(&mut self, id: &str) -> Result<(), String> {
        match self.trial.take() {
            Some(trial) if trial.named.id == id => {
                self.before = self.kept.replace(trial.named);
                Ok(())
            }
            None if self.rules() == Some(id) => Ok(()), // kept already: the answer was lost
            other => {
                self.trial = other;
                Err(not_on_trial(id))
            }
        }
    }

    fn back(&mut self, id: &str) -> Result<(), String> {
        let is_on_trial = self.trial.as_ref().is_some_and(|it| it.named.id == id);
        if is_on_trial {
            self.follow(self.kept.clone())?;
            self.trial = None;
        } else if self.trial.is_none() && self.rules() == Some(id) {
            self.follow(self.before.clone())?;
            self.kept = self.before.take();
        }
        Ok(())
    }

    fn stop(&mut self) -> Result<(), String> {
        self.follow(None)?;
        self.trial = None;
        self.before = self.kept.take();
        Ok(())
    }
}

fn not_on_trial(id: &str) -> String {
    let shown: String = id.chars().take(TOKEN_SIGNS_MAX).collect();
    format!("rules = {shown:?}: are not on trial here; load them first")
}

fn within(within_s: f64) -> Result<Duration, String> {
    if within_s > 0.0 && within_s <= TRIAL_S_MAX {
        return Ok(Duration::from_secs_f64(within_s));
    }
    Err(format!(
        "within_s = {within_s}: must be above 0, and at most {TRIAL_S_MAX}"
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
