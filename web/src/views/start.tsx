// The first view: what this is, and which histories there are.

import { append } from "@pagebucket/client";
import { useState } from "preact/hooks";
import { addressOf, go } from "../address";
import { CATALOG, readDefinition, type Catalog, type Definition, type Outline } from "../api/catalog";
import { historyOf, ownersPath } from "../api/read";
import { BASE, docsNeedToken, may } from "../api/service";
import { count, singular } from "../format";
import { Commands, CurlRow, curlOf } from "../parts/curl";
import { useLoaded } from "../parts/loaded";
import { OwnerField } from "../parts/owner-field";
import { Failure, Problem } from "../parts/problem";
import { Text } from "../parts/text";
import { addressOfNew, OwnersTable, WHO_HAS_NEW } from "./owners";

const SHOWN = 8;

export function StartView({ catalog: { histories, version } }: { catalog: Catalog }) {
  const groups = Object.values(Object.groupBy(histories, ({ owners }) => owners)) as Outline[][];
  // The lists come one by one: what stands below them is not seen until it stands still.
  const [settled, setSettled] = useState(0);
  const isThere = settled >= groups.length || !may("list");
  const asked = [CATALOG, ...(may("list") ? groups.map(([first]) => ownersPath(first!.owners, "", SHOWN)) : [])];
  return (
    <>
      <div class="hero">
        <h1>Histories that only grow, page by page</h1>
        <p>
          This service keeps append-only histories in MongoDB, and serves them as pages: <em>a page is a bucket</em>. A full page never
          changes, so your browser keeps it.
        </p>
        <p class="quiet">
          {!docsNeedToken() && (
            <>
              <a href={`${BASE}/docs/`}>Try the API</a> · <a href={`${BASE}/openapi.json`}>OpenAPI document</a> ·{" "}
              <a href={`${BASE}/problems`}>Errors</a> ·{" "}
            </>
          )}
          version {version}
        </p>
      </div>
      <div class={isThere ? "" : "unseen-yet"}>
        {groups.map((group) => (
          <OwnersSection key={group[0]!.owners} histories={group} onSettled={() => setSettled((count) => count + 1)} />
        ))}
        <CurlRow commands={asked.map((path) => curlOf(path))} />
      </div>
    </>
  );
}

function OwnersSection({ histories, onSettled }: { histories: Outline[]; onSettled: () => void }) {
  const { owners, ownersTitle } = histories[0]!;
  const [isOpen, setIsOpen] = useState(false);
  return (
    <section class="card wide" aria-labelledby={`of-${owners}`}>
      <div class="head">
        <h2 id={`of-${owners}`}>
          <a href={addressOf([owners])}>{ownersTitle}</a>
        </h2>
        <OwnerField histories={histories} />
      </div>
      {histories.map(({ items, title, about, pageSize }) => (
        <p key={items} class="definition">
          <strong>{title}</strong>{" "}
          <span class="quiet">
            <Text of={about} /> {count(pageSize, items)} on a page.
          </span>
        </p>
      ))}
      {may("list") && (
        <OwnersTable
          histories={histories}
          after=""
          limit={SHOWN}
          more={(after) => addressOf([owners], { after })}
          none={<Samples histories={histories} />}
          onSettled={onSettled}
        />
      )}
      {may("list") && (
        <p>
          <a href={addressOfNew(owners)}>{WHO_HAS_NEW}</a>
        </p>
      )}
      <details class="shell" onToggle={(event) => setIsOpen(event.currentTarget.open)}>
        <summary>In a shell</summary>
        {isOpen && histories.map((outline) => <FirstCommands key={outline.items} outline={outline} />)}
      </details>
    </section>
  );
}

function FirstCommands({ outline }: { outline: Outline }) {
  const { data, error } = useLoaded(outline.items, () => readDefinition(outline));
  if (!data) return <Failure error={error} />;
  return <Commands commands={firstOf(data)} label={`Append and read ${data.items}`} />;
}

/** Appends an example, and reads it. */
function firstOf(definition: Definition): string[] {
  const { path } = historyOf(definition, definition.ownerExample);
  return [curlOf(path, JSON.stringify(definition.examples[0] ?? {})), "", curlOf(path)];
}

function Samples({ histories }: { histories: Outline[] }) {
  return (
    <div class="empty">
      <p>Nothing is stored yet.</p>
      {may("append") && histories.map((outline) => <SampleButton key={outline.items} outline={outline} />)}
    </div>
  );
}

function SampleButton({ outline }: { outline: Outline }) {
  const [error, setError] = useState<unknown>();
  const [loading, setLoading] = useState(false);
  const { owners, items, ownerExample } = outline;
  const load = async () => {
    setLoading(true);
    try {
      // One key for all attempts: the sample is stored once.
      await append(historyOf(outline, ownerExample), await sampleOf(await readDefinition(outline)), { key: "explorer-sample" });
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
        {loading ? "Loading …" : `Load sample ${items} for ${singular(owners)} ${ownerExample}`}
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
