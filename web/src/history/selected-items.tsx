// A selection by time and values. It reads on until there is a screenful, and says how far it is.

import { useMemo, useRef, useState } from "preact/hooks";
import { historyOf } from "../api/read";
import { count, plural } from "../format";
import { Failure } from "../parts/problem";
import { Held, useHeld } from "./held";
import { useKeys } from "./pager";
import { addressOfHistory, isSelected, pathOf, selectionQuery } from "./parameters";
import { beginOf, useSearch } from "./search";
import type { TabProps } from "./tab";
import { ItemTable } from "./table";
import { Toolbar, type ReaderProps } from "./toolbar";
import { arrivedInSearch, isAtNewest, numbersOf, progressOf, progressWords, searchSteps, type Cursor, type Steps } from "./view-state";

/** Requests of a search that begins again by itself. */
const SHORT = 3;

export function SelectedItems(props: TabProps & ReaderProps) {
  const { definition, owner, parameters, growth, total } = props;
  const { order, after, before } = parameters;
  const usualRows = Math.min(Math.max(definition.pageSize, 50), 100);
  const rows = parameters.rows ?? usualRows;
  const history = useMemo(() => historyOf(definition, owner), [definition, owner]);
  const [turn, setTurn] = useState(0);
  const key = `${pathOf(history.path, selectionQuery(parameters))} ${after} ${before} ${rows} ${turn}`;
  const search = useSearch(key, history, parameters, rows);
  // When it is asked for, all items up to this total are found, or are not chosen.
  const begun = useRef({ key, total });
  if (begun.current.key !== key) begun.current = { key, total };
  const found = search.found;
  const stored = found?.items ?? [];
  const begin = beginOf(parameters);
  const growthHere =
    search.isCurrent && isAtNewest(begin, found)
      ? arrivedInSearch(growth.arrived, stored, begun.current.total, (item) => isSelected(item, parameters, definition))
      : { arrived: [], missed: false };
  // Those between are looked for again. A search of many requests begins again only when the reader says so.
  const isLong = (found?.paths.length ?? 0) > SHORT;
  const hasMissed = growthHere.missed && !search.isRunning;
  growthHere.missed = hasMissed && !isLong;
  const onTooMany = () => setTurn(turn + 1);
  const { shown, hidden, show } = useHeld({ ...growthHere, order, name: definition.items, key, onTooMany });
  const items = order === "asc" ? [...stored, ...shown] : [...shown.toReversed(), ...stored];
  const to = (cursor: Cursor | undefined) => {
    const { after: _, before: __, page: ___, mark: ____, ...kept } = parameters;
    return cursor && addressOfHistory(definition, owner, { ...kept, ...cursor });
  };
  const leads = searchSteps(begin, search.isCurrent ? found : undefined);
  const steps: Steps<string> = { first: to(leads.first), previous: to(leads.previous), next: to(leads.next), last: to(leads.last) };
  useKeys(steps);
  const name = plural(definition.items);
  return (
    <>
      <Toolbar {...props} steps={steps} usualRows={usualRows} items={items} paths={search.isCurrent && found ? found.paths : []}>
        <span class="quiet" role="status">
          {search.isCurrent && found && !search.isRunning && (
            <>
              {items.length > 0 ? `${count(items.length, definition.items)}, ${numbersOf(items)}` : `no ${name} here`}
              {found.ahead ? "; more may follow" : `; ${progressWords(begin, found, total)}`}
            </>
          )}
        </span>
        {hasMissed && isLong && (
          <button type="button" class="small" onClick={onTooMany}>
            Many more have come: look again
          </button>
        )}
      </Toolbar>
      {search.isCurrent && found?.ahead !== undefined && found.items.length < rows && (
        <div class="note search row">
          <span>
            {count(items.length, definition.items)} found, {progressWords(begin, found, total)}
          </span>
          <progress max={1} value={progressOf(begin, found, total)} aria-label="How much is examined" />
          {search.isRunning ? (
            <button type="button" class="small" onClick={search.stop}>
              Stop
            </button>
          ) : (
            <button type="button" class="small" onClick={search.goOn}>
              Go on
            </button>
          )}
        </div>
      )}
      <Failure error={search.error} href={(page) => addressOfHistory(definition, owner, { page, order: "asc" })}>
        <button type="button" onClick={search.goOn}>
          Try again
        </button>
      </Failure>
      <Held hidden={hidden} order={order} show={show} />
      {items.length > 0 && (
        <ItemTable
          {...props}
          items={items}
          newSince={shown[0] ? shown[0].seq - 1 : Infinity}
          busy={!search.isCurrent}
          caption={`Chosen ${name}`}
        />
      )}
      {items.length === 0 && search.isCurrent && !search.isRunning && search.error === undefined && (
        <p class="empty">
          No {name} match{found?.ahead ? " in what was examined" : ""}.
        </p>
      )}
    </>
  );
}
