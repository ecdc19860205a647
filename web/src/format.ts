// Numbers, moments and files as people read them. Moments are those of UTC.

const grouped = new Intl.NumberFormat("en");

export function number(value: number): string {
  return grouped.format(value);
}

/** `1 trade`, `24 trades`: of a name in the plural. */
export function count(value: number, plural: string): string {
  return `${number(value)} ${value === 1 ? singular(plural) : plural}`;
}

export function singular(plural: string): string {
  if (plural.endsWith("ies")) return `${plural.slice(0, -3)}y`;
  return plural.replace(/(?<=[sxz]|sh|ch)es$|s$/, "");
}

/** `2026-11-24 13:43:51.757`, without fractions that are zero. */
export function moment(text: string): string {
  return text.replace("T", " ").replace(/(\.000)?Z$/, "");
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
  if (!isDay(text)) return text;
  const next = new Date(`${text}T00:00:00Z`);
  next.setUTCDate(next.getUTCDate() + 1);
  return Number.isNaN(next.getTime()) ? text : `${next.toISOString().slice(0, 10)}T00:00:00Z`;
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
