// What is to be reached, and within which limits: an objective, and any number of constraints as brushes.

import { brushX, type D3BrushEvent } from "d3-brush";
import { scaleLinear } from "d3-scale";
import { select } from "d3-selection";

import { ACCENT, MIDDLE } from "../colours";
import { type Table } from "../data/table";
import { button, choice, html, replace, svg } from "../dom";
import { CATEGORIES } from "../data/cost";
import { number } from "../format";

const WIDTH = 240;
const HEIGHT = 40;
const BINS = 60;

export interface Limits {
  readonly low: number | null;
  readonly high: number | null;
}

export interface Constraint extends Limits {
  readonly metric: string;
  readonly values: Float64Array;
}

export interface Acts {
  objective(metric: string, minimize: boolean): void;
  /** A constraint that does not restrict yet. */
  add(metric: string): void;
  limit(metric: string, limits: Limits): void;
  remove(metric: string): void;
  weigh(weights: readonly number[]): void;
}

export interface Goal {
  readonly table: Table;
  readonly metric: string;
  readonly minimize: boolean;
  readonly constraints: readonly Constraint[];
  /** What a change of each category costs; null: nobody knows which change is of which. */
  readonly weights: readonly number[] | null;
}

export function drawGoal(place: HTMLElement, goal: Goal, acts: Acts): void {
  const metrics = goal.table.metrics.map((one) => [one.name, one.name] as const);
  const objective = choice("Objective", metrics, goal.metric, (metric) => {
    const known = goal.table.metrics.find((one) => one.name === metric);
    acts.objective(metric, known?.minimize ?? false);
  });
  const ways = [
    ["max", "more is better"],
    ["min", "less is better"],
  ] as const;
  const direction = choice("Direction", ways, goal.minimize ? "min" : "max", (way) =>
    acts.objective(goal.metric, way === "min"),
  );
  const free = metrics.filter(([name]) => !goal.constraints.some((one) => one.metric === name));
  const add = choice("Constraint", [["", "add one…"], ...free], "", (metric) => {
    if (metric !== "") acts.add(metric);
  });
  const row = html("div", { class: "choices" }, objective, direction, add);
  if (goal.weights !== null) row.append(weighing(goal.weights, acts));
  const constraints = html("div", { class: "constraints" });
  for (const one of goal.constraints) constraints.append(brush(one, acts));
  replace(place, row, constraints);
}

/** What a change of each category costs, as numbers to type. */
function weighing(weights: readonly number[], acts: Acts): HTMLElement {
  const fields = weights.map((weight, category) =>
    html("input", {
      type: "number",
      min: 0,
      step: "any",
      value: String(weight),
      "aria-label": `Weight of category ${category}, ${CATEGORIES[category]!}`,
      title: `A change of category ${category}: ${CATEGORIES[category]!}`,
    }),
  );
  const send = () => {
    const typed = fields.map((field) => field.valueAsNumber);
    if (typed.every((one) => Number.isFinite(one) && one >= 0)) acts.weigh(typed);
  };
  for (const field of fields) field.addEventListener("change", send);
  const what = "What a change of each category costs: no downtime, seconds, minutes, hours to days. Makes change_cost.";
  return html("span", { class: "weights", role: "group", "aria-label": "Cost weights", title: what }, html("span", {}, "Cost weights"), ...fields);
}

/** A histogram with a brush on it, and the same limits as numbers to type. */
function brush(constraint: Constraint, acts: Acts): HTMLElement {
  const { metric, values } = constraint;
  const [least, most] = extent(values);
  const x = scaleLinear([least, most], [0, WIDTH]);
  const picture = svg("svg", { width: WIDTH, height: HEIGHT, "aria-hidden": "true" });
  picture.append(svg("path", { d: histogram(values, least, most), fill: MIDDLE }));
  const low = input(metric, "at least", constraint.low, least);
  const high = input(metric, "at most", constraint.high, most);
  const send = () => {
    acts.limit(metric, { low: typed(low), high: typed(high) });
  };
  low.addEventListener("change", send);
  high.addEventListener("change", send);
  const handle = brushX<unknown>().extent([
    [0, 0],
    [WIDTH, HEIGHT],
  ]);
  const layer = select(picture).append<SVGGElement>("g");
  layer.call(handle);
  if (constraint.low !== null || constraint.high !== null) {
    layer.call(handle.move, [x(constraint.low ?? least), x(constraint.high ?? most)]);
  }
  layer.select(".selection").attr("fill", ACCENT).attr("stroke", ACCENT);
  // Moves by program come before this line, so that only the user's are told.
  handle.on("end", (event: D3BrushEvent<unknown>) => {
    if (event.sourceEvent === null || event.sourceEvent === undefined) return;
    const chosen = event.selection as [number, number] | null;
    if (chosen === null) return acts.limit(metric, { low: null, high: null });
    const [from, to] = chosen;
    acts.limit(metric, {
      low: from <= 0.5 ? null : tidy(x.invert(from), most - least),
      high: to >= WIDTH - 0.5 ? null : tidy(x.invert(to), most - least),
    });
  });
  const remove = button("×", `Remove the constraint on ${metric}`, () => acts.remove(metric), "remove");
  remove.setAttribute("aria-label", `Remove the constraint on ${metric}`);
  return html(
    "fieldset",
    { class: "constraint" },
    html("legend", {}, metric, remove),
    picture,
    html("span", { class: "limits" }, low.parentElement!, high.parentElement!),
  );
}

function input(metric: string, what: string, value: number | null, fallback: number): HTMLInputElement {
  const field = html("input", {
    type: "number",
    step: "any",
    "aria-label": `${metric} ${what}`,
    placeholder: number(fallback),
    value: value === null ? "" : String(value),
  });
  html("label", {}, what, field);
  return field;
}

function typed(field: HTMLInputElement): number | null {
  return field.value === "" || !Number.isFinite(field.valueAsNumber) ? null : field.valueAsNumber;
}

/** As few digits as the brush can mean. */
function tidy(value: number, span: number): number {
  const step = 10 ** Math.floor(Math.log10(span / WIDTH));
  return Number((Math.round(value / step) * step).toPrecision(12));
}

function extent(values: Float64Array): [number, number] {
  let least = Infinity;
  let most = -Infinity;
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    if (value < least) least = value;
    if (value > most) most = value;
  }
  return least <= most ? [least, most > least ? most : least + 1] : [0, 1];
}

function histogram(values: Float64Array, least: number, most: number): string {
  const counts = new Float64Array(BINS);
  for (const value of values) {
    if (Number.isFinite(value)) counts[Math.min(BINS - 1, Math.floor(((value - least) / (most - least)) * BINS))]!++;
  }
  const top = Math.max(...counts, 1);
  const step = WIDTH / BINS;
  let path = "";
  counts.forEach((held, bin) => {
    const height = held === 0 ? 0 : Math.max(1, (held / top) * (HEIGHT - 2));
    path += `M${(bin * step).toFixed(1)} ${HEIGHT}v${(-height).toFixed(1)}h${(step - 0.6).toFixed(1)}V${HEIGHT}Z`;
  });
  return path;
}
