// The buttons at the top: how it is looked at, what leaves the page, what comes in.

import { button, html } from "../dom";
import { type View } from "../state";
import { showHelp } from "./dialogs";

export interface ToolActs {
  view(view: Partial<View>): void;
  everything(): void;
  drawing(): void;
  rows(): void;
  file(file: File): void;
}

/** Buttons that stay as they are; those that switch say what holds at first, and after each press. */
export function tools(view: View, acts: ToolActs): HTMLElement[] {
  const file = html("input", { type: "file", accept: ".csv,.parquet,.pq", hidden: true, "aria-label": "Table" });
  file.addEventListener("change", () => {
    if (file.files?.[0]) acts.file(file.files[0]);
    file.value = "";
  });
  const press = <K extends "sort" | "look" | "scale">(key: K, on: View[K], off: View[K], text: string, title: string) => {
    let now = view[key];
    const made = button(text, title, () => {
      now = now === on ? off : on;
      made.setAttribute("aria-pressed", String(now === on));
      acts.view({ [key]: now });
    });
    made.setAttribute("aria-pressed", String(now === on));
    return made;
  };
  return [
    press("sort", "importance", "table", "Sort by importance", "The dimensions that explain most come first"),
    press("look", "parallel", "bars", "Parallel coordinates", "A line a configuration, instead of bars"),
    press("scale", "all", "left", "Whole scale", "Keep the scale of all data, instead of what is left"),
    button("Everything", "Without any restriction (Escape)", () => acts.everything()),
    button("SVG", "Save this view as SVG", () => acts.drawing()),
    button("CSV", "Save the rows that are left as CSV", () => acts.rows()),
    button("Open table…", "Explore a CSV or Parquet file; or drop one on the page", () => file.click()),
    button("?", "Help, and keys", () => showHelp()),
    file,
  ];
}
