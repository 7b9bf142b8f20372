// What the page asks the server for.

import { metricOf, tableOf } from "./payload";
import { type Metric, type Table } from "./table";

async function bytes(response: Response): Promise<ArrayBuffer> {
  if (!response.ok) throw new Error(await problem(response));
  return response.arrayBuffer();
}

async function problem(response: Response): Promise<string> {
  try {
    return ((await response.json()) as { error: string }).error;
  } catch {
    return `the server answered ${response.status}`;
  }
}

/** Everything; null: of a run that goes on, nothing was measured yet. */
export async function fetchTable(): Promise<Table | null> {
  const response = await fetch("api/table");
  return response.status === 204 ? null : tableOf(await bytes(response));
}

/** A metric's values, fetched when they are first needed. */
export async function valuesOf(metric: Metric): Promise<Float64Array> {
  if (metric.values === null) {
    const response = await fetch(`api/metric?name=${encodeURIComponent(metric.name)}`);
    metric.values = metricOf(await bytes(response));
  }
  return metric.values;
}

export interface ColumnGuess {
  name: string;
  numeric: boolean;
  different: number;
  role: "parameter" | "metric" | "ignore";
  note: string;
}

export interface Inspection {
  name: string;
  rows: number;
  columns: ColumnGuess[];
}

export async function inspect(file: File): Promise<Inspection> {
  const response = await fetch(`api/inspect?file=${encodeURIComponent(file.name)}`, { method: "POST", body: file });
  if (!response.ok) throw new Error(await problem(response));
  return (await response.json()) as Inspection;
}

export interface Roles {
  objective: string;
  direction: "" | "min" | "max";
  parameters: string[];
  metrics: string[];
  ignore: string[];
}

export async function explore(file: File, roles: Roles): Promise<Table> {
  const query = new URLSearchParams({
    file: file.name,
    objective: roles.objective,
    direction: roles.direction,
    parameters: roles.parameters.join("\n"),
    metrics: roles.metrics.join("\n"),
    ignore: roles.ignore.join("\n"),
  });
  return tableOf(await bytes(await fetch(`api/explore?${query}`, { method: "POST", body: file })), true);
}
