// All bars of a table for one objective: columns laid out in its order, so that one pass finds every quantile.

import { type Codes, type Table } from "../data/table";
import { barOf, type Bar } from "./bar";
import { ascending } from "./order";

export interface Limit {
  readonly values: Float64Array;
  readonly low: number | null;
  readonly high: number | null;
}

export interface Selection {
  /** By dimension: which of its values are chosen; null: all. */
  readonly chosen: readonly (readonly boolean[] | null)[];
  readonly limits: readonly Limit[];
}

export interface Bars {
  /** By dimension and value. Of a restricted dimension, what each value would give in place of the chosen. */
  readonly dimensions: readonly (readonly Bar[])[];
  /** By dimension: the variance that it explains of what is left (PI, Cao 7.2), in squares of the metric's unit. */
  readonly importance: Float64Array;
  readonly variance: number;
  readonly all: Bar;
  /** Rows that are left, ascending by the objective. */
  readonly rows: Uint32Array;
}

const OUT = 0xff;
/** No dimension. */
const NONE = 0x100;

export class Engine {
  /** Rows with a finite objective, ascending by it. */
  readonly order: Uint32Array;
  private readonly values: Float64Array;
  private readonly codes: Codes[];
  private readonly misses: Uint8Array;
  private readonly missed: Uint8Array;
  private readonly inside: Uint32Array;
  private readonly others: Uint32Array;
  private readonly sorted: Float64Array;

  constructor(
    readonly table: Table,
    objective: Float64Array,
  ) {
    this.order = ascending(objective);
    const count = this.order.length;
    this.values = new Float64Array(count);
    for (let place = 0; place < count; place++) this.values[place] = objective[this.order[place]!]!;
    this.codes = table.dimensions.map((dimension) => {
      const laid = dimension.codes instanceof Uint8Array ? new Uint8Array(count) : new Uint16Array(count);
      for (let place = 0; place < count; place++) laid[place] = dimension.codes[this.order[place]!]!;
      return laid;
    });
    this.misses = new Uint8Array(count);
    this.missed = new Uint8Array(count);
    this.inside = new Uint32Array(count);
    this.others = new Uint32Array(count);
    this.sorted = new Float64Array(count);
  }

  bars(selection: Selection): Bars {
    this.mark(selection);
    const inside = this.places(this.inside, NONE);
    const dimensions: Bar[][] = [];
    const importance = new Float64Array(this.codes.length);
    const all = this.all(inside);
    this.codes.forEach((codes, which) => {
      const { labels, absent } = this.table.dimensions[which]!;
      const restricted = selection.chosen[which] !== null;
      const bars = this.split(codes, labels.length, restricted ? this.places(this.others, which) : inside);
      dimensions.push(bars);
      const own = selection.chosen[which] ?? null;
      importance[which] = between(bars, own, absent, inside.length);
    });
    const rows = new Uint32Array(inside.length);
    for (let index = 0; index < inside.length; index++) rows[index] = this.order[inside[index]!]!;
    return { dimensions, importance, variance: variance(all), all, rows };
  }

  /** How many dimensions each row misses, and their sum: which one where it is one alone. */
  private mark(selection: Selection): void {
    const { misses, missed, order } = this;
    misses.fill(0);
    missed.fill(0);
    selection.chosen.forEach((chosen, which) => {
      if (chosen !== null) add(this.codes[which]!, Uint8Array.from(chosen, Number), which, misses, missed);
    });
    for (const { values, low, high } of selection.limits) {
      for (let place = 0; place < order.length; place++) {
        const value = values[order[place]!]!;
        // NaN meets no limit.
        if (!((low === null || value >= low) && (high === null || value <= high))) misses[place] = OUT;
      }
    }
  }

  /** Places that miss nothing, or nothing but `which`. */
  private places(into: Uint32Array, which: number): Uint32Array {
    const { misses, missed } = this;
    let count = 0;
    for (let place = 0; place < misses.length; place++) {
      const miss = misses[place]!;
      into[count] = place;
      count += zero(miss) | zero((miss ^ 1) | (missed[place]! ^ which));
    }
    return into.subarray(0, count);
  }

  private all(places: Uint32Array): Bar {
    for (let index = 0; index < places.length; index++) this.sorted[index] = this.values[places[index]!]!;
    return barOf(this.sorted, 0, places.length);
  }

  /** A counting sort by value: places are ascending, so each value's are. */
  private split(codes: Codes, width: number, places: Uint32Array): Bar[] {
    const starts = new Uint32Array(width + 1);
    for (let index = 0; index < places.length; index++) starts[codes[places[index]!]! + 1]!++;
    for (let code = 0; code < width; code++) starts[code + 1]! += starts[code]!;
    const next = starts.slice(0, width);
    for (let index = 0; index < places.length; index++) {
      const place = places[index]!;
      this.sorted[next[codes[place]!]!++] = this.values[place]!;
    }
    return Array.from({ length: width }, (_, code) => barOf(this.sorted, starts[code]!, starts[code + 1]!));
  }
}

// No branches in what follows: which rows are chosen, no processor can guess.

/** Count a miss where a value is not among the chosen ones. */
function add(codes: Codes, chosen: Uint8Array, which: number, misses: Uint8Array, missed: Uint8Array): void {
  for (let place = 0; place < codes.length; place++) {
    const miss = 1 - chosen[codes[place]!]!;
    misses[place]! += miss;
    missed[place]! += miss * which;
  }
}

/** 1 of 0, 0 of what is above. */
function zero(value: number): number {
  return (value - 1) >>> 31;
}

/** The variance between the means of a dimension's values, of the rows that are left (see `importance`). */
function between(bars: readonly Bar[], chosen: readonly boolean[] | null, absent: number, rows: number): number {
  let count = 0;
  let mean = 0;
  const held = bars.filter((bar, code) => bar.count > 0 && code !== absent && (chosen === null || chosen[code]));
  for (const bar of held) {
    count += bar.count;
    mean += (bar.mean - mean) * (bar.count / count);
  }
  if (rows === 0) return 0;
  return held.reduce((sum, bar) => sum + bar.count * (bar.mean - mean) ** 2, 0) / rows;
}

function variance(bar: Bar): number {
  return bar.count > 1 ? (bar.deviation ** 2 * (bar.count - 1)) / bar.count : 0;
}
