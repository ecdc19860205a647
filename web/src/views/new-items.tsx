// Who has something new: owners that get items while the page is open.

import { GoneError, liveOwners, type LiveState } from "@pagebucket/client";
import { useEffect, useState } from "preact/hooks";
import { addressOf } from "../address";
import type { Outline } from "../api/catalog";
import { keyOf, withTotals, type Baseline, type OwnerNews, type OwnerTotal } from "../api/news";
import { ownersAfter, ownersPath, type Owner, type Totals } from "../api/read";
import { service, signInTurn } from "../api/service";
import { capitalised, count, number, plural, singular } from "../format";
import { useAttention } from "../parts/attention";
import { CurlRow, curlOf } from "../parts/curl";
import { Failure } from "../parts/problem";
import { plain, Text } from "../parts/text";
import { Time, ZoneName } from "../parts/zone";

/** The totals of more owners are not read to begin with. */
const MOST_LISTED = 1000;
const LISTED_AT_ONCE = 100;

/** Each history has a stream, and a browser has few connections to a service. */
const MOST_HISTORIES = 3;

/** More are not shown. */
const MOST_SHOWN = 200;

/** What has come so far. It is kept while other views are shown, and goes on with the next item. */
interface Following {
  news: OwnerNews[];
  /** The totals of the beginning, and when they were read. */
  begun?: { baseline: Baseline; at: string };
  /** Where the stream of a history goes on. */
  positions: Map<string, string>;
  /** The paths of the lists that were read. */
  lists: string[];
}

const followings = new Map<string, Following>();

function followingOf(owners: string): Following {
  // Another token may read others.
  const key = `${signInTurn()} ${owners}`;
  if (!followings.has(key)) followings.set(key, { news: [], positions: new Map(), lists: [] });
  return followings.get(key)!;
}

type State = LiveState | "connecting";

const WORDS: Record<State, string> = { connecting: "connecting", stream: "live", polling: "live", waiting: "not connected, trying again" };

export function NewItems({ histories }: { histories: Outline[] }) {
  const { owners } = histories[0]!;
  const followed = histories.slice(0, MOST_HISTORIES);
  const following = followingOf(owners);
  const { isSeen, isOnline } = useAttention();
  const [, draw] = useState({});
  const [state, setState] = useState<State>("connecting");
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    if (!isSeen || !isOnline) return;
    const controller = new AbortController();
    const { signal } = controller;
    let begin: Promise<void> | undefined;
    // The position comes first: what changes after it is told, so nothing is missed between the two.
    const listed = () => (begin ??= following.begun ? Promise.resolve() : readTotals(histories, following, signal));
    const onState = (state: LiveState) => !signal.aborted && setState(state);
    setError(undefined);
    setState("connecting");
    for (const { items } of followed)
      follow(histories, items, following, listed, { signal, onState }, () => !signal.aborted && draw({})).catch((error) => !signal.aborted && setError(error));
    return () => controller.abort();
  }, [owners, isSeen, isOnline]);
  const { news, begun, lists } = following;
  const live = followed.map(({ items }) => `# This one goes on until it is stopped:\n# ${curlOf(`/v1/${items}/live`)}`);
  return (
    <>
      {error !== undefined && <Failure error={error} />}
      {!begun && error === undefined && <p class="quiet loading">…</p>}
      {begun && (
        <section class="card wide" aria-label={`${owners} with something new`}>
          <p>
            {capitalised(owners)} that have got something since <Time of={begun.at} /> <ZoneName />, the last ones first. The list goes on while
            this page is open, also while you look at its other views.{" "}
            <span class={`live ${isOnline ? state : "waiting"}`} data-live={state}>
              <span class="dot" aria-hidden="true" /> {WORDS[isOnline ? state : "waiting"]}
            </span>
          </p>
          {followed.length < histories.length && <p class="quiet">Only of {followed.map(({ items }) => plural(items)).join(", ")}.</p>}
          {!begun.baseline.isWhole && (
            <p class="quiet">
              It knows how many items the first {number(MOST_LISTED)} {owners} had. Of others it says how many are new at least.
            </p>
          )}
          <p class="only-read" role="status">
            {news.length > 0 && `${count(news.length, owners)} with something new`}
          </p>
          {news.length > 0 ? <NewsTable outline={histories[0]!} news={news} /> : <p class="empty">None of the {owners} has got anything yet.</p>}
          {news.length >= MOST_SHOWN && <p class="quiet">More than the last {number(MOST_SHOWN)} are not shown.</p>}
        </section>
      )}
      <CurlRow commands={[...live, ...lists.map((path) => curlOf(path))]} />
    </>
  );
}

