// The items of a history: a page at a time, or a selection by time and values.

import { list, page as readPage } from "@pagebucket/client";
import { useMemo, useRef, useState } from "preact/hooks";
import { addressOf, go } from "../address";
import { historyOf, type Item } from "../api/read";
import { may } from "../api/service";
import { count, number } from "../format";
import { Curl, curlOf } from "../parts/curl";
import { useLoaded } from "../parts/loaded";
import { Failure } from "../parts/problem";
import type { TabProps } from "../views/history";
import { Download } from "./download";
import { useHeld } from "./held";
import { PageChoice, StepButtons, useKeys, type Steps } from "./pager";
import { addressOfHistory, isSelected, isSelection, pathOf, selectionQuery, type Parameters } from "./parameters";
import { Selection } from "./selection";
import { ItemTable } from "./table";

export function ItemsTab(props: TabProps) {
  return (
    <>
      <Selection {...props} />
      {isSelection(props.parameters) ? <SelectedItems {...props} /> : <PageOfItems {...props} />}
    </>
  );
}

/** One page. Without a number it is the last one, and what is appended. */
function PageOfItems(props: TabProps) {
  const { definition, owner, parameters, summary, growth, total } = props;
  const { pageSize, items: name } = definition;
  const { order, page: wanted } = parameters;
  const history = useMemo(() => historyOf(definition, owner), [definition, owner]);
  const lastPage = Math.max(Math.ceil(total / pageSize), 1);
  // What is appended does not lead away from the page that is read: the newest page is that at the time of its choice.
  const newest = useRef(lastPage);
  const followed = useRef(false);
  if (wanted === undefined && !followed.current) newest.current = lastPage;
  followed.current = wanted === undefined;
  const page = wanted ?? newest.current;
  const isEmpty = total === 0 && wanted === undefined;
  const [turn, setTurn] = useState(0);
  const key = `${owner} ${page} ${turn}`;
  const loaded = useLoaded(isEmpty ? undefined : key, (signal) => readPage(history, page, { signal }));
  const stored = loaded.data?.items as Item[] | undefined;
  const until = stored?.at(-1)?.seq ?? summary.totalItems;
  const isCurrent = isEmpty || loaded.key === key;
  const end = wanted === undefined ? Infinity : page * pageSize;
  const isFollowed = isCurrent && page >= newest.current && until < end;
  const arrived = isFollowed ? growth.arrived.filter(({ seq }) => seq > until && seq <= end) : [];
  const missed = isFollowed && (growth.arrived[0]?.seq ?? 0) > until + 1;
  const readAgain = () => {
    if (wanted === undefined) newest.current = lastPage;
    setTurn(turn + 1);
  };
  const { shown, hidden, show } = useHeld({ arrived, order, name, key, after: until, missed, onTooMany: readAgain });
  // What came while the newest page was shown may be of later ones.
  const ascending = [...(stored ?? []), ...(isCurrent ? shown.filter(({ seq }) => seq <= end) : [])];
  const items = order === "asc" ? ascending : ascending.toReversed();
  const shownPage = loaded.data?.page ?? page;
  const lastShown = wanted === undefined ? Math.max(shownPage, Math.ceil((ascending.at(-1)?.seq ?? 0) / pageSize)) : shownPage;
  const onLast = ascending.length - (lastShown - shownPage) * pageSize;
  const at = (parameters: Partial<Parameters>) =>
    addressOfHistory(definition, owner, { order, live: props.parameters.live, ...parameters });
  const first = Math.min(summary.firstPage, lastPage);
  const newestStep = wanted === undefined ? undefined : at({});
  const steps: Steps = stepsOf(order, {
    oldest: page > first ? at({ page: first }) : undefined,
    older: page > first ? at({ page: Math.min(page - 1, lastPage) }) : undefined,
    newer: page < lastPage ? at({ page: page + 1 }) : undefined,
    newest: newestStep,
  });
  useKeys(steps);
  const beyond = wanted === undefined ? 0 : Math.max(total - Math.max(summary.totalItems, page * pageSize), 0);
  return (
    <>
      <Toolbar {...props} steps={steps} items={items} paths={isEmpty ? [] : [`${history.path}/pages/${page}`]}>
        {!isEmpty && <PageChoice page={wanted ?? lastPage} first={first} last={lastPage} addressOf={(page) => at({ page })} />}
        {items.length > 0 && (
          <State
            full={onLast === pageSize}
            pages={lastShown === shownPage ? "" : `pages ${number(shownPage)} to ${number(lastShown)}, `}
            held={onLast}
            size={pageSize}
          />
        )}
        {beyond > 0 && (
          <a class="tag fresh" href={at({})}>
            {number(beyond)} new
          </a>
        )}
      </Toolbar>
      <Failure error={loaded.error} href={(page) => at({ page })}>
        <button type="button" onClick={loaded.again}>
          Try again
        </button>
      </Failure>
      <Held hidden={hidden} order={order} show={show} />
      {items.length > 0 && loaded.error === undefined && (
        <ItemTable
          definition={definition}
          owner={owner}
          items={items}
          newSince={until}
          busy={loaded.loading}
          caption={`Page ${number(shownPage)} of the ${name}`}
        />
      )}
      {items.length === 0 && !loaded.loading && loaded.error === undefined && <Nothing {...props} />}
    </>
  );
}

