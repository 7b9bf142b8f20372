// Configurations among what is left: the best, the most stable, those that no other one beats in two metrics.

import { type Dimension, textAt, type Table } from "../data/table";
import { button, choice, html } from "../dom";
import { type Bar } from "../engine/bar";
import { Groups, type Spread, type Summary } from "../engine/configurations";
import { type Bars } from "../engine/engine";
import { count, number, share } from "../format";
import { type View } from "../state";

const SHOWN = 12;

export interface Listed {
  readonly table: Table;
  readonly bars: Bars;
  readonly chosen: readonly (readonly boolean[] | null)[];
  readonly metric: string;
  readonly minimize: boolean;
  readonly values: Float64Array;
  readonly second: { readonly name: string; readonly values: Float64Array } | null;
  readonly view: View;
}

export interface TableActs {
  view(view: Partial<View>): void;
  apply(row: number): void;
  choose(dimension: string, label: string): void;
}

const TABS = [
  ["best", "Best"],
  ["stable", "Most stable"],
  ["pareto", "Pareto"],
] as const;

export function drawTables(place: HTMLElement, listed: Listed, acts: TableActs): void {
  const tabs = html("div", { class: "tabs", role: "group", "aria-label": "Which configurations" });
  for (const [key, text] of TABS) {
    const tab = button(text, `Show: ${text}`, () => acts.view({ table: key }));
    tab.setAttribute("aria-pressed", String(listed.view.table === key));
    tabs.append(tab);
  }
  const content = html("div", { class: "listing" });
  const made = new Groups(listed.table, listed.bars.rows, listed.values);
  switch (listed.view.table) {
    case "best":
      content.append(...best(listed, made, acts));
      break;
    case "stable":
      content.append(...stable(listed, made, acts));
      break;
    case "pareto":
      content.append(...front(listed, made, acts));
  }
  place.replaceChildren(tabs, content);
}

function best(listed: Listed, made: Groups, acts: TableActs): HTMLElement[] {
  const ordered = made.best(listed.minimize, SHOWN);
  const columns: Column[] = [
    [`mean ${listed.metric}`, (one) => number(one.mean)],
    ["runs", (one) => count(one.count)],
    ["RSD", (one) => (one.count > 1 ? share(one.rsd) : "–")],
  ];
  return [configurations(listed, ordered, columns, acts)];
}

const SPREADS = [
  ["range", "range"],
  ["iqr", "IQR"],
  ["rsd", "RSD"],
] as const;

/** The narrowest: values of dimensions, over all that is left; and configurations, over their own runs. */
function stable(listed: Listed, made: Groups, acts: TableActs): HTMLElement[] {
  const spread = listed.view.spread;
  const measure = choice("Measured by", SPREADS, spread, (value) => acts.view({ spread: value as Spread }));
  const name = SPREADS.find(([key]) => key === spread)![1];
  const shown = (value: number) => (spread === "rsd" ? share(value) : number(value));
  const repeated = made.stable(spread, SHOWN);
  const columns: Column[] = [
    [name, (one) => shown(one[spread])],
    [`mean ${listed.metric}`, (one) => number(one.mean)],
    ["runs", (one) => count(one.count)],
  ];
  const found = repeated.length > 0 ? configurations(listed, repeated, columns, acts) : html(
    "p",
    { class: "none" },
    "No configuration that is left was measured twice, so how stable each is by itself is not known.",
  );
  return [
    measure,
    html("h3", {}, "Values that leave the least variation"),
    values(listed, spread, name, shown, acts),
    html("h3", {}, "Configurations whose own runs vary least"),
    found,
  ];
}

function values(
  listed: Listed,
  spread: Spread,
  name: string,
  shown: (value: number) => string,
  acts: TableActs,
): HTMLElement {
  const rows = listed.table.dimensions
    .flatMap((dimension, which) => {
      if (listed.chosen[which] !== null) return [];
      return listed.bars.dimensions[which]!.flatMap((bar, code) =>
        bar.count < 2 || bar.count === listed.bars.all.count
          ? []
          : [{ dimension, label: dimension.labels[code]!, bar, width: widthOf(bar, spread) }],
      );
    })
    .sort((a, b) => a.width - b.width)
    .slice(0, SHOWN);
  const head = html("tr", {}, heading(""), heading("value", "text"));
  head.append(...[name, `mean ${listed.metric}`, "rows", ""].map((text) => heading(text)));
  const body = rows.map(({ dimension, label, bar, width }, place) => {
    const choose = button("Choose", `Restrict ${dimension.name} to ${label}`, () => acts.choose(dimension.name, label));
    return html(
      "tr",
      {},
      html("td", {}, String(place + 1)),
      html("td", { class: "text" }, `${dimension.name} = ${label}`),
      html("td", {}, shown(width)),
      html("td", {}, number(bar.mean)),
      html("td", {}, count(bar.count)),
      html("td", {}, choose),
    );
  });
  return tableOf("Values by variation", head, body);
}

