// A session of online tuning: the objective with its baseline, the knobs, the learner, what was refused.

import { html } from "../dom";
import { count, duration, number, share } from "../format";
import { type Band, change, clock, line, lines, setting, signed } from "./session_lines";

type Value = number | string | boolean;

export interface Knob {
  readonly key: string;
  readonly value: Value | null;
  readonly default: Value | null;
  readonly minimum: number | null;
  readonly maximum: number | null;
  readonly choices: readonly (string | number | boolean)[];
}

interface Learner {
  readonly tick: number | null;
  readonly algorithm: string | null;
  readonly phase: string | null;
  readonly epsilon: number | null;
  readonly prediction_error: number | null;
  readonly expected: Band | null;
  readonly baseline: Band | null;
  readonly wanted: Readonly<Record<string, Value>>;
  readonly changes: number;
  readonly refused: number;
}

export interface Session {
  readonly session: string;
  /** Why nothing is heard of it; null: it is heard. */
  readonly problem: string | null;
  readonly objective: string | null;
  readonly interval_s: number;
  readonly tick: number | null;
  readonly performance: readonly (readonly [number, number])[];
  readonly now: number | null;
  readonly gain: number | null;
  readonly lower_is_better: boolean;
  readonly baseline: (Band & { readonly ticks: number }) | null;
  readonly knobs: readonly Knob[];
  readonly mode: string | null;
  readonly holding: string | null;
  readonly stored: boolean;
  readonly workload: string | null;
  readonly nodes: readonly { readonly name: string; readonly is_here: boolean }[];
  readonly learner: Learner | null;
  readonly phase: string | null;
  readonly until_s: number | null;
  readonly parts: readonly { readonly name: string; readonly state: string; readonly restarts: number }[];
  readonly proof: Readonly<Record<string, unknown>> | null;
  readonly refused: readonly {
    readonly tick: number;
    readonly wanted: Readonly<Record<string, Value>>;
    readonly verdict: string;
    readonly reason: string;
  }[];
  readonly refusals: Readonly<Record<string, number>>;
  readonly verdicts: Readonly<Record<string, number>>;
  readonly happened: readonly { readonly tick: number | null; readonly event: string; readonly detail: Readonly<Record<string, unknown>> }[];
  /** Settings, each from a tick on. */
  readonly settings: readonly (readonly [number, Readonly<Record<string, Value>>])[];
  /** Tick, epsilon, prediction error. */
  readonly told: readonly (readonly [number, number | null, number | null])[];
}

const LISTED = 10;

/** What is shown of a session. */
export function sessionParts(session: Session): Node[] {
  const parts: Node[] = [html("h2", {}, `Session ${session.session}`)];
  if (session.problem !== null) parts.push(html("p", { class: "problem" }, problemText(session)));
  if (session.holding !== null) parts.push(html("p", { class: "problem" }, `Every action is refused now: ${session.holding}`));
  const gone = session.nodes.filter((one) => !one.is_here).map((one) => one.name);
  if (gone.length > 0) parts.push(html("p", { class: "problem" }, `Nothing comes from ${gone.slice(0, 12).join(", ")}${gone.length > 12 ? ", …" : ""}`));
  const faulty = session.parts.filter((one) => one.state !== "running");
  if (faulty.length > 0) parts.push(html("p", { class: "problem" }, `Processes: ${faulty.map((one) => `${one.name} ${one.state}`).join(", ")}`));
  parts.push(html("div", { class: "row" }, html("div", {}, performance(session)), html("dl", { class: "facts" }, ...facts(session).flatMap(([name, text]) => [html("dt", {}, name), html("dd", {}, text)]))));
  const learning = learner(session);
  const halves: (readonly [string, Node])[][] = [
    [["Knobs", knobs(session)], ...(learning === null ? [] : [["Learner", learning] as const])],
    [["Refused and failed actions", refused(session)], ...(session.happened.length === 0 ? [] : [["Events", events(session)] as const])],
  ];
  for (const row of halves) {
    parts.push(html("div", { class: "row" }, ...row.map(([name, content]) => html("div", {}, html("h3", {}, name), content))));
  }
  return parts;
}

