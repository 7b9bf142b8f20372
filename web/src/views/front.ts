// The trade-off of two measures: every configuration as a point, and those that no other one beats as a table.

import { textAt } from "../data/table";
import { button, choice, html } from "../dom";
import { type Groups } from "../engine/configurations";
import { gainOver, pareto, worthIt } from "../engine/pareto";
import { count, many, number, share } from "../format";
import { scatter, type Side } from "./scatter";
import { type Column, configurations, type Listed, SHOWN, SPREADS, type TableActs } from "./listing";

/** Second measures that are no metric: how unlike the runs of a configuration are. */
const OWN_RUNS = SPREADS.map(([key, text]) => [`own runs: ${key}`, `${text} of its own runs`] as const);

const WAYS = [
  ["max", "more is better"],
  ["min", "less is better"],
] as const;

export function front(listed: Listed, made: Groups, acts: TableActs): HTMLElement[] {
  const { view, table } = listed;
  const metrics = table.metrics.filter((one) => one.name !== listed.metric).map((one) => [one.name, one.name] as const);
  const named = listed.second?.name ?? OWN_RUNS.find(([key]) => key === view.second)?.[0] ?? "";
  const other = choice("Second metric", [["", "choose…"], ...metrics, ...OWN_RUNS], named, (name) => {
    const known = table.metrics.find((one) => one.name === name);
    acts.view({ second: name, secondMinimize: known?.minimize ?? true });
  });
  const second = secondOf(listed, made);
  if (second === null) return [other, html("p", { class: "told" }, "What else counts: latency, cost, variation? Choose a second metric.")];
  const direction = choice("Its direction", WAYS, view.secondMinimize ? "min" : "max", (way) =>
    acts.view({ secondMinimize: way === "min" }),
  );
  const first: Side = { name: `mean ${listed.metric}`, values: made.means(), minimize: listed.minimize };
  const found = pareto(first, second);
  const held = worthIt(first, found.front, view.gain / 100);
  const choices = html("div", { class: "choices" }, other, direction, worth(view.gain, acts));
  if (found.known === 0) return [choices, html("p", { class: "none" }, nothing(listed, second))];
  const told = summary(held.length, found.front.length, found.known, view.gain);
  const box = html("div", { class: "picked", "aria-live": "polite" }, html("p", { class: "told" }, "Click a point to see its configuration."));
  const picture = scatter({ first, second, front: held }, (id) => box.replaceChildren(...card(listed, made, id, { first, second }, acts)));
  const shown = held.slice(0, 4 * SHOWN);
  const next = new Map(held.map((id, place) => [id, held[place + 1]]));
  const columns: Column[] = [
    [first.name, (one) => number(one.mean)],
    [second.name, (one) => number(second.values[one.id]!)],
    ["gain over the next", (one) => gainText(first, one.id, next.get(one.id))],
    ["runs", (one) => count(one.count)],
  ];
  return [
    choices,
    html("p", { class: "told" }, told),
    html("div", { class: "tradeoff" }, picture, box),
    configurations(listed, shown.map((id) => made.summary(id)), columns, acts),
  ];
}

function secondOf(listed: Listed, made: Groups): Side | null {
  const { second, view } = listed;
  if (second !== null) return { name: `mean ${second.name}`, values: made.meansOf(second.values), minimize: view.secondMinimize };
  const own = OWN_RUNS.findIndex(([key]) => key === view.second);
  if (own < 0) return null;
  const [spread] = SPREADS[own]!;
  return { name: OWN_RUNS[own]![1], values: made.spreads(spread), minimize: view.secondMinimize };
}

/** From which gain on more of the second measure is taken. */
function worth(gain: number, acts: TableActs): HTMLElement {
  const field = html("input", { type: "number", min: 0, step: "any", value: String(gain), "aria-label": "Worth it from a gain of, in percent" });
  field.addEventListener("change", () => {
    if (Number.isFinite(field.valueAsNumber) && field.valueAsNumber >= 0) acts.view({ gain: field.valueAsNumber });
  });
  return html("label", { class: "choice", title: "Leave out what gains less over the next one of the table" }, html("span", {}, "Worth it from"), field, "%");
}

function summary(held: number, front: number, known: number, gain: number): string {
  const told = `${many(front, "configuration")} of ${count(known)} ${front === 1 ? "is" : "are"} beaten by no other in both`;
  const worth = gain > 0 ? `; ${count(held)} of them gain at least ${number(gain)}% each over the next` : "";
  return `${told}${worth}${held > 4 * SHOWN ? `; the first ${4 * SHOWN} are listed` : ""}.`;
}

function nothing(listed: Listed, second: Side): string {
  if (listed.bars.all.count === 0) return "Nothing is left: take a step back.";
  return listed.second === null
    ? "No configuration that is left was measured twice, so how unlike its runs are is not known."
    : `Of no configuration that is left ${second.name} is known.`;
}

function gainText(first: Side, id: number, next: number | undefined): string {
  const gain = next === undefined ? 0 : gainOver(first, id, next);
  return gain === 0 ? "–" : `+${share(gain)}`;
}

/** The configuration of a point that was chosen. */
function card(listed: Listed, made: Groups, id: number, sides: { first: Side; second: Side }, acts: TableActs): HTMLElement[] {
  const one = made.summary(id);
  const facts: [string, string][] = [
    [sides.first.name, number(one.mean)],
    [sides.second.name, number(sides.second.values[id]!)],
    ["runs", count(one.count)],
    ...listed.table.dimensions
      .map((dimension): [string, string] => [dimension.name, textAt(dimension, one.row)])
      .filter(([, text]) => text !== ""),
  ];
  const list = html("dl", { class: "facts" }, ...facts.flatMap(([name, text]) => [html("dt", {}, name), html("dd", {}, text)]));
  const buttons = html(
    "div",
    { class: "buttons" },
    button("Apply file", "Save this configuration for `ascar apply`", () => acts.apply(one.row)),
    button("Show it alone", "Restrict every dimension to this configuration's values", () => acts.only(one.row)),
  );
  return [html("h3", {}, "The configuration of the point"), list, buttons];
}
