// The path taken: every step, with what was left after it. Any of them can be gone back to, and forward again.

import { button, html, replace } from "../dom";
import { count, number } from "../format";
import { type Step } from "../state";

export interface Milestone {
  readonly rows: number;
  readonly mean: number;
}

export interface Taken {
  readonly steps: readonly Step[];
  readonly at: number;
  /** What was left after so many steps, as far as it is known. */
  readonly milestones: ReadonlyMap<number, Milestone>;
}

export function drawPath(place: HTMLElement, taken: Taken, go: (at: number) => void): void {
  const back = button("Undo", "One step back (Ctrl+Z)", () => go(taken.at - 1));
  const forth = button("Redo", "One step forward (Ctrl+Y)", () => go(taken.at + 1));
  back.disabled = taken.at === 0;
  forth.disabled = taken.at === taken.steps.length;
  const list = html("ol");
  for (let at = 0; at <= taken.steps.length; at++) {
    const text = at === 0 ? "Everything" : stepText(taken.steps[at - 1]!);
    const one = button("", at === 0 ? "Back to the beginning" : `Back to after “${text}”`, () => go(at));
    one.append(html("span", { class: "what" }, text));
    const milestone = taken.milestones.get(at);
    if (milestone !== undefined) {
      const left = milestone.rows === 0 ? "nothing left" : `${count(milestone.rows)} · mean ${number(milestone.mean)}`;
      one.append(html("span", { class: "left" }, left));
    }
    if (at === taken.at) one.setAttribute("aria-current", "step");
    list.append(html("li", { class: at > taken.at ? "undone" : "" }, one));
  }
  replace(place, html("span", { class: "undo" }, back, forth), list);
}

export function stepText(step: Step): string {
  switch (step.kind) {
    case "values":
      return step.labels.length === 0 ? `${step.dimension}: any` : `${step.dimension} = ${step.labels.join(" or ")}`;
    case "limit":
      return limitText(step.metric, step.low, step.high);
    case "one":
      return step.labels.map(([dimension, label]) => `${dimension} = ${label}`).join(", ");
    case "objective":
      return `${step.minimize ? "least" : "most"} ${step.metric}`;
    case "everything":
      return "no restriction";
  }
}

export function limitText(metric: string, low: number | null, high: number | null): string {
  if (low !== null && high !== null) return `${number(low)} ≤ ${metric} ≤ ${number(high)}`;
  if (low !== null) return `${metric} ≥ ${number(low)}`;
  return high === null ? `${metric}: any` : `${metric} ≤ ${number(high)}`;
}
