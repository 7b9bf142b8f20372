// Parallel coordinates: an axis a dimension and one for the objective, a line a row, coloured by the objective.

import { scaleLinear } from "d3-scale";

import { FAINT, INK, LINES } from "../colours";
import { type Dimension, type Table } from "../data/table";
import { html, set, svg } from "../dom";
import { type Bars } from "../engine/engine";
import { count, number, shortened, twoLines } from "../format";

const HEIGHT = 420;
const TOP = 60;
const BOTTOM = 24;
const SPREAD = 0.34;
const LINES_MAX = 3000;

export interface Threads {
  readonly table: Table;
  readonly bars: Bars;
  readonly values: Float64Array;
  readonly chosen: readonly (readonly boolean[] | null)[];
  readonly order: readonly number[];
  readonly metric: { readonly name: string };
}

export class ParallelView {
  private readonly root = svg("svg", { class: "parallel" });
  private readonly note = html("p", { class: "told" });
  private shown: Threads | null = null;

  constructor(
    private readonly place: HTMLElement,
    private readonly act: (dimension: Dimension, code: number) => void,
  ) {
    place.append(this.note, html("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Lines" }, this.root));
    new ResizeObserver(() => {
      if (this.shown !== null && !place.hidden) this.draw(this.shown);
    }).observe(place);
  }

  get drawing(): SVGSVGElement {
    return this.root;
  }

  draw(shown: Threads): void {
    this.shown = shown;
    const { table, bars, values, order } = shown;
    const width = Math.max(this.place.clientWidth - 8, (order.length + 1) * 96);
    const x = (at: number) => 60 + (at * (width - 120)) / order.length;
    set(this.root, { width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}` });
    const y = scaleLinear([bars.all.min, bars.all.max > bars.all.min ? bars.all.max : bars.all.min + 1], [HEIGHT - BOTTOM, TOP]);
    const rows = sampled(bars.rows);
    this.note.textContent =
      rows.length < bars.rows.length
        ? `${count(rows.length)} of ${count(bars.rows.length)} rows are drawn, evenly over the objective.`
        : `All ${count(rows.length)} rows that are left are drawn.`;
    // One path a colour and not one element a row: a browser draws that at once.
    const paths = LINES.map(() => "");
    rows.forEach((row, place) => {
      const colour = Math.min(LINES.length - 1, Math.floor((place / rows.length) * LINES.length));
      const points = order.map((which, at) => `${x(at).toFixed(1)} ${height(table.dimensions[which]!, row).toFixed(1)}`);
      points.push(`${x(order.length).toFixed(1)} ${y(values[row]!).toFixed(1)}`);
      paths[colour] += `M${points.join("L")}`;
    });
    const opacity = Math.max(0.06, Math.min(0.8, 60 / Math.max(1, rows.length)));
    const lines = paths.map((d, which) => svg("path", { d, fill: "none", stroke: LINES[which]!, "stroke-opacity": opacity, "stroke-width": 1.2 }));
    const axes = order.map((which, at) => this.axis(which, x(at), shown));
    this.root.replaceChildren(...lines, ...axes, objectiveAxis(x(order.length), y, shown.metric.name));
  }

  private axis(which: number, x: number, { table, chosen }: Threads): SVGGElement {
    const dimension = table.dimensions[which]!;
    const [above, below] = twoLines(dimension.name, 12);
    const lines = [svg("tspan", { x: 0, y: 20 }, above), svg("tspan", { x: 0, y: 35 }, below)];
    const title = svg("text", { class: "title", "text-anchor": "middle" }, ...lines);
    title.append(svg("title", {}, dimension.name));
    const group = svg("g", { role: "group", "aria-label": dimension.name, transform: `translate(${x} 0)` }, title);
    group.append(svg("line", { y1: TOP, y2: HEIGHT - BOTTOM, stroke: INK }));
    dimension.labels.forEach((label, code) => {
      const own = chosen[which] ?? null;
      const on = own !== null && own[code] === true;
      const text = svg("text", { class: "label", y: middle(dimension, code) + 4, x: 6 }, shortened(label, 12));
      const value = svg("g", {
        class: `bar ${own === null ? "free" : on ? "on" : "off"}`,
        role: "checkbox",
        tabindex: 0,
        "aria-checked": on ? "true" : "false",
        "aria-label": `${dimension.name} = ${label}`,
      });
      const tall = Math.min(18, step(dimension) - 2);
      value.append(svg("rect", { class: "box", x: -4, y: middle(dimension, code) - tall / 2, width: 84, height: tall, rx: 3 }));
      value.append(svg("circle", { cy: middle(dimension, code), r: 3, fill: INK }), text);
      value.addEventListener("click", () => this.act(dimension, code));
      value.addEventListener("keydown", (event) => {
        if (event.key !== " " && event.key !== "Enter") return;
        event.preventDefault();
        this.act(dimension, code);
      });
      group.append(value);
    });
    return group;
  }
}

function objectiveAxis(x: number, y: { (value: number): number; ticks(count: number): number[] }, name: string): SVGGElement {
  const title = svg("text", { class: "title", x: 0, y: 35, "text-anchor": "middle" }, shortened(name, 16));
  const group = svg("g", { transform: `translate(${x} 0)`, "aria-hidden": "true" }, title);
  group.append(svg("line", { y1: TOP, y2: HEIGHT - BOTTOM, stroke: INK }));
  for (const tick of y.ticks(6)) {
    group.append(svg("line", { x2: 4, y1: y(tick), y2: y(tick), stroke: INK }));
    group.append(svg("text", { class: "tick", x: 7, y: y(tick) + 4, fill: FAINT }, number(tick)));
  }
  return group;
}

function step(dimension: Dimension): number {
  return (HEIGHT - TOP - BOTTOM) / dimension.labels.length;
}

function middle(dimension: Dimension, code: number): number {
  return HEIGHT - BOTTOM - (code + 0.5) * step(dimension);
}

/** Around its value's place, so that lines of one value do not hide one another; the same in every drawing. */
function height(dimension: Dimension, row: number): number {
  const scatter = ((Math.imul(row + 1, 2654435761) >>> 0) / 2 ** 32 - 0.5) * SPREAD;
  return middle(dimension, dimension.codes[row]!) + scatter * Math.min(step(dimension), 60);
}

/** At most so many rows; they ascend by the objective, so that each part of it is there. */
function sampled(rows: Uint32Array): Uint32Array {
  if (rows.length <= LINES_MAX) return rows;
  return Uint32Array.from({ length: LINES_MAX }, (_, at) => rows[Math.floor(((at + 0.5) * rows.length) / LINES_MAX)]!);
}
