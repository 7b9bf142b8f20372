// What a dropped table's columns are, and the help.

import { type ColumnGuess, type Inspection, type Roles } from "../data/server";
import { button, byId, html } from "../dom";
import { count } from "../format";

function open(title: string, ...content: (Node | string)[]): HTMLDialogElement {
  const dialog = byId<HTMLDialogElement>("dialog");
  dialog.replaceChildren(html("h2", { id: "dialog-title" }, title), ...content);
  dialog.showModal();
  return dialog;
}

const ROLES = [
  ["parameter", "was set"],
  ["metric", "was measured"],
  ["ignore", "leave out"],
] as const;

/** Ask what the columns are; `go` may refuse, and is then asked again. */
export async function askRoles(found: Inspection, go: (roles: Roles) => Promise<void>): Promise<void> {
  const chosen = new Map(found.columns.map((one) => [one.name, one.role]));
  const metrics = found.columns.filter((one) => one.role === "metric");
  const objective = html("select", { id: "objective" });
  for (const one of found.columns) {
    objective.append(html("option", { value: one.name, selected: one === metrics[0] }, one.name));
  }
  const direction = html("select", { id: "direction" });
  for (const [value, text] of [
    ["", "as its name says"],
    ["max", "more is better"],
    ["min", "less is better"],
  ] as const) {
    direction.append(html("option", { value }, text));
  }
  const problem = html("p", { class: "problem", role: "alert", hidden: true });
  const rows = found.columns.map((one) => row(one, chosen));
  const listed = html("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Columns" });
  const head = html("tr", {}, ...["column", "values", "role", "note"].map((text) => html("th", { scope: "col" }, text)));
  listed.append(html("table", {}, html("thead", {}, head), html("tbody", {}, ...rows)));
  const send = async () => {
    const named = (role: string) =>
      found.columns.filter((one) => chosen.get(one.name) === role && one.name !== objective.value).map((one) => one.name);
    try {
      await go({
        objective: objective.value,
        direction: direction.value as Roles["direction"],
        parameters: named("parameter"),
        metrics: named("metric"),
        ignore: named("ignore"),
      });
      dialog.close();
    } catch (error) {
      problem.textContent = error instanceof Error ? error.message : String(error);
      problem.hidden = false;
    }
  };
  const buttons = html("div", { class: "buttons" });
  const dialog = open(
    `${found.name}: ${count(found.rows)} rows`,
    html("div", { class: "choices" }, labelled("Objective", objective), labelled("Direction", direction)),
    problem,
    listed,
    buttons,
  );
  buttons.append(button("Explore", "Show it", () => void send(), "main"), button("Cancel", "Keep what is shown", () => dialog.close()));
}

function row(one: ColumnGuess, chosen: Map<string, ColumnGuess["role"]>): HTMLElement {
  const select = html("select", { "aria-label": `Role of ${one.name}` });
  for (const [value, text] of ROLES) select.append(html("option", { value, selected: value === one.role }, text));
  select.addEventListener("change", () => chosen.set(one.name, select.value as ColumnGuess["role"]));
  return html(
    "tr",
    {},
    html("td", { class: "text" }, one.name),
    html("td", {}, `${count(one.different)} ${one.numeric ? "numbers" : "texts"}`),
    html("td", {}, select),
    html("td", { class: "text" }, one.note),
  );
}

function labelled(text: string, field: HTMLElement): HTMLElement {
  return html("label", { class: "choice" }, html("span", {}, text), field);
}

const HELP = [
  ["Click, Space, Enter", "choose a value, or one more of the same dimension; again: no longer"],
  ["Alt+click", "this value alone"],
  ["Left, Right, Home, End", "from value to value"],
  ["Up, Down", "from dimension to dimension"],
  ["Arrows, Enter", "along the marked points of a Pareto set; show the configuration of one"],
  ["Ctrl+Z, Ctrl+Y", "one step back, one forward; so do the browser's own buttons"],
  ["Escape", "everything again"],
] as const;

export function showHelp(): void {
  const keys = html("dl", { class: "keys" });
  for (const [key, text] of HELP) keys.append(html("dt", {}, key), html("dd", {}, text));
  const reading = html(
    "p",
    {},
    "A bar shows what was measured with one value, and with everything that is chosen elsewhere. Its shades part at " +
      "the 10th, 25th, 75th and 90th percentile, the thick line is the median, the dot the mean, and the pink shape " +
      "how the rows are distributed. The number below is how many rows that is. Under a dimension's name is the share " +
      "of the variance of all that is left which it explains (PI, the reduction in variance).",
  );
  const dialog = open("How to read it", reading, keys);
  dialog.append(html("div", { class: "buttons" }, button("Close", "Close", () => dialog.close(), "main")));
}
