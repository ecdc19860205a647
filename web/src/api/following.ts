// Which owners get items while the page is open, from the stream of owners and from their lists.

import { GoneError, liveOwners, type LiveState } from "@pagebucket/client";
import type { Outline } from "./catalog";
import { keyOf, withTotals, type Baseline, type OwnerNews, type OwnerTotal } from "./news";
import { ownersAfter, ownersPath, type Owner, type Totals } from "./read";
import { service, signInTurn } from "./service";

/** The totals of more owners are not read to begin with. */
export const MOST_LISTED = 1000;
const LISTED_AT_ONCE = 100;

/** News of more owners are not kept. */
export const MOST_KEPT = 200;

interface Options {
  signal: AbortSignal;
  onState: (state: LiveState) => void;
}

/** What has come so far. It is kept while other views are shown, and goes on with the next item. */
export interface Following {
  news: OwnerNews[];
  /** The totals of the beginning, and when they were read. */
  begun?: { baseline: Baseline; at: string };
  /** Where the stream of a history goes on. */
  positions: Map<string, string>;
  /** The paths of the lists that were read. */
  lists: string[];
}

const followings = new Map<string, Following>();

export function followingOf(owners: string): Following {
  // Another token may read others.
  const key = `${signInTurn()} ${owners}`;
  if (!followings.has(key)) followings.set(key, { news: [], positions: new Map(), lists: [] });
  return followings.get(key)!;
}

/** Tells of these histories of one collection of owners until the signal ends it. `draw` is called when something has come. */
export async function follow(
  histories: Outline[],
  followed: Outline[],
  following: Following,
  options: Options,
  draw: () => void,
): Promise<void> {
  const { ownerField } = histories[0]!;
  const { signal } = options;
  let begin: Promise<void> | undefined;
  // The position comes first: what changes after it is told, so nothing is missed between the two.
  const listed = () => (begin ??= following.begun ? Promise.resolve() : readTotals(histories, following, signal));
  const followOne = async ({ items }: Outline) => {
    for (let isLost = false; ; ) {
      const position = following.positions.get(items);
      try {
        for await (const { owners, position: next } of liveOwners<Record<string, string | number>>(service, items, { position }, options)) {
          await listed();
          if (isLost) await readTotals(histories, following, signal);
          isLost = false;
          tell(following, owners.map(({ owner, totalItems }) => ({ id: String(owner[ownerField]), items, totalItems })));
          if (next !== undefined) following.positions.set(items, next);
          draw();
        }
      } catch (error) {
        // Its place has aged while it was not followed. The lists say what has come meanwhile.
        if (!(error instanceof GoneError) || position === undefined) throw error;
        following.positions.delete(items);
        isLost = true;
      }
    }
  };
  await Promise.all(followed.map(followOne));
}

function tell(following: Following, totals: OwnerTotal[]): void {
  if (following.begun)
    following.news = withTotals(following.news, following.begun.baseline, totals, now()).slice(0, MOST_KEPT);
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
