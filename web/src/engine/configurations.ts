// Configurations rather than rows: each with what its runs came to together; the best, the most stable, the Pareto set.

import { type Table } from "../data/table";

export interface Summary {
  /** One of its rows, from which its values can be read. */
  readonly row: number;
  readonly count: number;
  readonly mean: number;
  readonly range: number;
  readonly iqr: number;
  readonly rsd: number;
}

/** How many different configurations these rows are of. */
export function different(table: Table, rows: Uint32Array): number {
  const seen = new Uint8Array(table.configurations);
  let count = 0;
  for (const row of rows) {
    const id = table.configuration[row]!;
    if (seen[id] === 0) {
      seen[id] = 1;
      count++;
    }
  }
  return count;
}

/** Each configuration among these rows; rows must ascend by `values`. */
export function summaries(table: Table, rows: Uint32Array, values: Float64Array): Summary[] {
  const starts = new Uint32Array(table.configurations + 1);
  for (const row of rows) starts[table.configuration[row]! + 1]!++;
  for (let id = 0; id < table.configurations; id++) starts[id + 1]! += starts[id]!;
  const next = starts.slice(0, table.configurations);
  const grouped = new Uint32Array(rows.length);
  for (const row of rows) grouped[next[table.configuration[row]!]!++] = row;
  const found: Summary[] = [];
  for (let id = 0; id < table.configurations; id++) {
    const from = starts[id]!;
    const count = starts[id + 1]! - from;
    if (count === 0) continue;
    const at = (place: number) => values[grouped[from + place]!]!;
    let mean = 0;
    let squares = 0;
    for (let place = 0; place < count; place++) {
      const rest = at(place) - mean;
      mean += rest / (place + 1);
      squares += rest * (at(place) - mean);
    }
    const share = (part: number) => {
      const place = part * (count - 1);
      const below = Math.floor(place);
      return below === place ? at(below) : at(below) + (place - below) * (at(below + 1) - at(below));
    };
    const deviation = count > 1 ? Math.sqrt(Math.max(0, squares / (count - 1))) : NaN;
    found.push({
      row: grouped[from]!,
      count,
      mean,
      range: count > 1 ? at(count - 1) - at(0) : NaN,
      iqr: count > 1 ? share(0.75) - share(0.25) : NaN,
      rsd: deviation / Math.abs(mean),
    });
  }
  return found;
}

/** Mean of another metric over each configuration's rows. */
export function meansOf(table: Table, rows: Uint32Array, values: Float64Array): Float64Array {
  const sums = new Float64Array(table.configurations);
  const counts = new Uint32Array(table.configurations);
  for (const row of rows) {
    const value = values[row]!;
    if (Number.isFinite(value)) {
      const id = table.configuration[row]!;
      sums[id]! += value;
      counts[id]!++;
    }
  }
  return sums.map((sum, id) => (counts[id]! > 0 ? sum / counts[id]! : NaN));
}

export interface Point {
  readonly summary: Summary;
  readonly first: number;
  readonly second: number;
}

/** The points that no other one beats in one of the two without losing in the other; the best in the first, first. */
export function pareto(points: readonly Point[], minimizeFirst: boolean, minimizeSecond: boolean): Point[] {
  const [a, b] = [minimizeFirst ? 1 : -1, minimizeSecond ? 1 : -1];
  const ordered = [...points].sort((p, q) => a * (p.first - q.first) || b * (p.second - q.second));
  const front: Point[] = [];
  let best = Infinity;
  let last = NaN;
  for (const point of ordered) {
    const second = b * point.second;
    if (second < best || (second === best && point.first === last)) {
      front.push(point);
      best = second;
      last = point.first;
    }
  }
  return front;
}
