// Configurations rather than rows: each with what its runs came to together; the best, the most stable, the Pareto set.

import { type Table } from "../data/table";
import { ascending } from "./order";

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

export interface Pair {
  readonly summary: Summary;
  readonly second: number;
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

  /** Those that no other one beats in one of the two means without losing in the other; the best in the first, first. */
  pareto(minimize: boolean, second: Float64Array, minimizeSecond: boolean): { front: Pair[]; known: number } {
    const { configurations } = this.table;
    const seconds = this.meansOf(second);
    const keys = new Float64Array(configurations).fill(NaN);
    const [a, b] = [minimize ? 1 : -1, minimizeSecond ? 1 : -1];
    for (let id = 0; id < configurations; id++) {
      if (this.count(id) > 0 && !Number.isNaN(seconds[id]!)) keys[id] = a * this.mean(id);
    }
    const ids = ascending(keys);
    const front: number[] = [];
    let best = Infinity;
    for (let from = 0; from < ids.length; ) {
      // Equal in the first: only those that are best in the second can be in it.
      let to = from;
      let least = Infinity;
      for (; to < ids.length && keys[ids[to]!] === keys[ids[from]!]; to++) {
        least = Math.min(least, b * seconds[ids[to]!]!);
      }
      if (least < best) {
        for (let at = from; at < to; at++) if (b * seconds[ids[at]!]! === least) front.push(ids[at]!);
        best = least;
      }
      from = to;
    }
    return { front: front.map((id) => ({ summary: this.summary(id), second: seconds[id]! })), known: ids.length };
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

  private summary(id: number): Summary {
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

  /** Mean of another metric over each configuration's rows; NaN where it was never measured. */
  private meansOf(values: Float64Array): Float64Array {
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
