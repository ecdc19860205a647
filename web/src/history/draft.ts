// An item that is being written: what was typed, and the key under which it is sent. It survives a reload.

import { newKey } from "@pagebucket/client";
import { kindOf, type Schema } from "../api/schema";
import { ofTab } from "../api/storage";

/** What was typed: a text for each scalar, in objects and lists as the schema has them. */
export type Typed = string | Typed[] | { [name: string]: Typed };

export interface Draft {
  typed: Typed;
  /** The request: its body, and its key, which is new for each new body. */
  sent?: { body: string; key: string; seq?: number };
}

export function emptyOf(schema: Schema): Typed {
  switch (kindOf(schema)) {
    case "object":
      return Object.fromEntries(Object.entries(schema.properties!).map(([name, property]) => [name, emptyOf(property)]));
    case "array":
      return [];
    default:
      return "";
  }
}

/** What would have to be typed for this value. */
export function typedOf(schema: Schema, value: unknown): Typed {
  if (value === undefined) return emptyOf(schema);
  switch (kindOf(schema)) {
    case "object": {
      const names = Object.entries(schema.properties!);
      return Object.fromEntries(names.map(([name, property]) => [name, typedOf(property, (value as Record<string, unknown>)[name])]));
    }
    case "array":
      return (value as unknown[]).map((one) => typedOf(schema.items!, one));
    case "any":
      return JSON.stringify(value);
    default:
      return String(value);
  }
}

/** The value that was typed. What is no such value is sent as it is: the service says what is wrong with it. */
export function valueOf(schema: Schema, typed: Typed | undefined, required = true): unknown {
  const kind = kindOf(schema);
  if (kind === "object") {
    const entries = Object.entries(schema.properties!).map(([name, property]) => {
      const one = (typed as Record<string, Typed> | undefined)?.[name];
      return [name, valueOf(property, one, schema.required?.includes(name) ?? false)] as const;
    });
    const given = entries.filter(([, value]) => value !== undefined);
    return given.length || required ? Object.fromEntries(given) : undefined;
  }
  if (kind === "array") {
    const list = (Array.isArray(typed) ? typed : []).map((one) => valueOf(schema.items!, one));
    return list.length || required ? list : undefined;
  }
  const text = typeof typed === "string" ? typed : "";
  // Of most texts, an empty one is a value, too.
  if (text === "") return kind === "text" && required && takesEmpty(schema) ? "" : undefined;
  switch (kind) {
    case "integer":
    case "number":
      return /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(text) ? Number(text) : text;
    case "boolean":
      return text === "true" || (text === "false" ? false : text);
    case "choice":
      return schema.enum!.find((choice) => String(choice) === text) ?? text;
    case "any":
      return parsed(text);
    default:
      return text;
  }
}

function takesEmpty({ minLength = 0, pattern, format }: Schema): boolean {
  return minLength === 0 && pattern === undefined && format === undefined;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** The same with another text at a place. */
export function changed(typed: Typed, path: (string | number)[], to: Typed): Typed {
  const [name, ...rest] = path;
  if (name === undefined) return to;
  if (Array.isArray(typed)) return typed.map((one, index) => (index === name ? changed(one, rest, to) : one));
  const object = typeof typed === "string" ? {} : typed;
  return { ...object, [name]: changed(object[name] ?? "", rest, to) };
}

/** The request of a body: that of before, if the body is the same. */
export function requestOf(draft: Draft, body: string): NonNullable<Draft["sent"]> {
  return draft.sent?.body === body ? draft.sent : { body, key: newKey() };
}

const place = (path: string) => `pagebucket.draft:${path}`;

export function storedDraft(path: string): Draft | undefined {
  try {
    return JSON.parse(ofTab.get(place(path)) ?? "null") ?? undefined;
  } catch {
    return undefined;
  }
}

/** Keeps it for this tab. */
export function storeDraft(path: string, draft: Draft): void {
  ofTab.set(place(path), JSON.stringify(draft));
}
