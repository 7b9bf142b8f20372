// What is listed, and a table of configurations.

import { type Dimension, type Table, textAt } from "../data/table";
import { button, html } from "../dom";
import { type Spread, type Summary } from "../engine/configurations";
import { type Bars } from "../engine/engine";
import { type View } from "../state";

export const SHOWN = 12;

export interface Listed {
  readonly table: Table;
  readonly bars: Bars;
  readonly chosen: readonly (readonly boolean[] | null)[];
  readonly metric: string;
  readonly minimize: boolean;
  readonly values: Float64Array;
  /** The second metric of the Pareto set; null where it is no metric, or none was chosen. */
  readonly second: { readonly name: string; readonly values: Float64Array } | null;
  readonly view: View;
}

export interface TableActs {
  view(view: Partial<View>): void;
  apply(row: number): void;
  choose(dimension: string, label: string): void;
  /** This row's configuration alone. */
  only(row: number): void;
}

export const SPREADS = [
  ["range", "range"],
  ["iqr", "IQR"],
  ["rsd", "RSD"],
] as const satisfies readonly (readonly [Spread, string])[];

export type Column = readonly [string, (one: Summary) => string];

/** A table of configurations: what was measured, and those of their values in which they differ. */
export function configurations(listed: Listed, shown: readonly Summary[], columns: Column[], acts: TableActs): HTMLElement {
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

export function heading(text: string, kind = ""): HTMLElement {
  return text === "" ? html("td") : html("th", { scope: "col", class: kind }, text);
}

export function tableOf(name: string, head: HTMLElement, body: HTMLElement[]): HTMLElement {
  const table = html("table", { "aria-label": name }, html("thead", {}, head), html("tbody", {}, ...body));
  return html("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": name }, table);
}
