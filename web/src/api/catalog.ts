// What the service keeps, read from its own OpenAPI document: the histories, their owners, columns and filters.

import type { Schema } from "./schema";

export interface Column {
  name: string;
  schema: Schema;
}

/** One history, as its definition has it. */
export interface Definition {
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
  /** The properties of an item in the order of tables: the date is the last. */
  columns: Column[];
  date: string;
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
  definitions: Definition[];
  pageViews: boolean;
  /** Whether requests need a token or a key. */
  signIn: boolean;
}

interface Parameter {
  name: string;
  in: string;
  description?: string;
  schema: Schema;
  example?: unknown;
}

interface Operation {
  tags?: string[];
  description?: string;
  parameters?: (Parameter & { $ref?: string })[];
  requestBody?: { content: Record<string, { schema: Schema }> };
  responses: Record<string, { content?: Record<string, { schema: Schema }> }>;
}

export interface OpenApi {
  info: { version: string };
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema>; securitySchemes?: Record<string, unknown> };
}

/** Where the service has its OpenAPI document. */
export const DOCUMENT = "/openapi.json";

const LIVE = /^\/v1\/([^/{}]+)\/\{([^/{}]+)\}\/([^/{}]+)\/live$/;

export function catalogOf(document: OpenApi): Catalog {
  const { paths, components, info } = document;
  const definitions = Object.keys(paths).flatMap((path) => {
    const found = LIVE.exec(path);
    return found ? [definitionOf(document, found[1]!, found[2]!, found[3]!)] : [];
  });
  return {
    version: info.version,
    definitions,
    pageViews: "/v1/page-views" in paths,
    signIn: Object.keys(components.securitySchemes ?? {}).length > 0,
  };
}

function definitionOf(document: OpenApi, owners: string, ownerField: string, items: string): Definition {
  const { paths } = document;
  const path = `/v1/${owners}/{${ownerField}}/${items}`;
  const listing = paths[path]!["get"]!;
  const append = paths[path]!["post"]!;
  const page = resolved(document, answer(paths[`${path}/pages/{page}`]!["get"]!));
  const item = page.properties!["items"]!.items!;
  const newItem = resolved(document, append.requestBody!.content["application/json"]!.schema);
  const owner = listing.parameters!.find((parameter) => parameter.in === "path")!;
  const properties = Object.entries(item.properties!).filter(([name]) => name !== "seq");
  const date = dateOf(item);
  const columns = properties
    .map(([name, schema]) => ({ name, schema }))
    .sort((one, other) => Number(one.name === date) - Number(other.name === date));
  const isFilter = ({ name }: Column) =>
    listing.parameters!.some((parameter) => parameter.in === "query" && parameter.name === name && parameter.schema.type === "array");
  const summaries = summariesOf(document, paths[`${path}/summary`]?.["get"]);
  return {
    owners,
    ownersTitle: paths[`/v1/${owners}`]?.["get"]?.tags?.[0] ?? owners,
    ownerField,
    ownerSchema: owner.schema,
    ownerExample: String(owner.example ?? owner.schema.examples?.[0] ?? ""),
    items,
    title: listing.tags?.[0] ?? items,
    about: (newItem.description ?? "").replace(/ At most \d+ bytes when it is stored\.$/, ""),
    pageSize: page.properties!["items"]!.maxItems ?? 10,
    columns,
    date,
    filters: columns.filter(isFilter),
    csv: `${path}/export.csv` in paths,
    ...(summaries && { summaries }),
    newItem,
    examples: (newItem.examples ?? []).filter((example) => typeof example === "object") as Record<string, unknown>[],
  };
}

function summariesOf(document: OpenApi, operation: Operation | undefined): Summaries | undefined {
  if (!operation) return undefined;
  const schemaOf = (name: string) => operation.parameters!.find((parameter) => parameter.name === name)?.schema;
  const point = resolved(document, answer(operation)).properties!["points"]!.items!;
  const values = Object.entries(point.properties!["values"]!.properties ?? {});
  return {
    lengths: (schemaOf("by")?.enum ?? []) as string[],
    groups: (schemaOf("group")?.items?.enum ?? []) as string[],
    values: values.map(([name, { properties = {} }]) => ({ name, members: Object.keys(properties) })),
  };
}

function answer(operation: Operation): Schema {
  return operation.responses["200"]!.content!["application/json"]!.schema;
}

/** The property that spans of time go by: answers have it last. */
function dateOf(item: Schema): string {
  const dates = Object.entries(item.properties!).filter(([name, { format }]) => format === "date-time" && item.required?.includes(name));
  const last = Object.keys((item.examples?.[0] ?? {}) as object).at(-1);
  return (dates.find(([name]) => name === last) ?? dates[0])![0];
}

/** A schema without references. One that refers to itself stays open where it does. */
function resolved(document: OpenApi, schema: Schema, within: readonly string[] = []): Schema {
  const { $ref, ...rest } = schema;
  if ($ref) {
    if (within.includes($ref)) return {};
    const name = $ref.slice($ref.lastIndexOf("/") + 1);
    return { ...resolved(document, document.components.schemas[name] ?? {}, [...within, $ref]), ...rest };
  }
  const copy: Schema = { ...schema };
  if (schema.items) copy.items = resolved(document, schema.items, within);
  if (schema.properties) {
    copy.properties = Object.fromEntries(
      Object.entries(schema.properties).map(([name, property]) => [name, resolved(document, property, within)]),
    );
  }
  return copy;
}
