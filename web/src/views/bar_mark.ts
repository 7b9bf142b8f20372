// One bar, as in Cao's Fig. 8.5: shades from minimum over percentiles to maximum, the mean's dot, the density.

import { type ScaleLinear } from "d3-scale";

import { DENSITY, FAINT, INK, INNER, MIDDLE, OUTER } from "../colours";
import { set, svg } from "../dom";
import { BINS, type Bar } from "../engine/bar";

const SHADES = [
  ["min", "p10", OUTER],
  ["p10", "p25", MIDDLE],
  ["p25", "p75", INNER],
  ["p75", "p90", MIDDLE],
  ["p90", "max", OUTER],
] as const;

/** Elements that are made once and moved when the data changes. */
export class BarMark {
  readonly element: SVGGElement;
  private readonly shades = SHADES.map(([, , fill]) => svg("rect", { fill }));
  private readonly density = svg("path", { fill: DENSITY, "fill-opacity": 0.85 });
  private readonly lines = svg("path", { fill: "none", stroke: INK, "stroke-width": 1 });
  private readonly median = svg("path", { fill: "none", stroke: INK, "stroke-width": 2 });
  private readonly beyond = svg("path", { fill: FAINT });
  private readonly mean = svg("circle", { r: 3.6, fill: INK, stroke: "#fff", "stroke-width": 1.2 });

  constructor() {
    const parts = [...this.shades, this.density, this.lines, this.median, this.mean, this.beyond];
    this.element = svg("g", { class: "mark" }, ...parts);
  }

  /** Between 0 and `width`, at the heights that `y` gives. */
  draw(bar: Bar, width: number, y: ScaleLinear<number, number>): void {
    if (bar.count === 0) {
      set(this.element, { visibility: "hidden" });
      return;
    }
    set(this.element, { visibility: null });
    SHADES.forEach(([low, high], which) => {
      const top = y(bar[high]);
      set(this.shades[which]!, { width, y: top, height: Math.max(0, y(bar[low]) - top) });
    });
    const flat = bar.max === bar.min;
    set(this.density, { d: flat ? "" : outline(bar, width, y) });
    const at = (value: number) => `M0 ${y(value).toFixed(1)}h${width}`;
    set(this.lines, { d: flat ? "" : [bar.p10, bar.p25, bar.p75, bar.p90].map(at).join("") });
    set(this.median, { d: at(bar.p50) });
    const [low, high] = y.domain() as [number, number];
    set(this.mean, { cx: width / 2, cy: y(bar.mean), visibility: bar.mean < low || bar.mean > high ? "hidden" : null });
    set(this.beyond, { d: arrows(bar, width / 2, y) });
  }
}

/** Arrows where a bar goes on beyond the plot. */
function arrows(bar: Bar, middle: number, y: ScaleLinear<number, number>): string {
  const [low, high] = y.domain() as [number, number];
  const up = `M${middle - 5} ${y(high) - 3}h10l-5 -6Z`;
  const down = `M${middle - 5} ${y(low) + 3}h10l-5 6Z`;
  return `${bar.max > high ? up : ""}${bar.min < low ? down : ""}`;
}

/** The density, mirrored about the middle: a violin. */
function outline(bar: Bar, width: number, y: ScaleLinear<number, number>): string {
  let most = 0;
  for (const held of bar.density) if (held > most) most = held;
  const step = (bar.max - bar.min) / BINS;
  const half = (width / 2) * 0.76;
  const right: string[] = [];
  const left: string[] = [];
  for (let bin = 0; bin < BINS; bin++) {
    const reach = (half * bar.density[bin]!) / most;
    const height = y(bar.min + (bin + 0.5) * step).toFixed(1);
    right.push(`${(width / 2 + reach).toFixed(1)} ${height}`);
    left.push(`${(width / 2 - reach).toFixed(1)} ${height}`);
  }
  return `M${right.join("L")}L${left.reverse().join("L")}Z`;
}
