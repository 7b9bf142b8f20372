// Two measures of configurations against one another: a point a configuration, the Pareto set marked; a click tells more.

import { type ScaleLinear, scaleLinear } from "d3-scale";

import { ACCENT, DENSITY, FAINT, GRID, OUTER } from "../colours";
import { set, svg } from "../dom";
import { number } from "../format";

const WIDTH = 720;
const HEIGHT = 320;
const LEFT = 62;
const RIGHT = 16;
const TOP = 26;
const BOTTOM = 40;
const CELL = 5;
const REACH = 10;

export interface Side {
  readonly name: string;
  /** By configuration; NaN: not known, or not left. */
  readonly values: Float64Array;
  readonly minimize: boolean;
}

export interface Cloud {
  /** Upwards. */
  readonly first: Side;
  /** To the right. */
  readonly second: Side;
  /** Configurations of the Pareto set, along it. */
  readonly front: readonly number[];
}

/** `act` gets the configuration that was chosen. */
export function scatter(cloud: Cloud, act: (id: number) => void): SVGSVGElement {
  const { first, second, front } = cloud;
  const x = scaleOf(first, second, LEFT, WIDTH - RIGHT);
  const y = scaleOf(second, first, HEIGHT - BOTTOM, TOP);
  const root = svg("svg", { class: "scatter", width: WIDTH, height: HEIGHT, viewBox: `0 0 ${WIDTH} ${HEIGHT}` });
  const at = (id: number): [number, number] => [x(second.values[id]!), y(first.values[id]!)];
  const cells = cellsOf(cloud, at);
  root.append(...frame(x, y, cloud), svg("path", { class: "cloud", d: cells.path, fill: OUTER, "fill-opacity": 0.6 }), stairs(cloud, at));
  const ring = svg("circle", { class: "ring", r: 8, fill: "none", stroke: ACCENT, "stroke-width": 2, visibility: "hidden" });
  const choose = (id: number) => {
    const [cx, cy] = at(id);
    set(ring, { cx, cy, visibility: null });
    act(id);
  };
  const marks = front.map((id, place) => mark(cloud, id, place, at(id)));
  root.append(svg("g", { role: "group", "aria-label": "Pareto set" }, ...marks), ring);
  root.addEventListener("click", (event) => {
    const box = root.getBoundingClientRect();
    const scale = WIDTH / box.width; // the page may show it smaller
    const id = cells.near((event.clientX - box.left) * scale, (event.clientY - box.top) * scale);
    if (id !== null) choose(id);
  });
  root.addEventListener("keydown", (event) => {
    const here = marks.indexOf(event.target as SVGCircleElement);
    if (here < 0) return;
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (event.key === " " || event.key === "Enter") choose(front[here]!);
    else if (step !== undefined) walk(marks, here, here + step);
    else return;
    event.preventDefault();
  });
  return root;
}

function walk(marks: readonly SVGCircleElement[], from: number, to: number): void {
  const next = marks[to];
  if (next === undefined) return;
  set(marks[from]!, { tabindex: -1 });
  set(next, { tabindex: 0 });
  next.focus();
}

/** Over those values of a side whose other side is known too. */
function scaleOf(other: Side, side: Side, from: number, to: number): ScaleLinear<number, number> {
  let least = Infinity;
  let most = -Infinity;
  side.values.forEach((value, id) => {
    if (Number.isNaN(value) || Number.isNaN(other.values[id])) return;
    least = Math.min(least, value);
    most = Math.max(most, value);
  });
  if (!(least <= most)) [least, most] = [0, 1];
  if (least === most) [least, most] = [least - 1, most + 1];
  const room = (most - least) * 0.03;
  return scaleLinear([least - room, most + room], [from, to]);
}

function frame(x: ScaleLinear<number, number>, y: ScaleLinear<number, number>, { first, second }: Cloud): SVGElement[] {
  const found: SVGElement[] = [];
  for (const tick of y.ticks(6)) {
    found.push(svg("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: y(tick), y2: y(tick), stroke: GRID }));
    found.push(svg("text", { class: "tick", x: LEFT - 6, y: y(tick) + 4, "text-anchor": "end", fill: FAINT }, number(tick)));
  }
  for (const tick of x.ticks(7)) {
    found.push(svg("line", { x1: x(tick), x2: x(tick), y1: TOP, y2: HEIGHT - BOTTOM, stroke: GRID }));
    const text = { class: "tick", x: x(tick), y: HEIGHT - BOTTOM + 15, "text-anchor": "middle", fill: FAINT };
    found.push(svg("text", text, number(tick)));
  }
  found.push(svg("text", { class: "title", x: 2, y: 14 }, `${first.name}${way(first.minimize)}`));
  const below = { class: "title", x: (LEFT + WIDTH) / 2, y: HEIGHT - 8, "text-anchor": "middle" };
  found.push(svg("text", below, `${second.name}${way(second.minimize)}`));
  return found;
}

function way(minimize: boolean): string {
  return minimize ? " (less is better)" : " (more is better)";
}

/** The border of what the Pareto set beats. */
function stairs({ front }: Cloud, at: (id: number) => [number, number]): SVGPathElement {
  const d = front.map((id, place) => {
    const [cx, cy] = at(id);
    // From the best in the first on: along it to where the next one begins, then down to that.
    return place === 0 ? `M${cx.toFixed(1)} ${cy.toFixed(1)}` : `V${cy.toFixed(1)}H${cx.toFixed(1)}`;
  });
  return svg("path", { d: d.join(""), fill: "none", stroke: ACCENT, "stroke-width": 1.5 });
}

function mark({ first, second }: Cloud, id: number, place: number, [cx, cy]: [number, number]): SVGCircleElement {
  const told = `${first.name} ${number(first.values[id]!)}, ${second.name} ${number(second.values[id]!)}`;
  const how = { class: "front", cx, cy, r: 4.5, fill: DENSITY, stroke: "#fff", "stroke-width": 1 };
  const made = svg("circle", { ...how, role: "button", tabindex: place === 0 ? 0 : -1, "aria-label": told });
  made.append(svg("title", {}, told));
  return made;
}

interface Cells {
  readonly path: string;
  near(x: number, y: number): number | null;
}

/** A square for each place that has a point in it: as many as can be told apart, however many points there are. */
function cellsOf({ first, second, front }: Cloud, at: (id: number) => [number, number]): Cells {
  const columns = Math.ceil(WIDTH / CELL);
  const held = new Map<number, number>();
  const place = (x: number, y: number) => Math.floor(y / CELL) * columns + Math.floor(x / CELL);
  const put = (id: number) => {
    const [x, y] = at(id);
    held.set(place(x, y), id);
  };
  first.values.forEach((value, id) => {
    if (!Number.isNaN(value) && !Number.isNaN(second.values[id])) put(id);
  });
  for (const id of front) put(id); // where several are, the click is for the better one
  let path = "";
  for (const cell of held.keys()) {
    path += `M${(cell % columns) * CELL} ${Math.floor(cell / columns) * CELL}h${CELL - 0.6}v${CELL - 0.6}h${0.6 - CELL}z`;
  }
  const near = (x: number, y: number) => {
    let found: number | null = null;
    let least = REACH ** 2;
    for (let dy = -REACH; dy <= REACH; dy += CELL) {
      for (let dx = -REACH; dx <= REACH; dx += CELL) {
        const id = held.get(place(x + dx, y + dy));
        if (id === undefined) continue;
        const [px, py] = at(id);
        const far = (px - x) ** 2 + (py - y) ** 2;
        if (far < least) [found, least] = [id, far];
      }
    }
    return found;
  };
  return { path, near };
}
