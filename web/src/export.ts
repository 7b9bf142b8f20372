// What leaves the page: the view as SVG, what is left as CSV, a configuration for `ascar apply`.

import { type Table, textAt, valueAt } from "./data/table";
import { set, svg } from "./dom";

const HEAD = 28;

/** Rows of drawings as one file, with the styles that they need. */
export function drawingText(rows: readonly (readonly SVGSVGElement[])[], title: string): string {
  let width = 0;
  let height = HEAD;
  const root = svg("svg", { xmlns: "http://www.w3.org/2000/svg" });
  const copies: SVGSVGElement[] = [];
  for (const drawings of rows) {
    let x = 0;
    let tallest = 0;
    for (const drawing of drawings) {
      const copy = drawing.cloneNode(true) as SVGSVGElement;
      inlined(drawing, copy);
      set(copy, { x, y: height });
      x += Number(drawing.getAttribute("width"));
      tallest = Math.max(tallest, Number(drawing.getAttribute("height")));
      copies.push(copy);
    }
    width = Math.max(width, x);
    height += tallest;
  }
  set(root, { width, height, viewBox: `0 0 ${width} ${height}` });
  const heading = { x: 8, y: 18, "font-family": "system-ui, sans-serif", "font-size": 13 };
  root.append(svg("rect", { width: "100%", height: "100%", fill: "#fff" }));
  root.append(svg("text", heading, title), ...copies);
  return new XMLSerializer().serializeToString(root);
}

const STYLES = ["font-size", "font-weight", "font-family", "fill", "opacity", "stroke", "visibility"] as const;

/** Styles from the style sheet, which the file does not have, as attributes: the page allows no others. */
function inlined(from: Element, to: Element): void {
  const style = getComputedStyle(from);
  if (from.tagName === "text" || from.tagName === "g" || from.tagName === "rect") {
    for (const name of STYLES) to.setAttribute(name, style.getPropertyValue(name));
  }
  for (const name of ["tabindex", "role", "aria-label", "aria-checked", "class"]) to.removeAttribute(name);
  for (let at = 0; at < from.children.length; at++) inlined(from.children[at]!, to.children[at]!);
}

/** Rows with every dimension and every metric that is here. */
export function csvText(table: Table, rows: Uint32Array): string {
  const metrics = table.metrics.filter((one) => one.values !== null);
  const dimensions = [...table.dimensions, ...table.constants];
  const lines = [[...dimensions, ...metrics].map((one) => field(one.name)).join(",")];
  for (const row of [...rows].sort((a, b) => a - b)) {
    const cells = dimensions.map((one) => field(textAt(one, row)));
    for (const metric of metrics) {
      const value = metric.values![row]!;
      cells.push(Number.isFinite(value) ? String(value) : "");
    }
    lines.push(cells.join(","));
  }
  return `${lines.join("\r\n")}\r\n`;
}

function field(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** A row's configuration, as `ascar apply --configuration` reads it. */
export function applyText(table: Table, row: number): string {
  const configuration: Record<string, unknown> = {};
  const given: Record<string, unknown> = {};
  for (const dimension of [...table.dimensions, ...table.constants]) {
    const value = valueAt(dimension, row);
    if (value !== undefined) (dimension.given ? given : configuration)[dimension.name] = value;
  }
  const origin = table.origins[table.origin?.[row] ?? 0];
  const trial = table.trial?.[row] ?? -1;
  const document = {
    schema: "ascar/configuration/1",
    source: origin?.name ?? table.name,
    run_id: origin?.run_id ?? null,
    trial: trial < 0 ? null : trial,
    given,
    configuration,
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}