function problemText({ problem, tick }: Session): string {
  return `${problem!}${tick === null ? "" : "; shown is what was known last"}`;
}

function facts(session: Session): [string, string][] {
  const { learner, baseline } = session;
  const here = session.nodes.filter((one) => one.is_here).length;
  const found: [string, string | null][] = [
    ["objective", session.objective],
    ["now", session.now === null ? null : number(session.now)],
    ["baseline", baseline === null ? bandText(learner?.baseline ?? null) : `${number(baseline.mean)}, of ${count(baseline.ticks)} ticks`],
    ["last minute", session.gain === null ? null : `${signed(session.gain)} against the baseline, and no proof`],
    ["compared", proofText(session.proof)],
    ["expected here", bandText(learner?.expected ?? null)],
    ["phase", session.phase],
    ["mode", session.mode],
    ["learner", learner === null ? null : [learner.algorithm, learner.phase].filter((one) => one !== null).join(", ")],
    ["epsilon", learner?.epsilon == null ? null : share(learner.epsilon)],
    ["prediction error", learner?.prediction_error == null ? null : share(learner.prediction_error)],
    ["actions", actions(session.verdicts)],
    ["workload", session.workload],
    ["nodes", session.nodes.length === 0 ? null : `${count(here)} of ${count(session.nodes.length)} here`],
    ["time left", session.until_s === null ? null : duration(session.until_s - Date.now() / 1000)],
    ["last tick", session.tick === null ? null : `${clock(session.tick, session.interval_s)}${session.stored ? "" : ", not on disk"}`],
  ];
  return found.filter((one): one is [string, string] => one[1] !== null && one[1] !== "");
}

function bandText(band: Band | null): string | null {
  if (band === null) return null;
  return band.low === null || band.high === null ? number(band.mean) : `${number(band.mean)} [${number(band.low)}, ${number(band.high)}]`;
}

function actions(verdicts: Readonly<Record<string, number>>): string | null {
  const known = ["applied", "refused", "failed", "waiting", "observed"].filter((verdict) => (verdicts[verdict] ?? 0) > 0);
  return known.length === 0 ? null : known.map((verdict) => `${count(verdicts[verdict]!)} ${verdict}`).join(", ");
}

/** What phases with and without tuning, in turns, have shown. */
function proofText(proof: Session["proof"]): string | null {
  if (proof === null) return null;
  const isShare = typeof proof["gain"] === "number";
  const keys = isShare ? ["gain", "gain_low", "gain_high"] : ["difference", "difference_low", "difference_high"];
  const values = keys.map((key) => proof[key]).filter((one) => typeof one === "number");
  if (values.length < keys.length) return null;
  const [gain, low, high] = values.map(isShare ? signed : change);
  const { claim, pairs } = proof;
  const said = claim === "gain" || claim === "loss" ? `${claim}: ` : "nothing is claimed: ";
  return `${said}${gain} [${low}, ${high}], ${String(pairs)} pairs of phases`;
}

/** The objective over the last ticks, with the baseline's band, and when the setting was changed. */
function performance(session: Session): Node {
  const { performance: points, baseline, learner } = session;
  if (points.length === 0) return html("p", { class: "told" }, "The objective was not measured yet.");
  const told = baseline === null ? (learner?.baseline ?? null) : baseline;
  const what = baseline === null ? "baseline, as the learner measured it, with 95% limits" : "baseline: mean, 10 to 90% of its ticks";
  return lines({
    title: session.objective ?? "objective",
    told: `${points.length} ticks of the objective, the last ${number(points.at(-1)![1])}`,
    points,
    band: told,
    marks: session.settings.slice(1).map(([tick]) => tick),
    legend: `${told === null ? "no baseline yet" : what}; ▾ the setting was changed`,
    interval_s: session.interval_s,
  });
}

