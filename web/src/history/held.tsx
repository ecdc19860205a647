// Items that have come, and wait until the reader is where they are shown.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Item } from "../api/read";
import { count } from "../format";
import { announce } from "../parts/announce";

/** More are not shown with a page: the newest page is shown instead. */
const MOST = 500;

interface Waiting {
  /** In order. */
  arrived: Item[];
  order: "asc" | "desc";
  /** What the items are called. */
  name: string;
  /** What they are shown with. */
  key: string;
  /** The `seq` of the item before the first, if there must be no gap. */
  after?: number;
  /** Whether others have come before these, which are not known. */
  missed?: boolean;
  /** Called when some in between are not known, or when there are too many. */
  onTooMany: () => void;
}

/**
 * Of the items that have come, those that are shown. While the reader is at the end where they come, they are shown at once.
 * Otherwise they wait, so that nothing moves what is being read.
 */
export function useHeld({ arrived, order, name, key, after, missed = false, onTooMany }: Waiting) {
  const [held, setHeld] = useState<{ key: string; items: Item[] }>({ key, items: [] });
  const stick = useRef(false);
  const shown = held.key === key ? held.items.filter(({ seq }) => seq > (after ?? 0)) : [];
  const lastShown = shown.at(-1)?.seq ?? after ?? 0;
  const fresh = arrived.filter(({ seq }) => seq > lastShown);
  const last = fresh.at(-1)?.seq ?? lastShown;
  const hidden = after === undefined ? fresh.length : last - lastShown;

  const release = () => {
    const first = fresh[0];
    if (!first && !missed) return;
    stick.current = order === "asc";
    const isGap = first !== undefined && after !== undefined && first.seq > lastShown + 1;
    if (missed || isGap || shown.length + fresh.length > MOST) onTooMany();
    else setHeld({ key, items: [...shown, ...fresh] });
    announce(hidden > 0 ? `${count(hidden, name)} more` : `more ${name}`);
  };
  useLayoutEffect(() => {
    if (isAtEnd(order)) release();
  }, [last, lastShown, order, missed]);
  useLayoutEffect(() => {
    if (!stick.current) return;
    stick.current = false;
    document.querySelector("table.items tbody tr:last-child")?.scrollIntoView({ block: "nearest" });
  }, [lastShown]);
  useEffect(() => {
    const look = () => isAtEnd(order) && release();
    addEventListener("scroll", look, { passive: true });
    return () => removeEventListener("scroll", look);
  });
  const show = () => {
    release();
    if (order === "desc") scrollTo({ top: 0 });
  };
  return { shown, hidden, show };
}

/** Whether the end of the table where new items come is seen. */
function isAtEnd(order: "asc" | "desc"): boolean {
  const table = document.querySelector("table.items")?.getBoundingClientRect();
  if (!table) return true;
  return order === "desc" ? table.top > -20 : table.bottom < innerHeight + 20;
}

/** Shows the items that wait. */
export function Held({ hidden, order, show }: { hidden: number; order: "asc" | "desc"; show: () => void }) {
  if (hidden === 0) return null;
  return (
    <button type="button" class="pill" onClick={show}>
      {hidden} new: show {order === "asc" ? "below" : "above"}
    </button>
  );
}
