// All owners of a collection, or those whose ids begin with a text, with the totals of their histories.

import { GoneError } from "@pagebucket/client";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import { addressOf, go } from "../address";
import type { Outline } from "../api/catalog";
import { ownersBeginning, spansOf } from "../api/owner-search";
import { ownerPath, ownersAfter, ownersPath, summaries, type Owner, type Summary, type Totals } from "../api/read";
import { may } from "../api/service";
import { count, number, singular } from "../format";
import { CurlRow, curlOf } from "../parts/curl";
import { useLoaded } from "../parts/loaded";
import { Failure } from "../parts/problem";
import { plain, Text } from "../parts/text";
import { Time, ZoneName } from "../parts/zone";
import { OwnerField } from "../parts/owner-field";
import { NewItems } from "./new-items";

const SHOWN = 50;

export function OwnersView({ histories, query }: { histories: Outline[]; query: URLSearchParams }) {
  const { owners, ownersTitle } = histories[0]!;
  const isNew = query.get("_new") === "on";
  return (
    <>
      <div class="head">
        <h1>{ownersTitle}</h1>
        <OwnerField histories={histories} />
      </div>
      {may("list") && (
        <nav class="tabs" aria-label={`Views of ${owners}`}>
          <a href={addressOf([owners])} aria-current={isNew ? undefined : "page"}>
            All {owners}
          </a>
          <a href={addressOfNew(owners)} aria-current={isNew ? "page" : undefined}>
            {WHO_HAS_NEW}
          </a>
        </nav>
      )}
      {isNew ? <NewItems histories={histories} /> : <AllOwners histories={histories} query={query} />}
    </>
  );
}

export const WHO_HAS_NEW = "Who has something new";

/** The address of the owners that get something. */
export function addressOfNew(owners: string): string {
  return addressOf([owners], { _new: "on" });
}

function AllOwners({ histories, query }: { histories: Outline[]; query: URLSearchParams }) {
  const { owners, ownerField } = histories[0]!;
  const after = query.get("after") ?? "";
  const beginning = query.get("_id") ?? "";
  return (
    <>
      <Find outline={histories[0]!} beginning={beginning} />
      <p class="quiet">
        No list has {owners} that were erased. Type a whole {plain(ownerField)} to see whether it was, and when.
      </p>
      {beginning ? (
        <FoundOwners histories={histories} beginning={beginning} />
      ) : (
        <OwnersTable histories={histories} after={after} limit={SHOWN} more={(after) => addressOf([owners], { after })} details />
      )}
    </>
  );
}

/** Finds owners by the beginning of their ids, as it is typed. */
function Find({ outline: { owners, ownerField }, beginning }: { outline: Outline; beginning: string }) {
  return (
    <form class="selection row" role="search" aria-label={`Find ${owners}`} onSubmit={(event) => event.preventDefault()}>
      <label>
        <span>{plain(ownerField)} begins with</span>
        <input
          name="_id"
          type="search"
          value={beginning}
          spellcheck={false}
          autoComplete="off"
          onInput={(event) => go(addressOf([owners], { _id: event.currentTarget.value.trim() }), { replace: true })}
        />
      </label>
    </form>
  );
}

function FoundOwners({ histories, beginning }: { histories: Outline[]; beginning: string }) {
  const [outline] = histories as [Outline];
  const { owners, ownerField } = outline;
  const loaded = useLoaded(`${owners} ${beginning}`, (signal) => find(histories, beginning, signal));
  if (loaded.error !== undefined) return <Failure error={loaded.error} />;
  if (!loaded.data) return <p class="quiet loading">…</p>;
  const { items, more, erased, asked } = loaded.data;
  return (
    <div aria-busy={loaded.loading}>
      {erased && (
        <p class="note" role="status">
          <Text of={beginning} /> was erased
          {erased.at !== undefined && (
            <>
              {" "}
              on <Time of={erased.at} /> <ZoneName />
            </>
          )}
          : nothing is kept of this {singular(owners)}.
        </p>
      )}
      {items.length > 0 ? (
        <Rows histories={histories} items={items} details />
      ) : (
        !erased && (
          <p class="empty" role="status">
            No {plain(ownerField)} begins with <Text of={beginning} />.
          </p>
        )
      )}
      {more && (
        <p class="quiet">
          These are the first {number(items.length)}. Type more of the {plain(ownerField)} to see others.
        </p>
      )}
      <Asked outline={outline} paths={asked} items={items} />
    </div>
  );
}

/** The requests of a table with details. */
function Asked({ outline: { owners, ownerField }, paths, items }: { outline: Outline; paths: string[]; items: Owner<Totals>[] }) {
  const ofOwners = may("read") ? items.map((owner) => ownerPath(owners, String(owner[ownerField]))) : [];
  return <CurlRow commands={[...paths, ...ofOwners].map((path) => curlOf(path))} />;
}

interface Found {
  /** The paths of the requests that have found them. */
  asked: string[];
  items: Owner<Totals>[];
  more: boolean;
  erased?: { at: string | undefined };
}

