// Where the exploration stands: the steps taken, how many of them hold now, and how it is looked at.

import { WEIGHTS } from "./data/cost";
import { type Spread } from "./engine/configurations";

export type Step =
  /** These values of a dimension alone; none: all of them again. */
  | { readonly kind: "values"; readonly dimension: string; readonly labels: readonly string[] }
  /** A metric within limits; both null: without. */
  | { readonly kind: "limit"; readonly metric: string; readonly low: number | null; readonly high: number | null }
  | { readonly kind: "objective"; readonly metric: string; readonly minimize: boolean }
  /** One configuration alone: a value, or range of values, of every dimension. */
  | { readonly kind: "one"; readonly labels: readonly (readonly [string, string])[] }
  | { readonly kind: "everything" };

export interface View {
  readonly look: "bars" | "parallel";
  readonly sort: "table" | "importance";
  readonly scale: "left" | "all";
  readonly table: "best" | "stable" | "pareto";
  /** How unlike runs of one configuration are: the measure of stability. */
  readonly spread: Spread;
  /** The second metric of the Pareto set, or how unlike a configuration's runs are; empty: none chosen yet. */
  readonly second: string;
  readonly secondMinimize: boolean;
  /** What a configuration of the Pareto set must bring over the next one, in percent of that. */
  readonly gain: number;
  /** What a change of each category costs. */
  readonly weights: readonly number[];
}

export interface State {
  readonly steps: readonly Step[];
  /** How many steps hold; the later ones were taken back and can be taken again. */
  readonly at: number;
  readonly view: View;
}

/** What the steps come to. */
export interface Standing {
  readonly objective: { readonly metric: string; readonly minimize: boolean } | null;
  readonly values: ReadonlyMap<string, readonly string[]>;
  readonly limits: ReadonlyMap<string, { readonly low: number | null; readonly high: number | null }>;
}

const FRESH_VIEW: View = {
  look: "bars",
  sort: "table",
  scale: "left",
  table: "best",
  spread: "range",
  second: "",
  secondMinimize: false,
  gain: 0,
  weights: WEIGHTS,
};

export const FRESH: State = { steps: [], at: 0, view: FRESH_VIEW };
const STEPS_MAX = 500;

export function taken(state: State, step: Step): State {
  const steps = [...state.steps.slice(0, state.at), step].slice(-STEPS_MAX);
  return { ...state, steps, at: steps.length };
}

export function standing(state: State, at = state.at): Standing {
  let objective: Standing["objective"] = null;
  let values = new Map<string, readonly string[]>();
  let limits = new Map<string, { low: number | null; high: number | null }>();
  for (const step of state.steps.slice(0, at)) {
    switch (step.kind) {
      case "values":
        if (step.labels.length === 0) values.delete(step.dimension);
        else values.set(step.dimension, step.labels);
        break;
      case "limit":
        if (step.low === null && step.high === null) limits.delete(step.metric);
        else limits.set(step.metric, { low: step.low, high: step.high });
        break;
      case "one":
        for (const [dimension, label] of step.labels) values.set(dimension, [label]);
        break;
      case "objective":
        objective = { metric: step.metric, minimize: step.minimize };
        break;
      case "everything":
        values = new Map();
        limits = new Map();
    }
  }
  return { objective, values, limits };
}

/** The part of the address after "#" that restores a state. */
export function toHash(state: State): string {
  const query = new URLSearchParams();
  if (state.steps.length > 0) query.set("steps", JSON.stringify(state.steps.map(packed)));
  if (state.at !== state.steps.length) query.set("at", String(state.at));
  for (const [key, value] of Object.entries(state.view)) {
    if (String(value) !== String(FRESH_VIEW[key as keyof View])) query.set(key, String(value));
  }
  const text = query.toString();
  return text === "" ? "" : `#${text}`;
}

/** The state of an address; whatever in it makes no sense is left out. */
export function fromHash(hash: string): State {
  const query = new URLSearchParams(hash.replace(/^#/, ""));
  const steps = parsed(query.get("steps")).slice(0, STEPS_MAX);
  const at = Number.parseInt(query.get("at") ?? "", 10);
  const one = <T extends string>(key: string, allowed: readonly T[], fallback: T): T =>
    allowed.find((value) => value === query.get(key)) ?? fallback;
  return {
    steps,
    at: Number.isInteger(at) && at >= 0 && at < steps.length ? at : steps.length,
    view: {
      look: one("look", ["bars", "parallel"], FRESH_VIEW.look),
      sort: one("sort", ["table", "importance"], FRESH_VIEW.sort),
      scale: one("scale", ["left", "all"], FRESH_VIEW.scale),
      table: one("table", ["best", "stable", "pareto"], FRESH_VIEW.table),
      spread: one("spread", ["range", "iqr", "rsd"], FRESH_VIEW.spread),
      second: query.get("second") ?? "",
      secondMinimize: query.get("secondMinimize") === "true",
      gain: amounts(query.get("gain"), 1)?.[0] ?? FRESH_VIEW.gain,
      weights: amounts(query.get("weights"), WEIGHTS.length) ?? WEIGHTS,
    },
  };
}

function packed(step: Step): unknown[] {
  switch (step.kind) {
    case "values":
      return ["v", step.dimension, ...step.labels];
    case "limit":
      return ["l", step.metric, step.low, step.high];
    case "one":
      return ["c", ...step.labels.flat()];
    case "objective":
      return ["o", step.metric, step.minimize ? "min" : "max"];
    case "everything":
      return ["e"];
  }
}

function parsed(text: string | null): Step[] {
  let found: unknown;
  try {
    found = JSON.parse(text ?? "[]");
  } catch {
    return [];
  }
  if (!Array.isArray(found)) return [];
  return found.flatMap((one: unknown): Step[] => {
    if (!Array.isArray(one)) return [];
    const [kind, name, ...rest] = one as unknown[];
    if (kind === "e") return [{ kind: "everything" }];
    if (typeof name !== "string") return [];
    if (kind === "v") {
      return [{ kind: "values", dimension: name, labels: rest.filter((label) => typeof label === "string") }];
    }
    if (kind === "c") {
      const texts = [name, ...rest].filter((text) => typeof text === "string");
      return [{ kind: "one", labels: pairs(texts) }];
    }
    if (kind === "l") return [{ kind: "limit", metric: name, low: finite(rest[0]), high: finite(rest[1]) }];
    if (kind === "o") return [{ kind: "objective", metric: name, minimize: rest[0] === "min" }];
    return [];
  });
}

function pairs(texts: readonly string[]): [string, string][] {
  return Array.from({ length: texts.length >> 1 }, (_, at) => [texts[2 * at]!, texts[2 * at + 1]!]);
}

/** So many numbers, none below 0; null where the text is anything else. */
function amounts(text: string | null, count: number): number[] | null {
  const found = (text ?? "").split(",").map((part) => (part === "" ? NaN : Number(part)));
  return found.length === count && found.every((one) => Number.isFinite(one) && one >= 0) ? found : null;
}

function finite(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}
