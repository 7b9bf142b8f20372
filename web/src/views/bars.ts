// Dimensions side by side, each with a bar a value; a click chooses values, and every bar follows.

import { type ScaleLinear } from "d3-scale";

import { ACCENT, FAINT, GRID, INK } from "../colours";
import { set, svg } from "../dom";
import { type Dimension, type Table } from "../data/table";
import { type Bar } from "../engine/bar";
import { type Bars } from "../engine/engine";
import { count, number, share, shortened, twoLines } from "../format";
import { BarMark } from "./bar_mark";

const PITCH = 36;
const WIDTH = 24;
const HEAD = 64;
const PLOT = 190;
const FOOT = 74;
const AXIS = 56;
const GAP = 18;
const LETTERS = 13;

export interface Shown {
  readonly table: Table;
  readonly bars: Bars;
  readonly chosen: readonly (readonly boolean[] | null)[];
  /** Places of dimensions, in the order in which they are shown. */
  readonly order: readonly number[];
  readonly y: ScaleLinear<number, number>;
  readonly objective: string;
}

interface Column {
  readonly group: SVGGElement;
  readonly mark: BarMark;
  readonly box: SVGRectElement;
  readonly label: SVGTextElement;
  readonly rows: SVGTextElement;
}

interface Panel {
  readonly group: SVGGElement;
  readonly width: number;
  readonly importance: SVGRectElement;
  readonly told: SVGTextElement;
  readonly columns: readonly Column[];
}

/** The heights of a plot: where its top and its bottom are. */
export const PLOT_RANGE = [HEAD + PLOT, HEAD] as const;
export const ROW_HEIGHT = HEAD + PLOT + FOOT;

export class BarsView {
  private readonly root = svg("svg", { class: "bars" });
  private panels: Panel[] = [];
  private table: Table | null = null;
  private layout = "";
  private axes: SVGGElement[] = [];
  private shown: Shown | null = null;

  constructor(
    private readonly place: HTMLElement,
    private readonly act: (dimension: Dimension, code: number, alone: boolean) => void,
  ) {
    place.append(this.root);
    new ResizeObserver(() => {
      if (this.shown !== null) this.draw(this.shown);
    }).observe(place);
    this.root.addEventListener("keydown", (event) => this.keyed(event));
  }

  get drawing(): SVGSVGElement {
    return this.root;
  }

  draw(shown: Shown): void {
    this.shown = shown;
    if (this.table !== shown.table) this.build(shown.table);
    this.arrange(shown.order);
    this.scale(shown.y);
    const most = Math.max(...shown.bars.importance, Number.MIN_VALUE);
    for (const which of shown.order) this.update(which, shown, most);
  }

  /** New elements, for a new table. */
  private build(table: Table): void {
    this.table = table;
    this.layout = "";
    this.panels = table.dimensions.map((dimension, which) => this.panel(dimension, which));
    this.root.replaceChildren();
  }

  private panel(dimension: Dimension, which: number): Panel {
    const width = Math.max(dimension.labels.length * PITCH, 118) + GAP;
    const [above, below] = twoLines(dimension.name, Math.floor((width - GAP) / 7.9));
    const title = svg("text", { class: "title" }, svg("tspan", { x: 2, y: 12 }, above), svg("tspan", { x: 2, y: 27 }, below));
    title.append(svg("title", {}, dimension.name));
    const importance = svg("rect", { x: 2, y: 34, height: 5, rx: 2, fill: ACCENT });
    const told = svg("text", { class: "told", x: 2, y: 50 });
    const group = svg("g", { role: "group", "aria-label": dimension.name, class: "panel" }, title, importance, told);
    const columns = dimension.labels.map((label, code) => this.column(dimension, which, label, code));
    group.append(...columns.map((one) => one.group));
    return { group, width, importance, told, columns };
  }

  private column(dimension: Dimension, which: number, label: string, code: number): Column {
    const mark = new BarMark();
    const box = svg("rect", { class: "box", x: -4, y: HEAD - 3, width: WIDTH + 8, height: PLOT + 21, rx: 4 });
    const turned = `translate(${WIDTH / 2 + 4} ${HEAD + PLOT + 26}) rotate(-42)`;
    const text = svg("text", { class: "label", transform: turned, "text-anchor": "end" }, shortened(label, LETTERS));
    const rows = svg("text", { class: "rows", x: WIDTH / 2, y: HEAD + PLOT + 13, "text-anchor": "middle" });
    const name = svg("title", {}, `${dimension.name} = ${label}`);
    const group = svg("g", {
      class: "bar",
      role: "checkbox",
      tabindex: -1,
      "data-dimension": dimension.name,
      "data-value": label,
      "data-place": `${which}.${code}`,
      transform: `translate(${code * PITCH + 8} 0)`,
    });
    group.append(name, box, mark.element, rows, text);
    group.addEventListener("click", (event) => this.act(dimension, code, event.altKey));
    return { group, mark, box, label: text, rows };
  }

