// What a change from the default configuration costs: a weight a category (Cao, Table 9.1 and 8.4), the user's own.

import { type Metric, type Table } from "./table";

/** The metric that the weights make: the sum of those of the categories that a change takes. */
export const WEIGHTED = "change_cost";

/** By category, from no downtime to hours or days. */
export const WEIGHTS: readonly number[] = [0, 1, 10, 100];
export const CATEGORIES = ["no downtime", "seconds", "minutes", "hours to days"] as const;

const UNKNOWN = 0xff;

/** The metric of a table whose changes are known; its values come from `weigh`. */
export function weightedMetric(): Metric {
  return { name: WEIGHTED, minimize: true, values: null };
}

/** A row's cost: a category counts once, however many parameters of it change, as one remount does for all of them. */
export function weigh(changes: Uint8Array, weights: readonly number[]): Float64Array {
  const byMask = Float64Array.from({ length: 256 }, (_, mask) =>
    weights.reduce((sum, weight, category) => sum + ((mask >> category) & 1) * weight, 0),
  );
  byMask[UNKNOWN] = NaN;
  return Float64Array.from(changes, (mask) => byMask[mask]!);
}

/** The table's weighted cost with these weights; where they are the same as last time, the same array. */
export class Weighing {
  private last = { table: null as Table | null, weights: "" };

  apply(table: Table, weights: readonly number[]): void {
    const metric = table.metrics.find((one) => one.name === WEIGHTED);
    if (table.changes === null || metric === undefined) return;
    if (this.last.table === table && this.last.weights === weights.join()) return;
    metric.values = weigh(table.changes, weights);
    this.last = { table, weights: weights.join() };
  }
}
