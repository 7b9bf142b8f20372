// The distribution behind one bar (Cao, Fig. 8.5).

export const BINS = 64;

export interface Bar {
  readonly count: number;
  readonly min: number;
  readonly p10: number;
  readonly p25: number;
  readonly p50: number;
  readonly p75: number;
  readonly p90: number;
  readonly max: number;
  readonly mean: number;
  readonly deviation: number;
  /** How many values lie in each of `BINS` equal steps from `min` to `max`. */
  readonly density: Float32Array;
}

const NOTHING: Bar = {
  count: 0,
  min: NaN,
  p10: NaN,
  p25: NaN,
  p50: NaN,
  p75: NaN,
  p90: NaN,
  max: NaN,
  mean: NaN,
  deviation: NaN,
  density: new Float32Array(BINS),
};

/** Of values in ascending order, `from` inclusive to `to` exclusive. */
export function barOf(sorted: Float64Array, from: number, to: number): Bar {
  const count = to - from;
  if (count === 0) return NOTHING;
  const middle = sorted[from + (count >> 1)]!; // sums of differences keep their digits
  let sum = 0;
  let squares = 0;
  // Four sums at a time do not wait for one another.
  let place = from;
  for (; place + 3 < to; place += 4) {
    const first = sorted[place]! - middle;
    const second = sorted[place + 1]! - middle;
    const third = sorted[place + 2]! - middle;
    const fourth = sorted[place + 3]! - middle;
    sum += first + second + (third + fourth);
    squares += first * first + second * second + (third * third + fourth * fourth);
  }
  for (; place < to; place++) {
    const rest = sorted[place]! - middle;
    sum += rest;
    squares += rest * rest;
  }
  const variance = count > 1 ? Math.max(0, (squares - (sum * sum) / count) / (count - 1)) : 0;
  return {
    count,
    min: sorted[from]!,
    p10: quantile(sorted, from, count, 0.1),
    p25: quantile(sorted, from, count, 0.25),
    p50: quantile(sorted, from, count, 0.5),
    p75: quantile(sorted, from, count, 0.75),
    p90: quantile(sorted, from, count, 0.9),
    max: sorted[to - 1]!,
    mean: middle + sum / count,
    deviation: Math.sqrt(variance),
    density: densityOf(sorted, from, to),
  };
}

/** With linear interpolation between neighbours. */
function quantile(sorted: Float64Array, from: number, count: number, share: number): number {
  const place = share * (count - 1);
  const below = Math.floor(place);
  const low = sorted[from + below]!;
  if (below === place) return low;
  return low + (place - below) * (sorted[from + below + 1]! - low);
}

function densityOf(sorted: Float64Array, from: number, to: number): Float32Array {
  const density = new Float32Array(BINS);
  const low = sorted[from]!;
  const step = (sorted[to - 1]! - low) / BINS;
  if (!(step > 0)) {
    density.fill(to - from);
    return density;
  }
  let start = from;
  for (let bin = 0; bin < BINS; bin++) {
    const end = bin === BINS - 1 ? to : firstAbove(sorted, start, to, low + (bin + 1) * step);
    density[bin] = end - start;
    start = end;
  }
  return smoothed(density);
}

/** The first place whose value is at least `limit`. */
function firstAbove(sorted: Float64Array, from: number, to: number, limit: number): number {
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (sorted[middle]! < limit) from = middle + 1;
    else to = middle;
  }
  return from;
}

const REACH = 4;
const KERNEL = [0.0276, 0.0663, 0.1238, 0.1802, 0.2042, 0.1802, 0.1238, 0.0663, 0.0276]; // Gaussian, two bins wide

function smoothed(density: Float32Array): Float32Array {
  const smooth = new Float32Array(BINS);
  for (let bin = 0; bin < BINS; bin++) {
    let sum = 0;
    for (let offset = -REACH; offset <= REACH; offset++) {
      // Reflected at the ends, where all values lie inside.
      let at = bin + offset;
      if (at < 0) at = -1 - at;
      if (at >= BINS) at = 2 * BINS - 1 - at;
      sum += KERNEL[offset + REACH]! * density[at]!;
    }
    smooth[bin] = sum;
  }
  return smooth;
}
