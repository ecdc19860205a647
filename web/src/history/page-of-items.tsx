// A page of a history; items that go on where others ended; or the newest items, and what is appended.

import { list, page as readPage } from "@pagebucket/client";
import { useMemo, useRef, useState } from "preact/hooks";
import { historyOf, type Item } from "../api/read";
import { may } from "../api/service";
import { number, plural } from "../format";
import { useLoaded } from "../parts/loaded";
import { Failure } from "../parts/problem";
import { Held, useHeld } from "./held";
import { PageChoice, useKeys } from "./pager";
import { addressOfHistory, type Change } from "./parameters";
import type { TabProps } from "./tab";
import { ItemTable } from "./table";
import { Toolbar, type ReaderProps } from "./toolbar";
import { arrivedOnPage, fillOf, numbersOf, pageView, type Asked, type Cursor, type PagePlace, type Steps } from "./view-state";

export function PageOfItems(props: TabProps & ReaderProps) {
  const { definition, owner, parameters, summary, growth, total } = props;
  const { pageSize, items: name } = definition;
  const { order, page: wanted, before, after: since, rows = pageSize } = parameters;
  const history = useMemo(() => historyOf(definition, owner), [definition, owner]);
  const isNewest = wanted === undefined && before === undefined && since === undefined;
  // What is appended does not lead away from what is read: the newest items are those at the time of their choice.
  const newestAt = useRef(total);
  const followed = useRef(false);
  if (isNewest && !followed.current) newestAt.current = total;
  followed.current = isNewest;
  const view = pageView({
    wanted,
    cursor: cursorWith(since, before),
    order,
    rows,
    pageSize,
    total,
    newestAt: newestAt.current,
    firstSeq: summary.firstSeq,
  });
  const { after, end, page, first, last, asked } = view;
  const path = asked && pathOfAsked(history.path, asked);
  const [turn, setTurn] = useState(0);
  // That a window is complete by now is no reason to ask for it again.
  const place = asked && ("page" in asked ? asked.page : `${asked.after} ${asked.limit}`);
  const key = `${owner} ${isNewest ? "newest" : ""} ${place} ${turn}`;
  const loaded = useLoaded(asked && key, async (signal): Promise<Item[]> => {
    const { items } = await ("page" in asked! ? readPage(history, asked.page, { signal }) : list(history, path!, { signal }));
    return items as Item[];
  });
  // Where these cannot be read, those before them are not shown in their place, nor said to be here.
  const stored = loaded.error === undefined ? loaded.data : undefined;
  const until = stored?.at(-1)?.seq ?? Math.max(summary.totalItems, after);
  const isCurrent = !asked || loaded.key === key;
  const growthHere = isCurrent && until < end ? arrivedOnPage(growth.arrived, until, end) : { arrived: [], missed: false };
  const readAgain = () => {
    if (isNewest) newestAt.current = total;
    setTurn(turn + 1);
  };
  const { shown, hidden, show } = useHeld({ ...growthHere, order, name, key, after: until, onTooMany: readAgain });
  // What came while the newest items were shown may be of later pages.
  const ascending = [...(stored ?? []), ...(isCurrent ? shown.filter(({ seq }) => seq <= end) : [])];
  const items = order === "asc" ? ascending : ascending.toReversed();
  const at = (change: Change) => addressOfHistory(definition, owner, { order, rows: parameters.rows, live: parameters.live, ...change });
  const to = (place: PagePlace | undefined) =>
    place === undefined ? undefined : at(place === "newest" ? {} : typeof place === "number" ? { page: place } : place);
  const steps: Steps<string> = {
    first: to(view.steps.first),
    previous: to(view.steps.previous),
    next: to(view.steps.next),
    last: to(view.steps.last),
  };
  useKeys(steps);
  const beyond = isNewest ? 0 : Math.max(total - Math.max(summary.totalItems, end), 0);
  // What is said of the page stands there from the beginning: what comes later moves what stands below.
  const lastSeq = ascending.at(-1)?.seq ?? (loaded.loading ? view.lastSeq : undefined);
  return (
    <>
      <Toolbar {...props} steps={steps} usualRows={pageSize} items={items} paths={path ? [path] : []}>
        {asked && (
          <PageChoice page={wanted} near={page} hint={isNewest ? "newest" : ""} {...{ order, first, last }} addressOf={(page) => at({ page })} />
        )}
        {!isNewest && wanted === undefined && ascending[0] && <span class="quiet">{numbersOf(ascending)}</span>}
        {lastSeq !== undefined && <State {...{ isNewest, lastSeq, rows }} isFinal={wanted === undefined && end <= total} />}
        {beyond > 0 && (
          <a class="tag fresh" href={at({})}>
            {number(beyond)} new
          </a>
        )}
      </Toolbar>
      <Failure error={loaded.error} href={(page) => at({ page, rows: undefined })}>
        <button type="button" onClick={loaded.again}>
          Try again
        </button>
      </Failure>
      <Held hidden={hidden} order={order} show={show} />
      {items.length > 0 && loaded.error === undefined && (
        <ItemTable
          {...props}
          items={items}
          newSince={until}
          busy={loaded.loading}
          caption={isNewest ? `The newest ${plural(name)}` : wanted === undefined ? `Some of the ${plural(name)}` : `Page ${number(page)} of the ${plural(name)}`}
        />
      )}
      {items.length === 0 && !loaded.loading && loaded.error === undefined && <Nothing {...props} />}
    </>
  );
}

function pathOfAsked(path: string, asked: Asked): string {
  if ("page" in asked) return `${path}/pages/${asked.page}`;
  const { after, limit, asOf } = asked;
  return `${path}?after=${after}&limit=${limit}${asOf === undefined ? "" : `&asOf=${asOf}`}`;
}

function cursorWith(after: number | undefined, before: number | undefined): Cursor {
  return { ...(after === undefined ? {} : { after }), ...(before === undefined ? {} : { before }) };
}

interface StateProps {
  isNewest: boolean;
  lastSeq: number;
  rows: number;
  /** Whether these items, of whatever pages, are all that there will be. */
  isFinal: boolean;
}

function State({ isNewest, lastSeq, rows, isFinal }: StateProps) {
  const { page, held } = fillOf(lastSeq, rows);
  const which = isNewest ? `page ${number(page)} ` : "";
  return isFinal || held === rows ? (
    <span class="tag final" title="A full page never changes: browsers keep it">
      {which}final
    </span>
  ) : (
    <span class="tag growing" title="What is appended comes here">
      {which}growing, {held} of {rows}
    </span>
  );
}

function Nothing({ definition, owner, parameters, total }: TabProps) {
  const name = plural(definition.items);
  if (total > 0)
    return (
      <p class="empty">
        No {name} are here. <a href={addressOfHistory(definition, owner, { ...parameters, page: undefined, after: undefined, before: undefined })}>The newest {name}</a>
      </p>
    );
  return (
    <div class="empty">
      <p>There are no {name} yet.</p>
      {may("append") && (
        <p>
          <a class="button" href={addressOfHistory(definition, owner, { ...parameters, tab: "append" })}>
            Append the first
          </a>
        </p>
      )}
    </div>
  );
}
