// Who has got items since a list of owners was read. These are functions of their arguments: `test/owners.test.ts` needs no browser.

/** The total of an owner's history, as a list or a stream of owners says it. */
export interface OwnerTotal {
  id: string;
  /** The name of the history. */
  items: string;
  totalItems: number;
}

/** An owner that has got items. */
export interface OwnerNews extends OwnerTotal {
  fresh: number;
  /** Whether there may be more new items: the total of before is not known. */
  isLeast: boolean;
  /** When the page was told of the last of them. */
  at: string;
}

/** The totals of before. */
export interface Baseline {
  totals: ReadonlyMap<string, number>;
  /** Whether it has all owners: others had nothing. */
  isWhole: boolean;
}

/** The key of a history in a baseline. */
export function keyOf({ items, id }: Pick<OwnerTotal, "items" | "id">): string {
  return `${items}/${id}`;
}

/** What is new with these totals: owners that got something last stand first. */
export function withTotals(news: readonly OwnerNews[], { totals, isWhole }: Baseline, told: readonly OwnerTotal[], at: string): OwnerNews[] {
  let all = [...news];
  for (const total of told) {
    const key = keyOf(total);
    const known = all.find((one) => keyOf(one) === key);
    const before = known ? known.totalItems : (totals.get(key) ?? (isWhole ? 0 : undefined));
    // A stream may say the same twice.
    if (before !== undefined && total.totalItems <= before) continue;
    const more = before === undefined ? 1 : total.totalItems - before;
    const changed = { ...total, fresh: (known?.fresh ?? 0) + more, isLeast: known?.isLeast ?? before === undefined, at };
    all = [changed, ...all.filter((one) => one !== known)];
  }
  return all;
}
