// How the reader of a history wants its table. The browser keeps it.

import { useState } from "preact/hooks";
import type { Definition } from "../api/catalog";
import { ofDevice } from "../api/storage";
import type { ColumnChoice } from "./columns";

interface Kept {
  columns: ColumnChoice[];
  /** Whether rows are close to each other. */
  dense: boolean;
}

export interface TableChoice extends Kept {
  change: (change: Partial<Kept>) => void;
}

const USUAL: Kept = { columns: [], dense: false };

export function useTableChoice({ owners, items }: Definition): TableChoice {
  const name = `pagebucket.table:${owners}/${items}`;
  const [kept, setKept] = useState(() => read(name));
  const change = (change: Partial<Kept>) => {
    const next = { ...kept, ...change };
    ofDevice.set(name, JSON.stringify(next));
    setKept(next);
  };
  return { ...kept, change };
}

function read(name: string): Kept {
  try {
    const { columns, dense } = JSON.parse(ofDevice.get(name) ?? "{}");
    return { columns: Array.isArray(columns) ? columns : [], dense: dense === true };
  } catch {
    return USUAL;
  }
}
