// Numbers as people read them.

import { format } from "d3-format";

const LARGE = format(".4~s");
const SHARE = format(".0%");
const FINE_SHARE = format(".1%");
// Made once: to make one takes a hundred times as long as to use it.
const [WHOLE, FOUR, FIVE] = [{}, { maximumSignificantDigits: 4 }, { maximumSignificantDigits: 5 }].map(
  (options) => new Intl.NumberFormat("en", options),
) as [Intl.NumberFormat, Intl.NumberFormat, Intl.NumberFormat];

export function number(value: number): string {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e7 || size < 1e-3)) return LARGE(value);
  return (size >= 1e4 ? FIVE : FOUR).format(value);
}

export function count(value: number): string {
  return WHOLE.format(value);
}

/** "1 row", "2 rows". */
export function many(value: number, what: string): string {
  return `${count(value)} ${what}${value === 1 ? "" : "s"}`;
}

export function share(value: number): string {
  return value > 0 && value < 0.1 ? FINE_SHARE(value) : SHARE(value);
}

/** "1 h 05 min", "3 min 20 s", "12 s". */
export function duration(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${String(whole % 60).padStart(2, "0")} s`;
  return `${Math.floor(whole / 3600)} h ${String(Math.floor((whole % 3600) / 60)).padStart(2, "0")} min`;
}

export function shortened(text: string, letters: number): string {
  return text.length <= letters ? text : `${text.slice(0, letters - 1)}…`;
}

/** A name on two lines, parted where its words are; on the lower one alone where it fits. */
export function twoLines(name: string, letters: number): [string, string] {
  if (name.length <= letters) return ["", name];
  const word = name.slice(0, letters).search(/[_. -][^_. -]*$/);
  const cut = word < 0 ? letters : word + 1;
  return [name.slice(0, cut), shortened(name.slice(cut), letters)];
}
