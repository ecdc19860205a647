// What the service keeps, as its catalogue says it: all histories in a few words, and each one with its columns and
// filters.

import { read } from "./read";
import type { Schema } from "./schema";

export interface Column {
  name: string;
  schema: Schema;
}

/** What the list of histories says of each. */
export interface Outline {
  /** The collection of its owners, such as `customers`, and in words. */
  owners: string;
  ownersTitle: string;
  /** The member that names the owner, such as `customerId`. */
  ownerField: string;
  ownerSchema: Schema;
  ownerExample: string;
  /** Its name, such as `trades`, and in words. */
  items: string;
  title: string;
  /** What an item is. */
  about: string;
  pageSize: number;
  /** The property that spans of time go by. */
  date: string;
}

/** One history, as its definition has it. */
export interface Definition extends Outline {
  /** The properties of an item in the order of tables: the date is the last. */
  columns: Column[];
  /** The columns that listings can be filtered by. */
  filters: Column[];
  csv: boolean;
  /** What its items add up to by spans of time, if the definition says so. */
  summaries?: Summaries;
  newItem: Schema;
  examples: Record<string, unknown>[];
}

/** What a summary may be asked for. */
export interface Summaries {
  /** The lengths of spans of time, from the shortest. */
  lengths: string[];
  /** The properties by which items may be grouped. */
  groups: string[];
  /** The properties that are summarised, and the members that their measures have, such as `sum`. */
  values: { name: string; members: string[] }[];
}

export interface Catalog {
  version: string;
  histories: Outline[];
  /** Whether requests need a token or a key. */
  needsToken: boolean;
  /** Whether the documentation needs one. */
  docsNeedToken: boolean;
}

/** Where the service lists its histories. */
export const CATALOG = "/histories.json";

export function definitionPath(items: string): string {
  return `/histories/${encodeURIComponent(items)}.json`;
}

interface AnsweredOutline {
  history: string;
  about: string;
  owner: { collection: string; field: string; type: string; example: string | number };
  pageSize: number;
  date: string;
}

interface AnsweredDefinition extends AnsweredOutline {
  filters: string[];
  csv: boolean;
  summaries?: { by: string[]; group: string[]; values: Record<string, string[]> };
  newItem: Schema;
  item: Schema;
}

type AnsweredCatalog = Omit<Catalog, "histories"> & { histories: AnsweredOutline[] };

export async function readCatalog(signal: AbortSignal): Promise<Catalog> {
  const { histories, ...rest } = (await read(CATALOG, signal)) as AnsweredCatalog;
  return { ...rest, histories: histories.map(outlineOf) };
}

const definitions = new Map<string, Promise<Definition>>();

/** What a history is: asked for once. */
export function readDefinition({ items }: Outline): Promise<Definition> {
  const known = definitions.get(items);
  if (known) return known;
  // Whoever asks for it may leave, and others wait for it, too.
  const asked = (read(definitionPath(items), new AbortController().signal) as Promise<unknown>).then((answer) =>
    definitionOf(answer as AnsweredDefinition),
  );
  definitions.set(items, asked);
  asked.catch(() => definitions.delete(items));
  return asked;
}

function outlineOf({ history, about, owner, pageSize, date }: AnsweredOutline): Outline {
  return {
    owners: owner.collection,
    ownersTitle: titleOf(owner.collection),
    ownerField: owner.field,
    ownerSchema: { type: owner.type === "integer" ? "integer" : "string", ...(owner.type === "uuid" ? { format: "uuid" } : {}) },
    ownerExample: String(owner.example),
    items: history,
    title: titleOf(history),
    about,
    pageSize,
    date,
  };
}

export function definitionOf(answer: AnsweredDefinition): Definition {
  const { date, filters, csv, summaries } = answer;
  const [item, newItem] = [answer.item, answer.newItem].map((schema) => resolved(schema, schema.$defs ?? {})) as [Schema, Schema];
  const columns = Object.entries(item.properties!)
    .filter(([name]) => name !== "seq")
    .map(([name, schema]) => ({ name, schema }))
    .sort((one, other) => Number(one.name === date) - Number(other.name === date));
  return {
    ...outlineOf(answer),
    columns,
    filters: columns.filter(({ name }) => filters.includes(name)),
    csv,
    ...(summaries && {
      summaries: {
        lengths: summaries.by,
        groups: summaries.group,
        values: Object.entries(summaries.values).map(([name, members]) => ({ name, members })),
      },
    }),
    newItem,
    examples: (newItem.examples ?? []).filter((example) => typeof example === "object") as Record<string, unknown>[],
  };
}

/** `audit-entries` as `AuditEntries`. */
function titleOf(name: string): string {
  return name.replace(/(?:^|-)(\w)/g, (_, first: string) => first.toUpperCase());
}

/** A schema without references. One that refers to itself stays open where it does. */
function resolved(schema: Schema, known: Record<string, Schema>, within: readonly string[] = []): Schema {
  const { $ref, ...rest } = schema;
  if ($ref) {
    if (within.includes($ref)) return {};
    const name = $ref.slice($ref.lastIndexOf("/") + 1);
    return { ...resolved(known[name] ?? {}, known, [...within, $ref]), ...rest };
  }
  const copy: Schema = { ...schema };
  if (schema.items) copy.items = resolved(schema.items, known, within);
  if (schema.properties) {
    copy.properties = Object.fromEntries(
      Object.entries(schema.properties).map(([name, property]) => [name, resolved(property, known, within)]),
    );
  }
  return copy;
}
