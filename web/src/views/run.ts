// The running study: best so far, trials as they come, what is being tried, what is left.

import { scaleLinear } from "d3-scale";

import { ACCENT, DENSITY, FAINT, GRID, MIDDLE } from "../colours";
import { html, svg } from "../dom";
import { count, duration, number } from "../format";

interface TrialLine {
  readonly number: number;
  readonly purpose: string;
  readonly state: string;
  readonly score: number | null;
  readonly unmet: boolean;
}

interface TrialTold {
  readonly number: number;
  readonly purpose: string;
  readonly score: number | null;
  readonly ci_low: number | null;
  readonly ci_high: number | null;
  readonly chosen: Readonly<Record<string, unknown>>;
  readonly since_s?: number;
  /** Seconds and scores. */
  readonly readings?: readonly (readonly [number, number])[];
}

export interface Run {
  readonly run_id: number;
  readonly study: string;
  readonly state: string;
  readonly objective: string;
  readonly minimize: boolean;
  readonly elapsed_s: number;
  readonly left_s: number | null;
  readonly evaluations: number;
  readonly evaluations_left: number | null;
  readonly failed: number;
  readonly best_so_far: readonly { number: number; elapsed_s: number; score: number }[];
  readonly best: TrialTold | null;
  readonly trying: TrialTold | null;
  readonly trials: readonly TrialLine[];
  readonly trials_before: number;
  readonly verdict: { kind: string; note: string } | null;
}

const WIDTH = 560;
const HEIGHT = 130;
const LEFT = 56;

/** What is shown of a running study. */
export function runParts(run: Run): Node[] {
  const facts: [string, string][] = [
    ["state", run.state],
    ["objective", run.objective],
    ["evaluations", `${count(run.evaluations)}${run.failed > 0 ? `, ${count(run.failed)} failed` : ""}`],
  ];
  if (run.evaluations_left !== null) facts.push(["evaluations left", `about ${count(run.evaluations_left)}`]);
  facts.push(["time", duration(run.elapsed_s)]);
  if (run.left_s !== null) facts.push(["time left", duration(run.left_s)]);
  if (run.best !== null) facts.push(["best so far", `${told(run.best)} (trial ${run.best.number})`]);
  if (run.verdict !== null) facts.push(["verdict", `${run.verdict.kind}. ${run.verdict.note}`]);
  const list = html("dl", { class: "facts" }, ...facts.flatMap(([a, b]) => [html("dt", {}, a), html("dd", {}, b)]));
  const parts: Node[] = [html("h2", {}, `${run.study}, run ${run.run_id}`), list, trialsPicture(run)];
  if (run.trying !== null) {
    const since = run.trying.since_s === undefined ? "" : `, for ${duration(run.trying.since_s)}`;
    parts.push(html("p", { class: "trying" }, html("b", {}, `Trying now (trial ${run.trying.number}, ${run.trying.purpose}${since}): `), chosen(run.trying)), readingsPicture(run.trying));
  }
  if (run.best !== null) parts.push(html("p", { class: "trying" }, html("b", {}, "Best so far: "), chosen(run.best)));
  return parts;
}

function told(trial: TrialTold): string {
  const score = trial.score === null ? "–" : number(trial.score);
  return trial.ci_low === null || trial.ci_high === null
    ? score
    : `${score} [${number(trial.ci_low)}, ${number(trial.ci_high)}]`;
}

function chosen(trial: TrialTold): string {
  const values = Object.entries(trial.chosen).map(([name, value]) => `${name} = ${String(value)}`);
  return values.length === 0 ? "the default configuration" : values.join(", ");
}

/** Scores by trial, and the best so far as a step line. */
function trialsPicture(run: Run): SVGSVGElement {
  const scored = run.trials.filter((one) => one.score !== null);
  const root = svg("svg", { width: WIDTH, height: HEIGHT, viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img" });
  root.setAttribute("aria-label", `Scores of ${run.trials.length} trials, and the best so far`);
  if (scored.length === 0) return root;
  const numbers = run.trials.map((one) => one.number);
  const scores = scored.map((one) => one.score!);
  const x = scaleLinear([numbers[0]!, Math.max(numbers.at(-1)!, numbers[0]! + 1)], [LEFT + 6, WIDTH - 10]);
  const y = scaleLinear([Math.min(...scores), Math.max(...scores)], [HEIGHT - 22, 10]).nice(4);
  for (const tick of y.ticks(4)) {
    root.append(svg("line", { x1: LEFT, x2: WIDTH, y1: y(tick), y2: y(tick), stroke: GRID }));
    root.append(svg("text", { class: "tick", x: LEFT - 6, y: y(tick) + 4, "text-anchor": "end", fill: FAINT }, number(tick)));
  }
  for (const one of scored) {
    const colour = one.purpose === "verify" ? DENSITY : MIDDLE;
    root.append(svg("circle", { cx: x(one.number), cy: y(one.score!), r: 3, fill: colour, "fill-opacity": one.unmet ? 0.35 : 0.9 }));
  }
  const steps = run.best_so_far.filter((step) => step.number >= numbers[0]!);
  const before = run.best_so_far.filter((step) => step.number < numbers[0]!).at(-1);
  const line = [...(before === undefined ? [] : [{ ...before, number: numbers[0]! }]), ...steps];
  if (line.length > 0) {
    let path = `M${x(line[0]!.number)} ${y(line[0]!.score)}`;
    for (const step of line.slice(1)) path += `H${x(step.number)}V${y(step.score)}`;
    root.append(svg("path", { d: `${path}H${x.range()[1]!}`, fill: "none", stroke: ACCENT, "stroke-width": 2 }));
  }
  root.append(svg("text", { class: "tick", x: (LEFT + WIDTH) / 2, y: HEIGHT - 4, "text-anchor": "middle", fill: FAINT }, `trial ${numbers[0]} to ${numbers.at(-1)}`));
  return root;
}

/** What the running trial has read so far. */
function readingsPicture(trial: TrialTold): Node {
  const readings = trial.readings ?? [];
  if (readings.length < 2) return html("p", { class: "told" }, "No readings of it yet.");
  const root = svg("svg", { width: WIDTH, height: 84, viewBox: `0 0 ${WIDTH} 84`, role: "img", class: "readings" });
  root.setAttribute("aria-label", `${readings.length} readings of trial ${trial.number}, the last ${number(readings.at(-1)![1])}`);
  const seconds = readings.map(([second]) => second);
  const scores = readings.map(([, score]) => score);
  const x = scaleLinear([seconds[0]!, seconds.at(-1)!], [LEFT + 6, WIDTH - 10]);
  const y = scaleLinear([Math.min(...scores), Math.max(...scores)], [64, 8]).nice(3);
  for (const tick of y.ticks(3)) {
    root.append(svg("line", { x1: LEFT, x2: WIDTH, y1: y(tick), y2: y(tick), stroke: GRID }));
    root.append(svg("text", { class: "tick", x: LEFT - 6, y: y(tick) + 4, "text-anchor": "end", fill: FAINT }, number(tick)));
  }
  const points = readings.map(([second, score]) => `${x(second).toFixed(1)} ${y(score).toFixed(1)}`);
  root.append(svg("path", { d: `M${points.join("L")}`, fill: "none", stroke: DENSITY, "stroke-width": 1.6 }));
  const told = `its readings, second ${number(seconds[0]!)} to ${number(seconds.at(-1)!)}`;
  root.append(svg("text", { class: "tick", x: (LEFT + WIDTH) / 2, y: 80, "text-anchor": "middle", fill: FAINT }, told));
  return root;
}