  /** Panels in rows as wide as the page; each row has an axis. */
  private arrange(order: readonly number[]): void {
    const room = Math.max(this.place.clientWidth, 320);
    const layout = `${room}:${order.join()}`;
    if (layout === this.layout) return;
    this.layout = layout;
    let x = AXIS;
    let row = 0;
    const content: SVGGElement[] = [];
    for (const which of order) {
      const panel = this.panels[which]!;
      if (x > AXIS && x + panel.width > room) {
        x = AXIS;
        row++;
      }
      set(panel.group, { transform: `translate(${x} ${row * ROW_HEIGHT})` });
      x += panel.width;
      content.push(panel.group);
    }
    for (const axis of this.axes) axis.remove();
    this.axes = Array.from({ length: row + 1 }, (_, at) =>
      svg("g", { class: "axis", transform: `translate(0 ${at * ROW_HEIGHT})`, "aria-hidden": "true" }),
    );
    this.lay([...this.axes, ...content]);
    const widest = Math.max(...order.map((which) => this.panels[which]!.width)) + AXIS;
    const width = Math.max(room, widest);
    const height = (row + 1) * ROW_HEIGHT;
    set(this.root, { width, height, viewBox: `0 0 ${width} ${height}` });
    const first = this.panels[order[0]!]?.columns[0]?.group;
    if (this.root.querySelector('.bar[tabindex="0"]') === null && first) set(first, { tabindex: 0 });
  }

  /** What holds the focus stays where it is, and the others go around it: moved, it would lose it. */
  private lay(content: readonly SVGGElement[]): void {
    const at = content.findIndex((group) => group.contains(document.activeElement));
    if (at < 0) this.root.replaceChildren(...content);
    else {
      content[at]!.before(...content.slice(0, at));
      content[at]!.after(...content.slice(at + 1));
    }
  }

  private scale(y: ScaleLinear<number, number>): void {
    const width = Number(this.root.getAttribute("width"));
    for (const axis of this.axes) axis.replaceChildren(...grid(y, AXIS, width));
  }

  private update(which: number, { table, bars, chosen, y, objective }: Shown, most: number): void {
    const panel = this.panels[which]!;
    const dimension = table.dimensions[which]!;
    const explained = bars.variance > 0 ? bars.importance[which]! / bars.variance : 0;
    set(panel.importance, { width: Math.max(0, (bars.importance[which]! / most) * (panel.width - GAP - 4)) });
    const cost = dimension.cost === null ? "" : ` · ${dimension.cost}`;
    panel.told.textContent = shortened(`${share(explained)}${cost}`, Math.floor((panel.width - GAP) / 5.9));
    const own = chosen[which] ?? null;
    panel.columns.forEach((column, code) => {
      const bar = bars.dimensions[which]![code]!;
      const on = own !== null && own[code] === true;
      column.mark.draw(bar, WIDTH, y);
      column.rows.textContent = bar.count === 0 ? "0" : short(bar.count);
      const state = own === null ? "free" : on ? "on" : "off";
      set(column.group, {
        class: `bar ${state}${bar.count === 0 ? " empty" : ""}`,
        "aria-checked": on ? "true" : "false",
        "aria-label": told(dimension.labels[code]!, bar, objective),
      });
      column.group.firstElementChild!.textContent = `${dimension.name} = ${column.group.getAttribute("aria-label")}`;
    });
  }

  /** Arrows go from bar to bar and from dimension to dimension; space and Enter choose. */
  private keyed(event: KeyboardEvent): void {
    const at = (event.target as Element).closest(".bar");
    if (!(at instanceof SVGGElement) || this.shown === null) return;
    const [which, code] = at.dataset["place"]!.split(".").map(Number) as [number, number];
    const order = this.shown.order;
    const here = order.indexOf(which);
    const go = (panel: number | undefined, column: number) => {
      const columns = panel === undefined ? undefined : this.panels[panel]?.columns;
      if (columns === undefined) return;
      const next = columns[Math.max(0, Math.min(columns.length - 1, column))]!.group;
      set(at, { tabindex: -1 });
      set(next, { tabindex: 0 });
      next.focus();
    };
    const last = this.panels[which]!.columns.length - 1;
    switch (event.key) {
      case " ":
      case "Enter":
        this.act(this.shown.table.dimensions[which]!, code, event.altKey);
        break;
      case "ArrowRight":
        if (code < last) go(which, code + 1);
        else go(order[here + 1], 0);
        break;
      case "ArrowLeft":
        if (code > 0) go(which, code - 1);
        else go(order[here - 1], Infinity);
        break;
      case "ArrowDown":
        go(order[here + 1], 0);
        break;
      case "ArrowUp":
        go(order[here - 1], 0);
        break;
      case "Home":
        go(which, 0);
        break;
      case "End":
        go(which, last);
        break;
      default:
        return;
    }
    event.preventDefault();
  }
}

/** Lines and numbers of a scale. */
export function grid(y: ScaleLinear<number, number>, left: number, right: number): SVGElement[] {
  return y.ticks(5).flatMap((tick) => {
    const height = y(tick);
    return [
      svg("line", { x1: left - 4, x2: right, y1: height, y2: height, stroke: GRID }),
      svg("text", { class: "tick", x: left - 8, y: height + 4, "text-anchor": "end", fill: FAINT }, number(tick)),
    ];
  });
}

/** A bar in words, which is what a screen reader has of it. */
export function told(label: string, bar: Bar, objective: string): string {
  if (bar.count === 0) return `${label}: nothing measured`;
  return (
    `${label}: ${count(bar.count)} rows; ${objective}: mean ${number(bar.mean)}, median ${number(bar.p50)}, ` +
    `10 to 90%: ${number(bar.p10)} to ${number(bar.p90)}, range ${number(bar.min)} to ${number(bar.max)}`
  );
}

function short(rows: number): string {
  if (rows < 10_000) return String(rows);
  return rows < 1_000_000 ? `${Math.round(rows / 1000)}k` : `${(rows / 1e6).toFixed(1)}M`;
}

export const TEXT = INK;
