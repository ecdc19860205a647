// The first view: what this is, and which histories there are.

import { append } from "@pagebucket/client";
import { useState } from "preact/hooks";
import { addressOf, go } from "../address";
import { DOCUMENT, type Catalog, type Definition } from "../api/catalog";
import { historyOf, ownersPath } from "../api/read";
import { BASE, may } from "../api/service";
import { count } from "../format";
import { Commands, CurlRow, curlOf } from "../parts/curl";
import { OwnerField } from "../parts/owner-field";
import { Problem } from "../parts/problem";
import { Text } from "../parts/text";
import { OwnersTable } from "./owners";

const SHOWN = 8;

export function StartView({ catalog: { definitions, version } }: { catalog: Catalog }) {
  const groups = Object.values(Object.groupBy(definitions, ({ owners }) => owners)) as Definition[][];
  const asked = [DOCUMENT, ...(may("list") ? groups.map(([first]) => ownersPath(first!.owners, "", SHOWN)) : [])];
  return (
    <>
      <div class="hero">
        <h1>Histories that only grow, page by page</h1>
        <p>
          This service keeps append-only histories in MongoDB, and serves them as pages: <em>a page is a bucket</em>. A full page never
          changes, so your browser keeps it.
        </p>
        <p class="quiet">
          <a href={`${BASE}/docs/`}>Try the API</a> · <a href={`${BASE}/openapi.json`}>OpenAPI document</a> ·{" "}
          <a href={`${BASE}/problems`}>Errors</a> · version {version}
        </p>
      </div>
      {groups.map((group) => (
        <OwnersSection key={group[0]!.owners} definitions={group} />
      ))}
      <CurlRow commands={asked.map((path) => curlOf(path))} />
    </>
  );
}

function OwnersSection({ definitions }: { definitions: Definition[] }) {
  const { owners, ownersTitle } = definitions[0]!;
  return (
    <section class="card wide" aria-labelledby={`of-${owners}`}>
      <div class="head">
        <h2 id={`of-${owners}`}>
          <a href={addressOf([owners])}>{ownersTitle}</a>
        </h2>
        <OwnerField definitions={definitions} />
      </div>
      {definitions.map((definition) => (
        <p key={definition.items} class="definition">
          <strong>{definition.title}</strong>{" "}
          <span class="quiet">
            <Text of={definition.about} /> {count(definition.pageSize, definition.items)} on a page.
          </span>{" "}
          {definition.columns.map(({ name }) => (
            <code key={name}>
              <Text of={name} />
            </code>
          ))}
        </p>
      ))}
      {may("list") && (
        <OwnersTable
          definitions={definitions}
          after=""
          limit={SHOWN}
          more={(after) => addressOf([owners], { after })}
          none={<Samples definitions={definitions} />}
        />
      )}
      <details class="shell">
        <summary>In a shell</summary>
        {definitions.map((definition) => (
          <Commands key={definition.items} commands={firstOf(definition)} label={`Append and read ${definition.items}`} />
        ))}
      </details>
    </section>
  );
}

/** Appends an example, and reads it. */
function firstOf(definition: Definition): string[] {
  const { path } = historyOf(definition, definition.ownerExample);
  return [curlOf(path, JSON.stringify(definition.examples[0] ?? {})), "", curlOf(path)];
}

function Samples({ definitions }: { definitions: Definition[] }) {
  return (
    <div class="empty">
      <p>Nothing is stored yet.</p>
      {may("append") &&
        definitions
          .filter(({ examples }) => examples.length > 0)
          .map((definition) => <SampleButton key={definition.items} definition={definition} />)}
    </div>
  );
}

function SampleButton({ definition }: { definition: Definition }) {
  const [error, setError] = useState<unknown>();
  const [loading, setLoading] = useState(false);
  const { owners, items, ownerExample } = definition;
  const load = async () => {
    setLoading(true);
    try {
      // One key for all attempts: the sample is stored once.
      await append(historyOf(definition, ownerExample), await sampleOf(definition), { key: "explorer-sample" });
      go(addressOf([owners, ownerExample, items]));
    } catch (error) {
      setError(error);
    } finally {
      setLoading(false);
    }
  };
  return (
    <>
      <button type="button" class="main" disabled={loading} onClick={load}>
        {loading ? "Loading …" : `Load sample ${items}`}
      </button>
      {error !== undefined && <Problem error={error} />}
    </>
  );
}

/** The example trades, or the examples of a definition. */
async function sampleOf({ items, examples, columns }: Definition): Promise<unknown[]> {
  if (items !== "trades" || !["type", "ticker", "qty", "price"].every((name) => columns.some((column) => column.name === name)))
    return examples;
  const { trades } = await import("../sample");
  return trades;
}