/** Lists leave out who is erased: whether this is one, only its own address says. */
async function find([outline]: Outline[], beginning: string, signal: AbortSignal): Promise<Found> {
  const { owners, ownerField } = outline!;
  const asked: string[] = [];
  const list = (after: string, limit: number) => {
    asked.push(ownersPath(owners, after, limit));
    return ownersAfter(owners, after, limit, signal);
  };
  const found = { asked, ...(await ownersBeginning(outline!, beginning, SHOWN, list)) };
  const isListed = found.items.some((owner) => String(owner[ownerField]) === beginning);
  if (isListed || spansOf(outline!.ownerSchema, beginning).length === 0) return found;
  asked.push(ownerPath(owners, beginning));
  try {
    await summaries(outline!, beginning, signal);
  } catch (error) {
    if (error instanceof GoneError) return { ...found, erased: { at: error.erasedAt } };
    // The beginning of an id need not be one.
  }
  return found;
}

interface TableProps {
  histories: Outline[];
  after: string;
  limit: number;
  /** The address of the owners after an id. */
  more: (after: string) => string;
  /** What stands here if there are none. */
  none?: ComponentChildren;
  details?: boolean;
  /** Called when the list has come, or has not. */
  onSettled?: () => void;
}

export function OwnersTable({ histories, after, limit, more, none, details = false, onSettled }: TableProps) {
  const { owners } = histories[0]!;
  const loaded = useLoaded(`${owners} ${after}`, (signal) => ownersAfter(owners, after, limit, signal));
  useLayoutEffect(() => {
    if (!loaded.loading) onSettled?.();
  }, [loaded.loading]);
  if (loaded.error !== undefined) return <Failure error={loaded.error} />;
  if (!loaded.data) return <p class="quiet loading">…</p>;
  const { items, links } = loaded.data;
  if (items.length === 0) return <>{none ?? <p class="empty">There are no {after ? "more " : ""}{owners}.</p>}</>;
  const next = links.next && new URLSearchParams(links.next.split("?")[1]).get("after");
  return (
    <>
      <Rows histories={histories} items={items} details={details} />
      {next && (
        <p>
          <a class="button small" href={more(next)}>
            More {owners}
          </a>
        </p>
      )}
      {details && <Asked outline={histories[0]!} paths={[ownersPath(owners, after, limit)]} items={items} />}
    </>
  );
}

function Rows({ histories, items, details }: { histories: Outline[]; items: Owner<Totals>[]; details: boolean }) {
  const { owners, ownerField, ownersTitle } = histories[0]!;
  const ids = items.map((owner) => String(owner[ownerField]));
  const known = useSummaries(histories[0]!, details && may("read") ? ids : []);
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={`${ownersTitle} and their totals`}>
      <table>
        <thead>
          <tr>
            <th>{plain(ownerField)}</th>
            {histories.map(({ items }) => (
              <th class="right" key={items}>
                {items}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {items.map((owner, index) => {
            const id = ids[index]!;
            return (
              <tr key={id}>
                <th scope="row">
                  <a href={addressOf([owners, id])}>
                    <Text of={id} />
                  </a>
                </th>
                {histories.map((outline) => (
                  <td class="right" key={outline.items}>
                    <TotalsOf
                      outline={outline}
                      owner={id}
                      totals={owner[outline.items] as Totals | undefined}
                      summary={known.get(id)?.[outline.items] as Summary | undefined}
                    />
                  </td>
                ))}
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

interface TotalsProps {
  outline: Outline;
  owner: string;
  totals: Totals | undefined;
  /** More of it, when it has come. */
  summary: Summary | undefined;
}

function TotalsOf({ outline: { owners, items, date }, owner, totals, summary }: TotalsProps) {
  if (!totals) return <>–</>;
  return (
    <>
      <a href={addressOf([owners, owner, items])} aria-label={`${count(totals.totalItems, items)} of ${plain(owner)}`}>
        {number(totals.totalItems)}
      </a>
      <span class="quiet"> on {count(totals.totalPages, "pages")}</span>
      {summary?.last && <div class="quiet">last of <Time of={String(summary.last[date])} /></div>}
      {summary && summary.firstPage > 1 && (
        <div>
          <span class="tag warn">
            begins with number {number(summary.firstSeq)}
            {summary.first && <> of <Time of={String(summary.first[date])} /></>}: what was before is deleted
          </span>
        </div>
      )}
    </>
  );
}

/** How many summaries are read at once: a browser has few connections. */
const AT_ONCE = 3;

/** The summaries of these owners, as they come. They are an addition: if one cannot be read, no more are. */
function useSummaries(outline: Outline, ids: string[]): ReadonlyMap<string, Owner<Summary>> {
  const [known, setKnown] = useState<ReadonlyMap<string, Owner<Summary>>>(new Map());
  useEffect(() => {
    const controller = new AbortController();
    const left = ids.filter((id) => !known.has(id));
    const read = async () => {
      for (let id = left.shift(); id !== undefined; id = left.shift()) {
        const summary = await summaries(outline, id, controller.signal);
        const of = id;
        if (!controller.signal.aborted) setKnown((known) => new Map(known).set(of, summary));
      }
    };
    for (let begun = 0; begun < AT_ONCE; begun++) read().catch(() => left.splice(0));
    return () => controller.abort();
  }, [ids.join(" ")]);
  return known;
}
