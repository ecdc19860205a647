// To one item by its number, or to where the items of a moment are.

import { useState } from "preact/hooks";
import { addressOf, go } from "../address";
import { historyOf, type AnyHistory, type Item } from "../api/read";
import { instantOf, moment, number, plural } from "../format";
import { announce } from "../parts/announce";
import { Problem } from "../parts/problem";
import { useZone } from "../parts/zone";
import { addressOfHistory, type Parameters } from "./parameters";
import { searched } from "./search";
import type { TabProps } from "./tab";

interface Props extends TabProps {
  usualRows: number;
}

export function GoTo({ definition, owner, parameters, usualRows }: Props) {
  const { owners, items, date } = definition;
  const { order, rows = usualRows } = parameters;
  const zone = useZone();
  const [state, setState] = useState<{ isBusy?: boolean; error?: unknown; note?: string }>({});
  const toNumber = (event: Event) => {
    event.preventDefault();
    const seq = fieldOf(event, "seq");
    if (seq) go(addressOf([owners, owner, items, seq], { order: order === "asc" ? order : undefined }));
  };
  const toMoment = async (event: Event) => {
    event.preventDefault();
    const [day, time = ""] = fieldOf(event, "moment").split("T");
    const at = day && instantOf(day, time, zone);
    if (!at) return;
    setState({ isBusy: true });
    try {
      const item = await nearest(historyOf(definition, owner), parameters, at);
      setState(item ? {} : { note: `There are no ${plural(items)} here.` });
      if (!item) return;
      announce(`Number ${number(item.seq)}, of ${moment(String(item[date]), zone)}`);
      go(addressOfHistory(definition, owner, { ...parameters, ...placeOf(item.seq, parameters, rows), mark: item.seq }));
    } catch (error) {
      setState({ error });
    }
  };
  return (
    <>
      <form onSubmit={toNumber} class="jump">
        <span class="quiet">Go to</span>
        <input name="seq" type="number" min={1} class="short" aria-label="Open the item with this number" placeholder="number" />
      </form>
      <form onSubmit={toMoment} class="jump">
        <input name="moment" type="datetime-local" step={1} required aria-label={`Go to this date and time (${zone})`} />
        <button type="submit" disabled={state.isBusy}>
          {state.isBusy ? "…" : "Go"}
        </button>
      </form>
      {state.note && (
        <span class="quiet" role="status">
          {state.note}
        </span>
      )}
      {state.error !== undefined && <Problem error={state.error} />}
    </>
  );
}

function fieldOf(event: Event, name: string): string {
  return String(new FormData(event.currentTarget as HTMLFormElement).get(name)).trim();
}

/** The page of an item; of a selection by values the window that begins with it. */
function placeOf(seq: number, { filters, order }: Parameters, rows: number) {
  const nothing = { from: undefined, to: undefined, page: undefined, after: undefined, before: undefined };
  if (Object.keys(filters).length === 0) return { ...nothing, page: Math.ceil(seq / rows) };
  return { ...nothing, ...(order === "asc" ? { after: seq - 1 } : { before: seq + 1 }) };
}

const HOUR = 3_600_000;
/** Longer and longer spans: the first item of a short one is near, also where items have come late. */
const SPANS = [HOUR, 24 * HOUR, 31 * 24 * HOUR, undefined];

/** The first item from a moment on, or if there is none the last one before it. */
async function nearest(history: AnyHistory, { filters, live }: Parameters, at: string): Promise<Item | undefined> {
  const { signal } = new AbortController();
  const first = async (span: Pick<Parameters, "from" | "to" | "order">) => {
    for await (const { items } of searched(history, { tab: "items", filters, live, ...span }, 1, signal)) if (items[0]) return items[0];
    return undefined;
  };
  for (const span of SPANS) {
    const to = span === undefined ? {} : { to: new Date(Date.parse(at) + span).toISOString() };
    const item = await first({ from: at, ...to, order: "asc" });
    if (item) return item;
  }
  return first({ to: at, order: "desc" });
}
