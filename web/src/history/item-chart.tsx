// A chart of the items of a history, or of a selection of it: from the end that is read first, as many as are asked for.

import { windows } from "@pagebucket/client";
import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { addressOf, go } from "../address";
import { historyOf, type AnyHistory, type Item } from "../api/read";
import { count, fromInstant, number, toInstant } from "../format";
import { LazyChart } from "../chart/lazy";
import { countsOf, unitFor, UNITS, valuesOf, type Unit } from "../chart/of-items";
import { Choice } from "../parts/choice";
import { Curl, curlOf } from "../parts/curl";
import { useLoaded } from "../parts/loaded";
import { Problem } from "../parts/problem";
import { plain } from "../parts/text";
import { useZone } from "../parts/zone";
import type { TabProps } from "./tab";
import { addressOfHistory, isSelection, pathOf, selectionQuery, type Parameters } from "./parameters";

const AMOUNTS = [100, 1000, 10_000];

interface Gathered {
  items: Item[];
  /** Whether there are more in this direction. */
  more: boolean;
}

const NOTHING: Gathered = { items: [], more: false };

interface Props extends TabProps {
  /** The number that is drawn. Without it, how many items there are. */
  measure: string | undefined;
  /** Chooses it. */
  children: ComponentChildren;
}

export function ItemChart({ measure, children, ...props }: Props) {
  const { definition, owner, parameters, asked } = props;
  const { order, page, filters, from, to, after, before } = parameters;
  const most = parameters.most ?? 1000;
  const zone = useZone();
  const history = useMemo(() => historyOf(definition, owner), [definition, owner]);
  const [progress, setProgress] = useState(0);
  const key = JSON.stringify([from, to, filters, order, page, after, before, most]);
  const loaded = useLoaded(key, (signal) => gather(history, parameters, definition.pageSize, most, signal, setProgress));
  const splits = definition.filters.map(({ name }) => name);
  const split = parameters.split && splits.includes(parameters.split) ? parameters.split : undefined;
  const at = (change: Partial<Parameters>) => addressOfHistory(definition, owner, { ...parameters, ...change });
  const isCurrent = loaded.key === key;
  const { items, more } = loaded.data ?? NOTHING;
  const unit = UNITS.find((unit) => unit === parameters.by) ?? unitFor(items, definition.date);
  const madeOf = madeOfWords(props, items, more);
  const chart = useMemo(() => {
    const source = {
      definition,
      items,
      zone,
      addressOfItem: (seq: number) => addressOf([definition.owners, owner, definition.items, seq]),
      addressOfSpan: (from: string, to: string) => addressOfHistory(definition, owner, { from, to, filters, order: "asc" }),
    };
    return measure === undefined ? countsOf(source, unit as Unit) : valuesOf(source, measure, split);
  }, [items, measure, split, unit, zone]);
  const choose = (change: Partial<Parameters>) => go(at(change), { replace: true });
  const path = pathOf(history.path, { limit: "100", ...selectionQuery(parameters), ...cursorOf(parameters, definition.pageSize) });
  return (
    <>
      <div class="toolbar row">
        {children}
        {measure === undefined ? (
          <Choice label="per" value={unit} options={UNITS.map((unit) => [unit, unit])} onValue={(by) => choose({ by })} />
        ) : (
          <Choice
            label="by"
            value={split ?? ""}
            options={[["", "nothing"], ...splits.map((name) => [name, plain(name)] as const)]}
            onValue={(split) => choose({ split })}
          />
        )}
        <Choice
          label="of at most"
          value={String(most)}
          options={AMOUNTS.map((amount) => [String(amount), number(amount)])}
          onValue={(most) => choose({ most: Number(most) })}
        />
        <span class="row end">
          <Curl commands={[curlOf(path), ...asked]} />
        </span>
      </div>
      {loaded.error !== undefined && <Problem error={loaded.error} />}
      {loaded.loading && (
        <p class="quiet loading" role="status">
          {number(progress)} {definition.items} …
        </p>
      )}
      {isCurrent && items.length === 0 && <p class="empty">There are no {definition.items} to draw.</p>}
      {isCurrent && items.length > 0 && (
        <LazyChart input={{ ...chart.input, madeOf: madeOf + chart.input.madeOf }} pointOf={chart.pointOf} />
      )}
    </>
  );
}

function madeOfWords({ definition, parameters, total }: TabProps, items: Item[], more: boolean): string {
  const { items: name } = definition;
  if (isSelection(parameters))
    return more
      ? `the first ${count(items.length, name)} of this selection; more follow`
      : `all ${count(items.length, name)} of this selection`;
  return `${number(items.length)} of ${count(Math.max(total, items.length), name)}`;
}

/** From the page that the table shows, or from where its items begin. */
function cursorOf(parameters: Parameters, pageSize: number): { after?: string; before?: string } {
  const { order, page, after, before } = parameters;
  if (isSelection(parameters)) return {};
  const [from, to] = page === undefined ? [after, before] : [(page - 1) * pageSize, page * pageSize + 1];
  if (order === "asc") return from === undefined ? {} : { after: String(from) };
  return to === undefined ? {} : { before: String(to) };
}

async function gather(
  history: AnyHistory,
  parameters: Parameters,
  pageSize: number,
  most: number,
  signal: AbortSignal,
  onProgress: (count: number) => void,
): Promise<Gathered> {
  const { from, to, filters, order } = parameters;
  const cursor = cursorOf(parameters, pageSize);
  const span = { ...(from ? { from: fromInstant(from) } : {}), ...(to ? { to: toInstant(to) } : {}), ...filters };
  const items: Item[] = [];
  for await (const window of windows(history, { ...span, ...cursor, order, limit: 100 } as never, { signal })) {
    items.push(...window.items);
    onProgress(items.length);
    const more = window.links.next !== undefined;
    if (items.length >= most || !more) return { items: items.slice(0, most), more: more || items.length > most };
  }
  return { items, more: false };
}
