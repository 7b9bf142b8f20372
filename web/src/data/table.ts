// What is explored: rows of dimensions and metrics, column by column.

export type Codes = Uint8Array | Uint16Array;

export interface Dimension {
  readonly name: string;
  readonly kind: "text" | "boolean" | "integer" | "number";
  /** What the values, or ranges of them, are called; one more, "n/a", where it does not apply to some rows. */
  readonly labels: readonly string[];
  /** The values themselves; empty where they are cut into ranges. */
  readonly values: readonly unknown[];
  /** Each row's place in `labels`. */
  readonly codes: Codes;
  /** The place of "n/a" in `labels`, or -1. */
  readonly absent: number;
  /** The values where they are cut into ranges. */
  readonly raw: Float64Array | null;
  /** Whether rows differ in it at all. */
  readonly varies: boolean;
  /** Whether it is what was measured under, and nothing that can be set. */
  readonly given: boolean;
  readonly cost: string | null;
  readonly category: number | null;
}

export interface Metric {
  readonly name: string;
  readonly minimize: boolean;
  /** NaN where it was not measured; null until it was fetched. */
  values: Float64Array | null;
}

export interface Origin {
  readonly name: string;
  readonly run_id: number | null;
}

export interface Table {
  readonly name: string;
  readonly version: number;
  readonly rows: number;
  readonly objective: string;
  readonly minimize: boolean;
  readonly notes: readonly string[];
  readonly origins: readonly Origin[];
  /** Those in which rows differ. */
  readonly dimensions: readonly Dimension[];
  /** Those that have one value, or do not apply. */
  readonly constants: readonly Dimension[];
  readonly metrics: readonly Metric[];
  /** Equal where all dimensions are. */
  readonly configuration: Uint32Array;
  readonly configurations: number;
  readonly origin: Uint16Array | null;
  readonly trial: Int32Array | null;
  /** By row: bit c is set where a change from the default configuration is of category c; 255: unknown. */
  readonly changes: Uint8Array | null;
  /** Whether it was dropped on the page, so that the server does not know it. */
  readonly dropped: boolean;
}

export const ABSENT_LABEL = "n/a";

/** A row's value of a dimension as JSON has it; undefined where it does not apply. */
export function valueAt(dimension: Dimension, row: number): unknown {
  const code = dimension.codes[row]!;
  if (code === dimension.absent) return undefined;
  return dimension.raw === null ? dimension.values[code] : dimension.raw[row];
}

/** The same as text. */
export function textAt(dimension: Dimension, row: number): string {
  const value = valueAt(dimension, row);
  return value === undefined ? "" : String(value);
}

export function dimensionNamed(table: Table, name: string): Dimension | undefined {
  return table.dimensions.find((one) => one.name === name);
}

export function metricNamed(table: Table, name: string): Metric | undefined {
  return table.metrics.find((one) => one.name === name);
}