function widthOf(bar: Bar, spread: Spread): number {
  if (spread === "range") return bar.max - bar.min;
  return spread === "iqr" ? bar.p75 - bar.p25 : bar.deviation / Math.abs(bar.mean);
}

function front(listed: Listed, made: Groups, acts: TableActs): HTMLElement[] {
  const metrics = listed.table.metrics
    .filter((one) => one.name !== listed.metric)
    .map((one) => [one.name, one.name] as const);
  const { second, view } = listed;
  const other = choice("Second metric", [["", "choose…"], ...metrics], second?.name ?? "", (name) => {
    const known = listed.table.metrics.find((one) => one.name === name);
    acts.view({ second: name, secondMinimize: known?.minimize ?? false });
  });
  if (second === null) return [other];
  const ways = [
    ["max", "more is better"],
    ["min", "less is better"],
  ] as const;
  const direction = choice("Direction", ways, view.secondMinimize ? "min" : "max", (way) =>
    acts.view({ secondMinimize: way === "min" }),
  );
  const { front: held, known } = made.pareto(listed.minimize, second.values, view.secondMinimize);
  const seconds = new Map(held.map((pair) => [pair.summary.id, pair.second]));
  const columns: Column[] = [
    [`mean ${listed.metric}`, (one) => number(one.mean)],
    [`mean ${second.name}`, (one) => number(seconds.get(one.id)!)],
    ["runs", (one) => count(one.count)],
  ];
  const shown = held.slice(0, 4 * SHOWN);
  const told = `${count(held.length)} of ${count(known)} configurations are beaten by no other in both metrics${
    held.length > shown.length ? `; the first ${shown.length} are listed` : ""
  }.`;
  return [
    html("div", { class: "choices" }, other, direction),
    html("p", { class: "told" }, told),
    configurations(listed, shown.map((point) => point.summary), columns, acts),
  ];
}

type Column = readonly [string, (one: Summary) => string];

/** A table of configurations: what was measured, and those of their values in which they differ. */
function configurations(listed: Listed, shown: readonly Summary[], columns: Column[], acts: TableActs): HTMLElement {
  if (shown.length === 0) return html("p", { class: "none" }, "Nothing is left: take a step back.");
  const { table } = listed;
  const told: Dimension[] = [];
  const alike: string[] = [];
  for (const dimension of table.dimensions) {
    const texts = new Set(shown.map((one) => textAt(dimension, one.row)));
    if (texts.size > 1) told.push(dimension);
    else if (!texts.has("")) alike.push(`${dimension.name} = ${[...texts][0]}`);
  }
  const head = html("tr", {}, heading(""), ...columns.map(([name]) => heading(name)), heading(""));
  head.append(...told.map((dimension) => heading(dimension.name, "text")));
  const body = shown.map((one, place) => {
    const file = button("Apply file", "Save this configuration for `ascar apply`", () => acts.apply(one.row));
    const row = html("tr", {}, html("td", {}, String(place + 1)));
    row.append(...columns.map(([, text]) => html("td", {}, text(one))), html("td", {}, file));
    row.append(...told.map((dimension) => html("td", { class: "text" }, textAt(dimension, one.row) || "–")));
    return row;
  });
  const made = tableOf("Configurations", head, body);
  return alike.length === 0 ? made : html("div", {}, html("p", { class: "told" }, `In all of these: ${alike.join(", ")}.`), made);
}

function heading(text: string, kind = ""): HTMLElement {
  return text === "" ? html("td") : html("th", { scope: "col", class: kind }, text);
}

function tableOf(name: string, head: HTMLElement, body: HTMLElement[]): HTMLElement {
  const table = html("table", { "aria-label": name }, html("thead", {}, head), html("tbody", {}, ...body));
  return html("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": name }, table);
}
