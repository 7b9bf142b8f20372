// The Pareto set of two measures of configurations.

import { ascending } from "./order";

export interface Measure {
  /** By configuration; NaN: not known, or not left. */
  readonly values: Float64Array;
  readonly minimize: boolean;
}

/** Those that no other one beats in one measure without losing in the other; the best in the first, first. */
export function pareto(first: Measure, second: Measure): { front: number[]; known: number } {
  const [a, b] = [first.minimize ? 1 : -1, second.minimize ? 1 : -1];
  const keys = first.values.map((value, id) => (Number.isNaN(second.values[id]) ? NaN : a * value));
  const ids = ascending(keys);
  const front: number[] = [];
  let best = Infinity;
  for (let from = 0; from < ids.length; ) {
    // Equal in the first: only those that are best in the second can be in it.
    let to = from;
    let least = Infinity;
    for (; to < ids.length && keys[ids[to]!] === keys[ids[from]!]; to++) {
      least = Math.min(least, b * second.values[ids[to]!]!);
    }
    if (least < best) {
      for (let at = from; at < to; at++) if (b * second.values[ids[at]!]! === least) front.push(ids[at]!);
      best = least;
    }
    from = to;
  }
  return { front, known: ids.length };
}

/** By how much of the other one's magnitude one is better; 0: not at all. */
export function gainOver(first: Measure, one: number, other: number): number {
  const [a, b] = [first.values[one]!, first.values[other]!];
  const better = first.minimize ? b - a : a - b;
  return better === 0 ? 0 : better / Math.abs(b);
}

/**
 * Those of a Pareto set that are worth it: begun with the best in the second, each must bring at least so much more of
 * the first than the one kept before it (Cao 8.4: a cost is avoided unless the benefit exceeds a certain metric).
 */
export function worthIt(first: Measure, front: readonly number[], gain: number): number[] {
  const kept: number[] = [];
  for (const id of [...front].reverse()) {
    const last = kept.at(-1);
    if (last === undefined || gainOver(first, id, last) >= gain) kept.push(id);
  }
  return kept.reverse();
}