function knobs(session: Session): Node {
  if (session.knobs.length === 0) return html("p", { class: "told" }, "None is known yet.");
  const head = ["knob", "now", "before", "allowed", "wanted", "over time"].map((text) => html("th", { scope: "col", class: "text" }, text));
  const last = session.performance.at(-1)?.[0] ?? session.tick ?? 0;
  const first = session.performance[0]?.[0] ?? last;
  const rows = session.knobs.map((knob) => {
    const wanted = session.learner?.wanted[knob.key];
    const changed = knob.default !== null && knob.value !== knob.default;
    const cells = [
      html("td", { class: "text" }, knob.key),
      html("td", { class: changed ? "text changed" : "text" }, setting(knob.value)),
      html("td", { class: "text" }, setting(knob.default)),
      html("td", { class: "text" }, allowed(knob)),
      html("td", { class: "text" }, wanted === undefined || wanted === knob.value ? "–" : setting(wanted)),
      html("td", { class: "text" }, line(knob, session.settings, [first, last])),
    ];
    return html("tr", {}, ...cells);
  });
  return scroll("Knobs", html("table", { "aria-label": "Knobs" }, html("thead", {}, html("tr", {}, ...head)), html("tbody", {}, ...rows)));
}

function allowed({ minimum, maximum, choices }: Knob): string {
  if (choices.length > 0) return choices.join(", ");
  return minimum === null && maximum === null ? "–" : `${minimum === null ? "" : number(minimum)} to ${maximum === null ? "" : number(maximum)}`;
}

/** The learner's share of random actions, and the error of its predictions. */
function learner({ told, interval_s }: Session): Node | null {
  const pictures: Node[] = [];
  for (const [title, at] of [["epsilon", 1], ["prediction error", 2]] as const) {
    const points = told.flatMap((one): [number, number][] => (one[at] === null ? [] : [[one[0], one[at]]]));
    if (points.length < 2) continue;
    const last = share(points.at(-1)![1]);
    pictures.push(lines({ title, told: `${title} over ${points.length} ticks, the last ${last}`, points, band: null, marks: [], legend: "", interval_s, low: true }));
  }
  return pictures.length === 0 ? null : html("div", { class: "row" }, ...pictures);
}

function refused(session: Session): Node {
  if (session.refused.length === 0) return html("p", { class: "told" }, "None.");
  const kinds = Object.entries(session.refusals).sort((a, b) => b[1] - a[1]);
  const head = ["when", "wanted", "verdict", "reason"].map((text) => html("th", { scope: "col", class: "text" }, text));
  const rows = session.refused.slice(0, LISTED).map((one) =>
    html("tr", {}, ...[clock(one.tick, session.interval_s), settings(one.wanted), one.verdict, one.reason].map((text) => html("td", { class: "text" }, text))),
  );
  const made = html("table", { "aria-label": "Refused and failed actions" }, html("thead", {}, html("tr", {}, ...head)), html("tbody", {}, ...rows));
  const by = html("p", { class: "told" }, `By reason: ${kinds.map(([kind, times]) => `${kind} ${count(times)}`).join(", ")}.`);
  return html("div", {}, by, scroll("Refused and failed actions", made));
}

function events(session: Session): Node {
  const list = session.happened.slice(0, LISTED).map(({ tick, event, detail }) => {
    const text = Object.entries(detail).map(([key, value]) => `${key} ${typeof value === "object" ? JSON.stringify(value) : String(value)}`);
    return html("li", {}, [tick === null ? "" : clock(tick, session.interval_s), event, ...text].filter((part) => part !== "").join(" · ").slice(0, 300));
  });
  return html("ul", { class: "events" }, ...list);
}

function settings(wanted: Readonly<Record<string, Value>>): string {
  return Object.entries(wanted).map(([key, value]) => `${key} = ${setting(value)}`).join(", ") || "nothing";
}

function scroll(name: string, content: Node): HTMLElement {
  return html("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": name }, content);
}
