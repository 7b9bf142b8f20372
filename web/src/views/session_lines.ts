// Values over ticks, as lines: the objective with a band, a knob as steps.

import { scaleLinear } from "d3-scale";

import { ACCENT, DENSITY, FAINT, GRID, INNER, MIDDLE } from "../colours";
import { svg } from "../dom";
import { number, share } from "../format";

const LEFT = 62;
const RIGHT = 12;
const TOP = 34;
const BOTTOM = 22;

export interface Band {
  readonly mean: number;
  readonly low: number | null;
  readonly high: number | null;
}

export interface Course {
  readonly title: string;
  /** In words, for a screen reader. */
  readonly told: string;
  /** Ticks and values, at least one. */
  readonly points: readonly (readonly [number, number])[];
  readonly band: Band | null;
  /** Ticks to be marked. */
  readonly marks: readonly number[];
  readonly legend: string;
  readonly interval_s: number;
  /** Whether the values are shares, drawn small and from 0. */
  readonly low?: boolean;
}

/** The time of a tick, where we are. */
export function clock(tick: number, interval_s: number): string {
  const time = new Date(tick * interval_s * 1000);
  return Number.isNaN(time.getTime()) ? `tick ${tick}` : time.toLocaleTimeString("en-GB");
}

export function signed(value: number): string {
  return `${value < 0 ? "−" : "+"}${share(Math.abs(value))}`;
}

/** A change in the objective's own unit. */
export function change(value: number): string {
  return `${value < 0 ? "−" : "+"}${number(Math.abs(value))}`;
}

export function setting(value: number | string | boolean | null): string {
  if (value === null) return "–";
  return typeof value === "number" ? value.toLocaleString("en", { maximumFractionDigits: 6 }) : String(value);
}

export function lines(course: Course): SVGSVGElement {
  const { points, band, marks, interval_s } = course;
  const [width, height] = course.low === true ? [420, 130] : [760, 260];
  const root = svg("svg", { class: "course", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": course.told });
  const [first, last] = [points[0]![0], points.at(-1)![0]];
  const x = scaleLinear([first, Math.max(last, first + 1)], [LEFT, width - RIGHT]);
  const wanted = [...points.map(([, value]) => value), ...(band === null ? [] : [band.mean, band.low ?? band.mean, band.high ?? band.mean])];
  const least = course.low === true ? 0 : wanted.reduce((a, b) => Math.min(a, b));
  const most = wanted.reduce((a, b) => Math.max(a, b));
  const room = most > least ? (most - least) * 0.06 : Math.abs(most) * 0.05 || 1;
  const y = scaleLinear([course.low === true ? 0 : least - room, most + room], [height - BOTTOM, TOP]);
  root.append(svg("text", { class: "title", x: 2, y: 13 }, course.title));
  root.append(svg("text", { class: "told", x: 2, y: 28 }, course.legend));
  if (band !== null) {
    const [low, high] = [band.low ?? band.mean, band.high ?? band.mean];
    root.append(svg("rect", { class: "band", x: LEFT, y: y(high), width: width - RIGHT - LEFT, height: Math.max(1, y(low) - y(high)), fill: INNER }));
  }
  for (const tick of y.ticks(course.low === true ? 3 : 5)) {
    root.append(svg("line", { x1: LEFT, x2: width - RIGHT, y1: y(tick), y2: y(tick), stroke: GRID }));
    const text = course.low === true ? share(tick) : number(tick);
    root.append(svg("text", { class: "tick", x: LEFT - 6, y: y(tick) + 4, "text-anchor": "end", fill: FAINT }, text));
  }
  if (band !== null) root.append(svg("path", { d: `M${LEFT} ${y(band.mean)}H${width - RIGHT}`, stroke: MIDDLE, "stroke-width": 2, "stroke-dasharray": "6 4", fill: "none" }));
  root.append(svg("path", { class: "values", d: pathOf(points, x, y), fill: "none", stroke: ACCENT, "stroke-width": 1.6 }));
  for (const tick of marks) if (tick >= first && tick <= last) root.append(svg("path", { class: "change", d: `M${x(tick) - 4} ${TOP - 2}h8l-4 7z`, fill: DENSITY }));
  for (const [tick, anchor] of [[first, "start"], [last, "end"]] as const) {
    root.append(svg("text", { class: "tick", x: x(tick), y: height - 6, "text-anchor": anchor, fill: FAINT }, clock(tick, interval_s)));
  }
  return root;
}

/** A line through neighbouring ticks; where ticks are missing it is interrupted. */
function pathOf(points: readonly (readonly [number, number])[], x: (tick: number) => number, y: (value: number) => number): string {
  let before = NaN;
  return points
    .map(([tick, value]) => {
      const joined = tick - before <= 3;
      before = tick;
      return `${joined ? "L" : "M"}${x(tick).toFixed(1)} ${y(value).toFixed(1)}${joined ? "" : "h0.1"}`;
    })
    .join("");
}

interface Turned {
  readonly key: string;
  readonly value: number | string | boolean | null;
  readonly default: number | string | boolean | null;
  readonly minimum: number | null;
  readonly maximum: number | null;
  readonly choices: readonly (string | number | boolean)[];
}

const WIDE = 260;
const TALL = 34;

/** A knob as steps over the ticks, from its least value to its greatest; where it was before, as a broken line. */
export function line(
  knob: Turned,
  settings: readonly (readonly [number, Readonly<Record<string, unknown>>])[],
  [first, last]: readonly [number, number],
): SVGSVGElement {
  const root = svg("svg", { width: WIDE, height: TALL, viewBox: `0 0 ${WIDE} ${TALL}`, role: "img" });
  const known = settings.flatMap(([tick, values]): [number, unknown][] => (knob.key in values ? [[Math.max(tick, first), values[knob.key]]] : []));
  root.setAttribute("aria-label", `${knob.key}: ${known.length <= 1 ? "not changed" : `changed ${known.filter(([, value], at) => at > 0 && value !== known[at - 1]![1]).length} times`}`);
  const words = knob.choices.length > 0 ? knob.choices.map(String) : [...new Set(known.map(([, value]) => String(value)))];
  const height = (value: unknown) => (typeof value === "number" ? value : words.indexOf(String(value)));
  const heights = known.map(([, value]) => height(value));
  const before = knob.default === null ? [] : [height(knob.default)];
  const ends = [...heights, ...before];
  if (ends.length === 0) return root;
  const least = ends.reduce((a, b) => Math.min(a, b));
  const most = ends.reduce((a, b) => Math.max(a, b));
  const x = scaleLinear([first, Math.max(last, first + 1)], [2, WIDE - 2]);
  const y = scaleLinear(most > least ? [least, most] : [least - 1, least + 1], [TALL - 5, 5]);
  for (const value of before) root.append(svg("path", { d: `M2 ${y(value)}H${WIDE - 2}`, stroke: MIDDLE, "stroke-dasharray": "4 3", fill: "none" }));
  if (heights.length === 0) return root;
  let path = `M${x(known[0]![0]).toFixed(1)} ${y(heights[0]!).toFixed(1)}`;
  known.forEach(([tick], at) => {
    if (at > 0) path += `H${x(tick).toFixed(1)}V${y(heights[at]!).toFixed(1)}`;
  });
  root.append(svg("path", { class: "steps", d: `${path}H${WIDE - 2}`, fill: "none", stroke: ACCENT, "stroke-width": 1.6 }));
  return root;
}
