// Numbers, moments and files as people read them.

const grouped = new Intl.NumberFormat("en");

export function number(value: number): string {
  return grouped.format(value);
}

/** `1 trade`, `24 trades`: of the name of a history. */
export function count(value: number, name: string): string {
  return `${number(value)} ${value === 1 ? singular(plural(name)) : plural(name)}`;
}

/** What the items of a history are called together: `trades`, but `audit items`. */
export function plural(name: string): string {
  return name.endsWith("s") ? name : `${name} items`;
}

export function capitalised(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

export function singular(plural: string): string {
  if (plural.endsWith("ies")) return `${plural.slice(0, -3)}y`;
  return plural.replace(/(?<=[sxz]|sh|ch)es$|s$/, "");
}

/** `2026-11-24 13:43:51.757`, without fractions that are zero: of UTC, or as the clocks of a zone show it. */
export function moment(text: string, zone = "UTC"): string {
  const inUtc = text.replace("T", " ").replace(/(\.000)?Z$/, "");
  if (zone === "UTC") return inUtc;
  const at = new Date(text);
  return Number.isNaN(at.getTime()) ? inUtc : clocksOf(zone).format(at) + inUtc.slice(19);
}

const clocks = new Map<string, Intl.DateTimeFormat>();

function clocksOf(zone: string): Intl.DateTimeFormat {
  // Swedish is written as ISO 8601 is.
  if (!clocks.has(zone)) clocks.set(zone, new Intl.DateTimeFormat("sv-SE", { timeZone: zone, dateStyle: "short", timeStyle: "medium" }));
  return clocks.get(zone)!;
}

/** The instant at which the clocks of the browser's zone, or of UTC, show a time of a day. Empty if there is no such time. */
export function instantOf(day: string, time: string, zone: string): string {
  const at = new Date(`${day}T${time}${zone === "UTC" ? "Z" : ""}`);
  return Number.isNaN(at.getTime()) ? "" : at.toISOString().replace(".000Z", "Z");
}

/** The day after, or before, as many days as this. */
export function dayFrom(day: string, days: number): string {
  const at = new Date(`${day}T00:00:00Z`);
  at.setUTCDate(at.getUTCDate() + days);
  return Number.isNaN(at.getTime()) ? day : at.toISOString().slice(0, 10);
}

export function milliseconds(time: number): string {
  return time < 10 ? `${time.toFixed(1)} ms` : `${number(Math.round(time))} ms`;
}

export function bytes(size: number): string {
  return size < 1000 ? `${size} B` : `${(size / 1000).toFixed(1)} kB`;
}

/** The beginning of a span as an instant: a day begins at midnight. */
export function fromInstant(text: string): string {
  return isDay(text) ? `${text}T00:00:00Z` : text;
}

/** The end of a span as an instant: a day is part of it. */
export function toInstant(text: string): string {
  return isDay(text) && dayFrom(text, 1) !== text ? `${dayFrom(text, 1)}T00:00:00Z` : text;
}

export function isDay(text: string): boolean {
  return /^\d{4}-\d\d-\d\d$/.test(text);
}

/** A row of CSV (RFC 4180), as the service writes it: an empty text has quotes, and what is absent has none. */
export function csvRow(values: unknown[]): string {
  const field = (value: unknown) => {
    const text = value === undefined || value === null ? "" : String(value);
    return value === "" || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return values.map(field).join(",");
}

/** For a shell. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
