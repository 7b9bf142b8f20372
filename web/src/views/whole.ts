// The cumulative bar at the right: all that is left, with the names of what a bar shows.

import { type ScaleLinear } from "d3-scale";

import { FAINT, INK } from "../colours";
import { html, svg } from "../dom";
import { type Bar } from "../engine/bar";
import { count, number, share } from "../format";
import { BarMark } from "./bar_mark";
import { PLOT_RANGE } from "./bars";

const WIDTH = 44;
const LEFT = 62;

export class WholeView {
  private readonly mark = new BarMark();
  private readonly axis = svg("g", { "aria-hidden": "true" });
  private readonly names = svg("g", { "aria-hidden": "true" });
  private readonly root = svg("svg", { width: 190, height: PLOT_RANGE[0] + 16, class: "whole" });
  private readonly facts = html("dl", { class: "facts" });

  constructor(place: HTMLElement) {
    const holder = svg("g", { transform: `translate(${LEFT} 0)` }, this.mark.element);
    const heading = svg("text", { class: "title", x: 2, y: 27 }, "All that is left");
    this.root.append(heading, this.axis, holder, this.names);
    place.append(this.root, this.facts);
  }

  get drawing(): SVGSVGElement {
    return this.root;
  }

  draw(bar: Bar, y: ScaleLinear<number, number>, known: number): void {
    this.mark.draw(bar, WIDTH, y);
    this.axis.replaceChildren(
      ...y.ticks(5).map((tick) =>
        svg("text", { class: "tick", x: LEFT - 10, y: y(tick) + 4, "text-anchor": "end", fill: FAINT }, number(tick)),
      ),
    );
    this.names.replaceChildren(...labels(bar, y));
    const facts: [string, string][] = [
      ["rows", `${count(bar.count)} of ${count(known)} (${share(known === 0 ? 0 : bar.count / known)})`],
      ["mean", number(bar.mean)],
      ["median", number(bar.p50)],
      ["range", number(bar.max - bar.min)],
      ["IQR", number(bar.p75 - bar.p25)],
      ["RSD", bar.count > 1 ? share(bar.deviation / Math.abs(bar.mean)) : "–"],
    ];
    this.facts.replaceChildren(...facts.flatMap(([name, text]) => [html("dt", {}, name), html("dd", {}, text)]));
  }
}

/** The names of the boundaries, moved apart where they would lie on one another. */
function labels(bar: Bar, y: ScaleLinear<number, number>): SVGElement[] {
  if (bar.count === 0) return [];
  const wanted: [string, number][] = [
    ["max", bar.max],
    ["90%", bar.p90],
    ["75%", bar.p75],
    ["median", bar.p50],
    ["25%", bar.p25],
    ["10%", bar.p10],
    ["min", bar.min],
  ];
  const heights = wanted.map(([, value]) => y(value));
  const gap = 12;
  for (let at = 1; at < heights.length; at++) heights[at] = Math.max(heights[at]!, heights[at - 1]! + gap);
  const below = heights.at(-1)! - (PLOT_RANGE[0] + 6);
  if (below > 0) {
    heights[heights.length - 1]! -= below;
    for (let at = heights.length - 2; at >= 0; at--) heights[at] = Math.min(heights[at]!, heights[at + 1]! - gap);
  }
  return wanted.flatMap(([name, value], at) => [
    svg("path", {
      d: `M${LEFT + WIDTH} ${y(value)}L${LEFT + WIDTH + 14} ${heights[at]!}`,
      stroke: FAINT,
      fill: "none",
      "stroke-width": 0.7,
    }),
    svg("text", { class: "boundary", x: LEFT + WIDTH + 17, y: heights[at]! + 4, fill: INK }, name),
  ]);
}