function NewsTable({ outline: { owners, ownerField }, news }: { outline: Outline; news: readonly OwnerNews[] }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={`Who has something new: ${owners}`}>
      <table>
        <thead>
          <tr>
            <th>{plain(ownerField)}</th>
            <th class="right">new</th>
            <th class="right">in all</th>
            <th>
              last seen <ZoneName />
            </th>
          </tr>
        </thead>
        <tbody>
          {news.map(({ id, items, fresh, isLeast, totalItems, at }) => (
            <tr key={`${items}/${id}`}>
              <th scope="row">
                <a href={addressOf([owners, id])}>
                  <Text of={id} />
                </a>
              </th>
              <td class="right">
                <a href={addressOf([owners, id, items])} aria-label={`${count(fresh, items)} new of ${singular(owners)} ${plain(id)}`}>
                  {isLeast && "at least "}
                  {count(fresh, items)}
                </a>
              </td>
              <td class="right">{number(totalItems)}</td>
              <td>
                <Time of={at} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Tells of one history until the signal ends it. */
async function follow(
  histories: Outline[],
  items: string,
  following: Following,
  listed: () => Promise<void>,
  options: { signal: AbortSignal; onState: (state: LiveState) => void },
  draw: () => void,
): Promise<void> {
  const { ownerField } = histories[0]!;
  for (;;) {
    const position = following.positions.get(items);
    try {
      for await (const { owners, position: next } of liveOwners<Record<string, string | number>>(service, items, { position }, options)) {
        await listed();
        tell(following, owners.map(({ owner, totalItems }) => ({ id: String(owner[ownerField]), items, totalItems })));
        if (next !== undefined) following.positions.set(items, next);
        draw();
      }
    } catch (error) {
      // Its place has aged while it was not followed. The lists say what has come meanwhile.
      if (!(error instanceof GoneError) || position === undefined) throw error;
      following.positions.delete(items);
      await readTotals(histories, following, options.signal);
    }
  }
}

function tell(following: Following, totals: OwnerTotal[]): void {
  if (following.begun)
    following.news = withTotals(following.news, following.begun.baseline, totals, now()).slice(0, MOST_SHOWN);
}

/** Reads the totals of the first owners: the first time they are the beginning, and later they say what is new. */
async function readTotals(histories: Outline[], following: Following, signal: AbortSignal): Promise<void> {
  const { owners, ownerField } = histories[0]!;
  const totals: OwnerTotal[] = [];
  const lists: string[] = [];
  let after: string | undefined = "";
  for (let read = 0; after !== undefined && read < MOST_LISTED; read += LISTED_AT_ONCE) {
    lists.push(ownersPath(owners, after, LISTED_AT_ONCE));
    const { items, links } = await ownersAfter(owners, after, LISTED_AT_ONCE, signal);
    for (const owner of items) totals.push(...totalsOf(owner, String(owner[ownerField]), histories));
    after = links.next ? (new URLSearchParams(links.next.split("?")[1]).get("after") ?? undefined) : undefined;
  }
  if (following.begun) return tell(following, totals);
  following.lists = lists;
  const baseline = { totals: new Map(totals.map((one) => [keyOf(one), one.totalItems])), isWhole: after === undefined };
  following.begun = { baseline, at: now() };
}

/** By the clock of this machine, to the second. */
function now(): string {
  return new Date(Math.floor(Date.now() / 1000) * 1000).toISOString();
}

function totalsOf(owner: Owner<Totals>, id: string, histories: Outline[]): OwnerTotal[] {
  return histories.flatMap(({ items }) => {
    const totals = owner[items] as Totals | undefined;
    return totals ? [{ id, items, totalItems: totals.totalItems }] : [];
  });
}
