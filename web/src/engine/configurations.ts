// Configurations rather than rows: each with what its runs came to together; the best, the most stable.

import { type Table } from "../data/table";

export type Spread = "range" | "iqr" | "rsd";

export interface Summary {
  readonly id: number;
  /** One of its rows, from which its values can be read. */
  readonly row: number;
  readonly count: number;
  readonly mean: number;
  /** Of its own runs; NaN of one alone. */
  readonly range: number;
  readonly iqr: number;
  readonly rsd: number;
}

/** How many different configurations these rows are of. */
export function different(table: Table, rows: Uint32Array): number {
  const seen = new Uint8Array(table.configurations);
  let count = 0;
  for (let index = 0; index < rows.length; index++) {
    const id = table.configuration[rows[index]!]!;
    if (seen[id] === 0) {
      seen[id] = 1;
      count++;
    }
  }
  return count;
}

/** Rows by configuration; half a million of them are gone through in a moment, as nothing is made for each. */
export class Groups {
  private readonly starts: Uint32Array;
  /** Values by configuration, ascending in each. */
  private readonly values: Float64Array;
  private readonly first: Uint32Array;

  /** Rows must ascend by `values`. */
  constructor(
    readonly table: Table,
    private readonly rows: Uint32Array,
    values: Float64Array,
  ) {
    const { configuration, configurations } = table;
    const starts = (this.starts = new Uint32Array(configurations + 1));
    for (let index = 0; index < rows.length; index++) starts[configuration[rows[index]!]! + 1]!++;
    for (let id = 0; id < configurations; id++) starts[id + 1]! += starts[id]!;
    const next = starts.slice(0, configurations);
    this.values = new Float64Array(rows.length);
    this.first = new Uint32Array(configurations);
    for (let index = 0; index < rows.length; index++) {
      const row = rows[index]!;
      const id = configuration[row]!;
      if (next[id] === starts[id]) this.first[id] = row;
      this.values[next[id]!++] = values[row]!;
    }
  }

  /** Those with the highest means, or the lowest. */
  best(minimize: boolean, wanted: number): Summary[] {
    const sign = minimize ? 1 : -1;
    return this.least((id) => sign * this.mean(id), wanted);
  }

  /** Those of several runs that vary least. */
  stable(spread: Spread, wanted: number): Summary[] {
    return this.least((id) => this.spread(id, spread), wanted);
  }

  /** By configuration: the mean of the objective; NaN of those that are not left. */
  means(): Float64Array {
    return Float64Array.from({ length: this.table.configurations }, (_, id) =>
      this.count(id) > 0 ? this.mean(id) : NaN,
    );
  }

  /** By configuration: how unlike its own runs are; NaN of one alone. */
  spreads(spread: Spread): Float64Array {
    return Float64Array.from({ length: this.table.configurations }, (_, id) => this.spread(id, spread));
  }

  private count(id: number): number {
    return this.starts[id + 1]! - this.starts[id]!;
  }

  private mean(id: number): number {
    let sum = 0;
    for (let place = this.starts[id]!; place < this.starts[id + 1]!; place++) sum += this.values[place]!;
    return sum / this.count(id);
  }

  private spread(id: number, spread: Spread): number {
    const from = this.starts[id]!;
    const count = this.count(id);
    if (count < 2) return NaN;
    if (spread === "range") return this.values[from + count - 1]! - this.values[from]!;
    if (spread === "iqr") return this.quantile(id, 0.75) - this.quantile(id, 0.25);
    const mean = this.mean(id);
    let squares = 0;
    for (let place = from; place < from + count; place++) squares += (this.values[place]! - mean) ** 2;
    return Math.sqrt(squares / (count - 1)) / Math.abs(mean);
  }

  private quantile(id: number, share: number): number {
    const place = this.starts[id]! + share * (this.count(id) - 1);
    const below = Math.floor(place);
    const low = this.values[below]!;
    return below === place ? low : low + (place - below) * (this.values[below + 1]! - low);
  }

  summary(id: number): Summary {
    return {
      id,
      row: this.first[id]!,
      count: this.count(id),
      mean: this.mean(id),
      range: this.spread(id, "range"),
      iqr: this.spread(id, "iqr"),
      rsd: this.spread(id, "rsd"),
    };
  }

  /** The configurations of the lowest keys, ascending; those whose key is NaN are none. */
  private least(key: (id: number) => number, wanted: number): Summary[] {
    const held: { id: number; key: number }[] = [];
    for (let id = 0; id < this.table.configurations; id++) {
      if (this.count(id) === 0) continue;
      const own = key(id);
      if (Number.isNaN(own) || (held.length === wanted && own >= held[wanted - 1]!.key)) continue;
      let at = held.length;
      while (at > 0 && held[at - 1]!.key > own) at--;
      held.splice(at, 0, { id, key: own });
      held.length = Math.min(held.length, wanted);
    }
    return held.map((one) => this.summary(one.id));
  }

  /** By configuration: the mean of another metric; NaN where it was never measured. */
  meansOf(values: Float64Array): Float64Array {
    const { configuration, configurations } = this.table;
    const sums = new Float64Array(configurations);
    const counts = new Uint32Array(configurations);
    for (let index = 0; index < this.rows.length; index++) {
      const row = this.rows[index]!;
      const value = values[row]!;
      if (!Number.isFinite(value)) continue;
      sums[configuration[row]!]! += value;
      counts[configuration[row]!]!++;
    }
    for (let id = 0; id < configurations; id++) sums[id]! /= counts[id]!;
    return sums;
  }
}
