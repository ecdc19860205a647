// JSON Schema as far as the explorer reads it: what kind of value a property has.

export interface Schema {
  type?: string | string[];
  description?: string;
  format?: string;
  pattern?: string;
  enum?: unknown[];
  examples?: unknown[];
  required?: string[];
  properties?: Record<string, Schema>;
  items?: Schema;
  minItems?: number;
  maxItems?: number;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  default?: unknown;
  $ref?: string;
  $defs?: Record<string, Schema>;
}

export type Kind = "date" | "decimal" | "number" | "integer" | "boolean" | "choice" | "text" | "object" | "array" | "any";

/** The kind of value that a schema describes, for columns, charts and fields. */
export function kindOf(schema: Schema): Kind {
  if (schema.enum) return "choice";
  switch (typeOf(schema)) {
    case "string":
      return isDate(schema) ? "date" : isDecimal(schema) ? "decimal" : "text";
    case "integer":
      return "integer";
    case "number":
      return "number";
    case "boolean":
      return "boolean";
    case "object":
      return schema.properties ? "object" : "any";
    case "array":
      return schema.items ? "array" : "any";
    default:
      return "any";
  }
}

export function isNumeric(schema: Schema): boolean {
  return ["decimal", "number", "integer"].includes(kindOf(schema));
}

function typeOf({ type }: Schema): string | undefined {
  return Array.isArray(type) ? type.find((one) => one !== "null") : type;
}

/** The document describes a date that a client sends only by its pattern. */
function isDate(schema: Schema): boolean {
  return schema.format === "date-time" || (accepts(schema, "2004-01-09T00:00:00.000Z") && !accepts(schema, "x"));
}

/** A decimal is a string, so that no digit is lost: its pattern takes numbers and nothing else. */
function isDecimal(schema: Schema): boolean {
  return accepts(schema, "1.5") && accepts(schema, "10") && !["", "a", "A", "-", "1a"].some((text) => accepts(schema, text));
}

function accepts({ pattern }: Schema, text: string): boolean {
  if (!pattern) return false;
  try {
    return new RegExp(pattern, "u").test(text);
  } catch {
    return false;
  }
}
