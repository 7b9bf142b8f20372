// Rows in ascending order of a metric: a radix sort, so that 500,000 rows take a moment and not a second.

/** The rows with a finite value, ascending by it; equal ones by row. */
export function ascending(values: Float64Array): Uint32Array {
  const words = new Uint32Array(values.buffer, values.byteOffset, values.length * 2);
  let count = 0;
  let rows = new Uint32Array(values.length);
  for (let row = 0; row < values.length; row++) if (Number.isFinite(values[row])) rows[count++] = row;
  rows = rows.subarray(0, count);
  // As unsigned integers, with the sign turned, doubles are in the order of their values.
  let low = new Uint32Array(count);
  let high = new Uint32Array(count);
  for (let place = 0; place < count; place++) {
    const row = rows[place]!;
    // -0 and 0 are one value.
    const zero = values[row] === 0;
    const l = zero ? 0 : words[2 * row]!;
    const h = zero ? 0 : words[2 * row + 1]!;
    const negative = h >>> 31 === 1;
    low[place] = negative ? ~l : l;
    high[place] = negative ? ~h : h ^ 0x80000000;
  }
  let other = { rows: new Uint32Array(count), low: new Uint32Array(count), high: new Uint32Array(count) };
  const counts = new Uint32Array(1 << 16);
  for (let digit = 0; digit < 4; digit++) {
    const keys = digit < 2 ? low : high;
    const shift = (digit & 1) * 16;
    counts.fill(0);
    for (let place = 0; place < count; place++) counts[(keys[place]! >>> shift) & 0xffff]!++;
    if (count > 0 && counts[(keys[0]! >>> shift) & 0xffff] === count) continue; // all the same digit
    let sum = 0;
    for (let key = 0; key < counts.length; key++) {
      const held = counts[key]!;
      counts[key] = sum;
      sum += held;
    }
    for (let place = 0; place < count; place++) {
      const to = counts[(keys[place]! >>> shift) & 0xffff]!++;
      other.rows[to] = rows[place]!;
      other.low[to] = low[place]!;
      other.high[to] = high[place]!;
    }
    [rows, low, high, other] = [other.rows, other.low, other.high, { rows, low, high }];
  }
  return rows;
}
