// From the server's bytes to columns; the layout is described in python/ascar/web/payload.py.

import { WEIGHTED, weightedMetric } from "./cost";
import { ABSENT_LABEL, type Codes, type Dimension, type Metric, type Origin, type Table } from "./table";

type Column = Uint8Array | Uint16Array | Uint32Array | Int32Array | Float64Array;

interface Header {
  name: string;
  version: number;
  rows: number;
  objective: string;
  minimize: boolean;
  notes: string[];
  origins: Origin[];
  dimensions: Omit<Dimension, "codes" | "raw" | "absent">[];
  metrics: { name: string; minimize: boolean }[];
  arrays: { name: string; type: string; offset: number; length: number }[];
}

const TYPES = {
  uint8: Uint8Array,
  uint16: Uint16Array,
  uint32: Uint32Array,
  int32: Int32Array,
  float64: Float64Array,
} as const;

const VERSION = 1;

function unpacked(buffer: ArrayBuffer): { header: Header; columns: Map<string, Column> } {
  const view = new DataView(buffer);
  if (buffer.byteLength < 16 || view.getUint32(0, false) !== 0x41534358) throw new Error("the server sent no columns");
  if (view.getUint32(4, true) !== VERSION) throw new Error("the server is newer than this page; reload it");
  const length = view.getUint32(8, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 16, length))) as Header;
  const columns = new Map<string, Column>();
  for (const one of header.arrays) {
    const type = TYPES[one.type as keyof typeof TYPES];
    columns.set(one.name, new type(buffer, 16 + length + one.offset, one.length));
  }
  return { header, columns };
}

/** A whole table. */
export function tableOf(buffer: ArrayBuffer, dropped = false): Table {
  const { header, columns } = unpacked(buffer);
  const dimensions = header.dimensions.map((one, place): Dimension => {
    const codes = columns.get(`dimension.${place}`) as Codes;
    const raw = (columns.get(`raw.${place}`) as Float64Array | undefined) ?? null;
    const none = codes instanceof Uint8Array ? 0xff : 0xffff;
    const absent = one.labels.length;
    let found = false;
    for (let row = 0; row < codes.length; row++) {
      if (codes[row] === none) {
        codes[row] = absent;
        found = true;
      }
    }
    const labels = found ? [...one.labels, ABSENT_LABEL] : one.labels;
    return { ...one, labels, codes, raw, absent: found ? absent : -1 };
  });
  const metrics = header.metrics.map(
    (one, place): Metric => ({ ...one, values: (columns.get(`metric.${place}`) as Float64Array | undefined) ?? null }),
  );
  const changes = (columns.get("changes") as Uint8Array | undefined) ?? null;
  if (changes !== null && !metrics.some((one) => one.name === WEIGHTED)) metrics.push(weightedMetric());
  const configuration = columns.get("configuration") as Uint32Array;
  let last = -1;
  for (let row = 0; row < configuration.length; row++) if (configuration[row]! > last) last = configuration[row]!;
  return {
    name: header.name,
    version: header.version,
    rows: header.rows,
    objective: header.objective,
    minimize: header.minimize,
    notes: header.notes,
    origins: header.origins,
    dimensions: dimensions.filter((one) => one.varies),
    constants: dimensions.filter((one) => !one.varies),
    metrics,
    configuration,
    configurations: last + 1,
    origin: (columns.get("origin") as Uint16Array | undefined) ?? null,
    trial: (columns.get("trial") as Int32Array | undefined) ?? null,
    changes,
    dropped,
  };
}

/** One metric's values. */
export function metricOf(buffer: ArrayBuffer): Float64Array {
  return unpacked(buffer).columns.get("values") as Float64Array;
}
