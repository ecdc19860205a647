// Items as a file: those that are shown, or all.

import { all } from "@pagebucket/client";
import { useState } from "preact/hooks";
import type { Definition } from "../api/catalog";
import { historyOf, type Item } from "../api/read";
import { BASE, service, signedIn } from "../api/service";
import { csvRow, fromInstant, toInstant } from "../format";
import { Menu } from "../parts/menu";
import { Problem } from "../parts/problem";
import type { Parameters } from "./parameters";

interface Props {
  definition: Definition;
  owner: string;
  parameters: Parameters;
  items: Item[];
}

const TYPES = { csv: "text/csv", ndjson: "application/x-ndjson" };
type Format = keyof typeof TYPES;

export function Download({ definition, owner, parameters, items }: Props) {
  const [error, setError] = useState<unknown>();
  const { from, to } = parameters;
  const span = new URLSearchParams({ ...(from ? { from: fromInstant(from) } : {}), ...(to ? { to: toInstant(to) } : {}) });
  const query = span.size ? `?${span}` : "";
  const path = `${historyOf(definition, owner).path}/export`;
  const formats: Format[] = definition.csv ? ["csv", "ndjson"] : ["ndjson"];
  const nameOf = (format: Format) => `${definition.items}-${owner}.${format}`;
  const saveShown = (format: Format) => {
    const ascending = items.toSorted((one, other) => one.seq - other.seq);
    save([text(format, definition, owner, ascending)], format, nameOf(format));
  };
  // A link carries no token.
  const fetchAll = async (event: Event, format: Format) => {
    if (!signedIn()) return;
    event.preventDefault();
    setError(undefined);
    try {
      save(await exported(definition, owner, format, Object.fromEntries(span)), format, nameOf(format));
    } catch (error) {
      setError(error);
    }
  };
  return (
    <Menu name="Download">
      {formats.map((format) => (
        <div class="row" key={format}>
          <strong>{format.toUpperCase()}</strong>
          <button type="button" class="small" disabled={items.length === 0} onClick={() => saveShown(format)}>
            what is shown
          </button>
          <a
            class="button small"
            href={`${BASE}${path}.${format}${query}`}
            download={nameOf(format)}
            onClick={(event) => fetchAll(event, format)}
          >
            {query ? "all of this span" : "all"}
          </a>
        </div>
      ))}
      {Object.keys(parameters.filters).length > 0 && <p class="quiet">Exports know no filters: “all” has all values.</p>}
      {error !== undefined && <Problem error={error} />}
    </Menu>
  );
}

/** Rows as the service exports them. */
function text(format: Format, definition: Definition, owner: string, items: Item[]): string {
  const id = definition.ownerSchema.type === "integer" ? Number(owner) : owner;
  if (format === "ndjson") return items.map((item) => `${JSON.stringify({ [definition.ownerField]: id, ...item })}\n`).join("");
  const names = ["seq", ...definition.columns.map(({ name }) => name)];
  const rows = items.map((item) => csvRow([id, ...names.map((name) => item[name])]));
  return [csvRow([definition.ownerField, ...names]), ...rows, ""].join("\r\n");
}

async function exported(definition: Definition, owner: string, format: Format, span: Record<string, string>): Promise<BlobPart[]> {
  const parts: string[] = [];
  const history = historyOf(definition, owner);
  if (format === "csv") {
    const response = await service.fetch!(`${BASE}${history.path}/export.csv?${new URLSearchParams(span)}`, {
      headers: { Authorization: `Bearer ${service.token}` },
    });
    if (!response.ok) throw new Error(`HTTP status ${response.status}`);
    return [await response.text()];
  }
  for await (const row of all(history, span)) parts.push(`${JSON.stringify(row)}\n`);
  return parts;
}

function save(parts: BlobPart[], format: Format, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(parts, { type: TYPES[format] }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
