// Items as a file: those that are shown, all, or a selection, which the browser reads window by window.

import { all } from "@pagebucket/client";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Definition } from "../api/catalog";
import { historyOf, type Item } from "../api/read";
import { BASE, service, signedIn } from "../api/service";
import { count, csvRow, fromInstant, number, plural, toInstant } from "../format";
import { Menu } from "../parts/menu";
import { Problem } from "../parts/problem";
import type { Parameters } from "./parameters";
import { searched, type Found } from "./search";
import { progressWords } from "./view-state";

interface Props {
  definition: Definition;
  owner: string;
  parameters: Parameters;
  items: Item[];
  /** The number of the history's items by now. */
  total: number;
}

/** More of a selection is not taken along: it is in the memory of the browser. */
const MOST = 100_000;

const TYPES = { csv: "text/csv", ndjson: "application/x-ndjson" };
type Format = keyof typeof TYPES;

export function Download({ definition, owner, parameters, items, total }: Props) {
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
  const unfiltered = Object.keys(parameters.filters).length > 0 ? ", unfiltered" : "";
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
            {(query ? "all of this span" : "all") + unfiltered}
          </a>
        </div>
      ))}
      {Object.keys(parameters.filters).length > 0 && <Selected {...{ definition, owner, parameters, total, formats }} />}
      {error !== undefined && <Problem error={error} />}
    </Menu>
  );
}

interface SelectedProps extends Omit<Props, "items"> {
  formats: Format[];
}

/** A selection by values: exports have no filters yet. */
function Selected({ definition, owner, parameters, total, formats }: SelectedProps) {
  const [found, setFound] = useState<Found>();
  const [state, setState] = useState<{ error?: unknown; words?: string }>({});
  const reading = useRef<AbortController>(undefined);
  useEffect(() => () => reading.current?.abort(), []);
  const { after: _, before: __, ...whole } = { ...parameters, order: "asc" as const };
  const take = async (format: Format) => {
    const controller = new AbortController();
    reading.current = controller;
    setState({});
    try {
      let last: Found | undefined;
      for await (const found of searched(historyOf(definition, owner), whole, MOST, controller.signal)) setFound((last = found));
      const items = last?.items ?? [];
      save([text(format, definition, owner, items)], format, `${definition.items}-${owner}-selected.${format}`);
      const more = last?.ahead ? `: more follow after number ${number(items.at(-1)!.seq)}. Choose a later span of time to have them, too` : "";
      setState({ words: `${count(items.length, definition.items)} saved${more}` });
    } catch (error) {
      setState(controller.signal.aborted ? { words: "stopped: nothing was saved" } : { error });
    }
    reading.current = undefined;
    setFound(undefined);
  };
  return (
    <>
      <div class="row">
        <strong>Selected</strong>
        {formats.map((format) => (
          <button key={format} type="button" class="small" disabled={reading.current !== undefined} onClick={() => take(format)}>
            all that is selected, {format.toUpperCase()}
          </button>
        ))}
        {reading.current && (
          <button type="button" class="small" onClick={() => reading.current?.abort()}>
            Stop
          </button>
        )}
      </div>
      <p class="quiet" role="status">
        {state.words ??
          (found
            ? `${count(found.items.length, definition.items)}, ${progressWords({ order: "asc" }, found, total)}`
            : `The browser reads it window by window, at most ${number(MOST)} ${plural(definition.items)}.`)}
      </p>
      {state.error !== undefined && <Problem error={state.error} />}
    </>
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