/** A selection by time and values: a window at a time. */
function SelectedItems(props: TabProps) {
  const { definition, owner, parameters, growth, total } = props;
  const { order, after, before } = parameters;
  const history = useMemo(() => historyOf(definition, owner), [definition, owner]);
  const path = pathOf(history.path, {
    ...selectionQuery(parameters),
    limit: String(Math.min(Math.max(definition.pageSize, 50), 100)),
    ...(after === undefined ? {} : { after: String(after) }),
    ...(before === undefined ? {} : { before: String(before) }),
  });
  const [turn, setTurn] = useState(0);
  const key = `${path} ${turn}`;
  const loaded = useLoaded(key, (signal) => list(history, path, { signal }));
  // When it is read, all items up to this total are in it, or are not chosen.
  const begun = useRef({ key, total });
  if (begun.current.key !== key) begun.current = { key, total };
  const stored = (loaded.data?.items ?? []) as Item[];
  const links = loaded.data?.links;
  // What is appended belongs to the newest end of the order.
  const isAtEnd = loaded.key === key && (order === "desc" ? links?.prev : links?.next) === undefined;
  // Earlier ones are of this window or of others.
  const isNew = ({ seq }: Item) => seq > begun.current.total && !stored.some((item) => item.seq === seq);
  const arrived = isAtEnd ? growth.arrived.filter((item) => isNew(item) && isSelected(item, parameters, definition)) : [];
  const missed = isAtEnd && (growth.arrived[0]?.seq ?? 0) > begun.current.total + 1;
  const onTooMany = () => setTurn(turn + 1);
  const { shown, hidden, show } = useHeld({ arrived, order, name: definition.items, key, missed, onTooMany });
  const items = order === "asc" ? [...stored, ...shown] : [...shown.toReversed(), ...stored];
  const at = (link: string | undefined) => {
    if (link === undefined) return undefined;
    const cursor = new URL(link, location.href).searchParams;
    const [after, before] = ["after", "before"].map((name) => (cursor.has(name) ? Number(cursor.get(name)) : undefined));
    const { after: _, before: __, page: ___, ...kept } = parameters;
    return addressOfHistory(definition, owner, { ...kept, ...(after ? { after } : {}), ...(before ? { before } : {}) });
  };
  const isFirst = after === undefined && before === undefined;
  const steps: Steps = {
    first: isFirst ? undefined : at(links?.first),
    previous: isFirst ? undefined : at(links?.prev),
    next: at(links?.next),
    last: links?.next ? at(links.last) : undefined,
  };
  useKeys(steps);
  const seqs = items.map(({ seq }) => seq);
  const [least, most] = [Math.min(...seqs), Math.max(...seqs)];
  return (
    <>
      <Toolbar {...props} steps={steps} items={items} paths={[path]}>
        {loaded.data && (
          <span class="quiet">
            {items.length > 0
              ? `${count(items.length, definition.items)}, numbers ${number(least)} to ${number(most)}`
              : `no ${definition.items} here`}
            {links?.next ? "; more may follow" : "; these are all in this direction"}
          </span>
        )}
      </Toolbar>
      <Failure error={loaded.error} href={(page) => addressOfHistory(definition, owner, { page, order: "asc" })} />
      <Held hidden={hidden} order={order} show={show} />
      {items.length > 0 && loaded.error === undefined && (
        <ItemTable
          definition={definition}
          owner={owner}
          items={items}
          newSince={shown[0] ? shown[0].seq - 1 : Infinity}
          busy={loaded.loading}
          caption={`Chosen ${definition.items}`}
        />
      )}
      {items.length === 0 && loaded.data && (
        <p class="empty">
          No {definition.items} match in the pages that were examined
          {links?.next && (
            <>
              ; <a href={at(links.next)!}>look further</a>
            </>
          )}
          .
        </p>
      )}
    </>
  );
}

