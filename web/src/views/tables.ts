// Configurations among what is left: the best, the most stable, those that no other one beats in two measures.

import { button, choice, html, replace } from "../dom";
import { type Bar } from "../engine/bar";
import { Groups, type Spread } from "../engine/configurations";
import { count, number, share } from "../format";
import { front } from "./front";
import { type Column, configurations, heading, type Listed, SHOWN, SPREADS, type TableActs, tableOf } from "./listing";

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
  replace(place, tabs, content);
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
