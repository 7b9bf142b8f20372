// What the heights of bars stand for.

import { type Table } from "../data/table";
import { type Bars } from "./engine";

export interface Heights {
  readonly table: Table;
  readonly bars: Bars;
  readonly values: Float64Array;
  readonly chosen: readonly (readonly boolean[] | null)[];
}

/** Of all that is shown, or of all there is. */
export function domain({ table, bars, values, chosen }: Heights, scale: "left" | "all"): [number, number] {
  let least = Infinity;
  let most = -Infinity;
  if (scale === "all") {
    for (const value of values) {
      if (!Number.isFinite(value)) continue;
      if (value < least) least = value;
      if (value > most) most = value;
    }
  } else {
    // What other values would give is shown too, but at most as far again as what is left reaches.
    const others = table.dimensions.flatMap((_, which) => (chosen[which] === null ? [] : bars.dimensions[which]!));
    const room = bars.all.max - bars.all.min;
    for (const bar of bars.all.count === 0 ? others : [bars.all, ...others]) {
      if (bar.count === 0) continue;
      least = Math.min(least, bar.min);
      most = Math.max(most, bar.max);
    }
    if (room > 0) {
      least = Math.max(least, bars.all.min - room);
      most = Math.min(most, bars.all.max + room);
    }
  }
  if (!(least <= most)) return [0, 1];
  if (least === most) return [least - Math.abs(least) * 0.1 - 1e-9, most + Math.abs(most) * 0.1 + 1e-9];
  return [least, most];
}
