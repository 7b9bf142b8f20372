//! The text of rule files, as the original reads and writes it.
//!
//! Line 1: `rules,updates_per_second`. Then a rule a line, whole numbers: `ack_lo,ack_hi,send_lo,send_hi,ratio100_lo,
//! ratio100_hi,m100,b100,tau_us`, and with statistics `used_times,ack_avg,send_avg,ratio100_avg` after them.
//! Extended sets name their further indicators at the end of line 1 (`8,2,slow_ack_ewma`); bounds of these follow
//! `ratio100_hi`, and averages `ratio100_avg`. Last in line 1 may stand how many files of a stream have requests in flight
//! at once (`1,2,active_files=2`).

use crate::bits::RULES_MAX;
use crate::fault::{Fault, Result};
use crate::rule::{Action, Interval, Observed, Rule, SPACE};
use crate::rule_set::{ACTIVE_FILES_MAX, RuleSet, UPDATES_PER_SECOND_MAX};
use crate::signals::{AXES, AXIS_NAMES, INFINITY, THESIS_AXES};

/// Names of the columns of each axis: bounds and average.
const COLUMNS: [[&str; 3]; AXES] = [
    ["ack_lo", "ack_hi", "ack_avg"],
    ["send_lo", "send_hi", "send_avg"],
    ["ratio100_lo", "ratio100_hi", "ratio100_avg"],
    ["slow_ack_lo", "slow_ack_hi", "slow_ack_avg"],
    ["timeouts_lo", "timeouts_hi", "timeouts_avg"],
    ["writes_lo", "writes_hi", "writes_avg"],
    ["sequential_lo", "sequential_hi", "sequential_avg"],
    ["request_kib_lo", "request_kib_hi", "request_kib_avg"],
];

/// What stands before the number of active files.
const ACTIVE_FILES: &str = "active_files=";

/// Bytes of the longest text read.
const TEXT_BYTES_MAX: usize = 256 * 1024;

/// Reads a rule file.
pub(crate) fn read(text: &str) -> Result<RuleSet> {
    if text.len() > TEXT_BYTES_MAX {
        let allowed = "at most 256 KiB: is this a rule file?";
        return Err(Fault::setting(
            "the text",
            format_args!("{} bytes", text.len()),
            allowed,
        ));
    }
    let mut lines = text
        .lines()
        .map(str::trim)
        .enumerate()
        .map(|(at, line)| (at + 1, line));
    let (_, first) = lines.next().unwrap_or((1, ""));
    let header = Header::read(first)?;
    let mut rules = Vec::with_capacity(header.rules);
    for (line, text) in lines.filter(|(_, text)| !text.is_empty()) {
        if rules.len() == header.rules {
            let allowed = format!(
                "{} rules, as line 1 says; correct one of them",
                header.rules
            );
            return Err(fault(line, "rule", text, allowed));
        }
        rules.push(read_rule(line, text, header.axes)?);
    }
    if rules.len() < header.rules {
        let allowed = format!(
            "{}, the rules that follow; correct one of them",
            rules.len()
        );
        return Err(fault(1, "n_rules", &header.rules.to_string(), allowed));
    }
    RuleSet::with_axes(rules, header.axes, header.updates_per_second)?
        .with_active_files(header.active_files)
}

/// Writes a rule file, each line ended.
pub(crate) fn write(set: &RuleSet) -> String {
    let mut lines = vec![header_text(set)];
    lines.extend(set.rules().iter().map(|rule| rule_text(rule, set.axes())));
    lines.push(String::new());
    lines.join("\n")
}

fn header_text(set: &RuleSet) -> String {
    let mut fields = vec![
        set.rules().len().to_string(),
        set.updates_per_second().to_string(),
    ];
    fields.extend(
        AXIS_NAMES[THESIS_AXES..set.axes()]
            .iter()
            .map(ToString::to_string),
    );
    if set.active_files() > 0 {
        fields.push(format!("{ACTIVE_FILES}{}", set.active_files()));
    }
    fields.join(",")
}

fn rule_text(rule: &Rule, axes: usize) -> String {
    let bounds = rule
        .region
        .iter()
        .take(axes)
        .flat_map(|interval| [interval.lo, interval.hi]);
    let mut fields: Vec<String> = bounds.map(|bound| bound.to_string()).collect();
    let Action { m100, b100, tau_us } = rule.action;
    fields.extend([m100.to_string(), b100.to_string(), tau_us.to_string()]);
    if let Some(observed) = &rule.observed {
        fields.push(observed.used_times.to_string());
        fields.extend(observed.means[..axes].iter().map(ToString::to_string));
    }
    fields.join(",")
}