/** Shows the items that wait. */
function Held({ hidden, order, show }: { hidden: number; order: "asc" | "desc"; show: () => void }) {
  if (hidden === 0) return null;
  return (
    <button type="button" class="pill" onClick={show}>
      {hidden} new: show {order === "asc" ? "below" : "above"}
    </button>
  );
}

interface ToolbarProps extends TabProps {
  steps: Steps;
  items: Item[];
  /** What the tab has asked for. */
  paths: string[];
  children: preact.ComponentChildren;
}

function Toolbar({ definition, owner, parameters, steps, items, paths, asked, children }: ToolbarProps) {
  const { order } = parameters;
  const turned = (order: "asc" | "desc") => {
    const { after: _, before: __, ...kept } = parameters;
    return addressOfHistory(definition, owner, { ...kept, order });
  };
  const words =
    order === "asc"
      ? { first: "oldest", previous: "older", next: "newer", last: "newest" }
      : { first: "newest", previous: "newer", next: "older", last: "oldest" };
  return (
    <div class="toolbar row">
      <StepButtons steps={steps} words={words} />
      {children}
      <span class="row end">
        <select aria-label="Order" value={order} onChange={(event) => go(turned(event.currentTarget.value as "asc" | "desc"))}>
          <option value="desc">newest first</option>
          <option value="asc">oldest first</option>
        </select>
        <Jump definition={definition} owner={owner} />
        <Download definition={definition} owner={owner} parameters={parameters} items={items} />
        <Curl commands={[...paths.map((path) => curlOf(path)), ...asked]} />
      </span>
    </div>
  );
}

/** To one item, by its number. */
function Jump({ definition: { owners, items }, owner }: Pick<TabProps, "definition" | "owner">) {
  const submit = (event: Event) => {
    event.preventDefault();
    const seq = new FormData(event.currentTarget as HTMLFormElement).get("seq");
    if (seq) go(addressOf([owners, owner, items, String(seq)]));
  };
  return (
    <form onSubmit={submit} class="jump">
      <input name="seq" type="number" min={1} class="short" aria-label="Open the item with this number" placeholder="seq" />
    </form>
  );
}

function State({ full, pages, held, size }: { full: boolean; pages: string; held: number; size: number }) {
  return full ? (
    <span class="tag final" title="A full page never changes: browsers keep it">
      final
    </span>
  ) : (
    <span class="tag growing" title="What is appended comes here">
      {pages}growing, {held} of {size}
    </span>
  );
}

function Nothing({ definition, owner, parameters }: TabProps) {
  return (
    <div class="empty">
      <p>There are no {definition.items} yet.</p>
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

function stepsOf(order: "asc" | "desc", to: Record<"oldest" | "older" | "newer" | "newest", string | undefined>): Steps {
  return order === "asc"
    ? { first: to.oldest, previous: to.older, next: to.newer, last: to.newest }
    : { first: to.newest, previous: to.newer, next: to.older, last: to.oldest };
}
