// What is not in the picture.

import { type Table } from "../data/table";
import { many } from "../format";

/** What the picture leaves out, and what is the same everywhere. */
export function notes(table: Table, measured: number, metric: string): string[] {
  const failed = table.rows - measured;
  const lines = [...table.notes];
  if (failed > 0) lines.push(`${many(failed, "row")} without ${metric} ${failed === 1 ? "is" : "are"} not shown`);
  const alike = table.constants.filter((one) => one.labels.length > 0).map((one) => `${one.name} = ${one.labels[0]!}`);
  if (alike.length > 0) lines.push(`the same in all rows to which they apply: ${alike.join(", ")}`);
  return lines.length === 0 ? [] : [`${lines.join("; ")}.`.replace(/^[a-z]/, (letter) => letter.toUpperCase())];
}