/// Line 1.
struct Header {
    rules: usize,
    updates_per_second: u32,
    axes: usize,
    active_files: u32,
}

impl Header {
    fn read(text: &str) -> Result<Self> {
        let mut fields = Fields::new(1, text);
        let rules = fields.number("n_rules", 1, RULES_MAX as i64)? as usize;
        let updates_per_second =
            fields.number("updates_per_second", 1, i64::from(UPDATES_PER_SECOND_MAX))? as u32;
        let (mut axes, mut active_files) = (THESIS_AXES, 0);
        while let Some(name) = fields.next() {
            if let Some(number) = name.strip_prefix(ACTIVE_FILES) {
                let mut number = Fields::new(1, number);
                active_files =
                    number.number("active_files", 1, i64::from(ACTIVE_FILES_MAX))? as u32;
                fields.end()?;
                break;
            }
            let expected = AXIS_NAMES.get(axes).copied();
            if expected != Some(name) {
                let allowed = match expected {
                    Some(expected) => {
                        format!("nothing more, {expected}, or {ACTIVE_FILES} and a number")
                    }
                    None => format!("nothing more, or {ACTIVE_FILES} and a number"),
                };
                return Err(fault(1, "indicator", name, allowed));
            }
            axes += 1;
        }
        Ok(Self {
            rules,
            updates_per_second,
            axes,
            active_files,
        })
    }
}

fn read_rule(line: usize, text: &str, axes: usize) -> Result<Rule> {
    let mut fields = Fields::new(line, text);
    let mut region = SPACE;
    for (interval, columns) in region.iter_mut().zip(&COLUMNS).take(axes) {
        *interval = fields.interval(columns[0], columns[1])?;
    }
    let action = Action {
        m100: fields.number("m100", i64::from(i32::MIN), i64::from(i32::MAX))? as i32,
        b100: fields.number("b100", i64::from(i32::MIN), i64::from(i32::MAX))? as i32,
        tau_us: fields.number("tau_us", 0, i64::from(INFINITY))? as u32,
    };
    let mut observed = None;
    if fields.is_more() {
        let mut read = Observed {
            used_times: fields.number("used_times", 0, i64::MAX)? as u64,
            ..Observed::default()
        };
        for (mean, columns) in read.means.iter_mut().zip(&COLUMNS).take(axes) {
            *mean = fields.number(columns[2], 0, i64::from(INFINITY))? as u32;
        }
        observed = Some(read);
    }
    fields.end()?;
    Ok(Rule {
        region,
        action,
        observed,
    })
}

/// The fields of one line, in order.
struct Fields<'a> {
    line: usize,
    left: Option<&'a str>,
}

impl<'a> Fields<'a> {
    fn new(line: usize, text: &'a str) -> Self {
        Self {
            line,
            left: Some(text),
        }
    }

    fn is_more(&self) -> bool {
        self.left.is_some()
    }

    fn next(&mut self) -> Option<&'a str> {
        let left = self.left?;
        let (field, rest) = match left.split_once(',') {
            Some((field, rest)) => (field, Some(rest)),
            None => (left, None),
        };
        self.left = rest;
        Some(field.trim())
    }

    fn number(&mut self, name: &str, least: i64, most: i64) -> Result<i64> {
        let found = self.next().unwrap_or("");
        let number = found
            .parse()
            .ok()
            .filter(|number| (least..=most).contains(number));
        let allowed = || format!("a whole number from {least} to {most}");
        number.ok_or_else(|| fault(self.line, name, found, allowed()))
    }

    fn interval(&mut self, lo_name: &str, hi_name: &str) -> Result<Interval> {
        let lo = self.number(lo_name, 0, i64::from(INFINITY) - 1)?;
        let hi = self.number(hi_name, lo + 1, i64::from(INFINITY))?;
        Ok(Interval {
            lo: lo as u32,
            hi: hi as u32,
        })
    }

    fn end(mut self) -> Result<()> {
        match self.next() {
            None => Ok(()),
            Some(found) => Err(fault(
                self.line,
                "end of line",
                found,
                "no further field".into(),
            )),
        }
    }
}

/// A refusal that quotes at most 40 characters.
fn fault(line: usize, field: &str, found: &str, allowed: String) -> Fault {
    Fault::Field {
        line,
        field: field.to_owned(),
        found: found.chars().take(40).collect(),
        allowed,
    }
}
