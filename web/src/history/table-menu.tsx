// The menu of a table: which columns it has, in which order, how wide they are, and which stay in view.

import { Menu } from "../parts/menu";
import { plain, Text } from "../parts/text";
import { moved, withChange, type ColumnChoice } from "./columns";
import type { TableChoice } from "./table-choice";

interface Props {
  /** All columns, as they are arranged. */
  columns: ColumnChoice[];
  choice: TableChoice;
}

export function TableMenu({ columns, choice: { dense, change } }: Props) {
  const set = (columns: ColumnChoice[]) => change({ columns });
  return (
    <Menu name="Table">
      <label class="check">
        <input type="checkbox" checked={dense} onChange={(event) => change({ dense: event.currentTarget.checked })} />
        Rows close to each other
      </label>
      <ul class="columns" aria-label="Columns">
        {columns.map((column, index) => (
          <Row key={column.name} column={column} isFirst={index === 0} isLast={index === columns.length - 1} columns={columns} set={set} />
        ))}
      </ul>
      <div class="row">
        <button type="button" class="small" onClick={() => set([])}>
          As the definition has them
        </button>
        <span class="quiet">This browser keeps it. A width is in characters.</span>
      </div>
    </Menu>
  );
}

interface RowProps {
  column: ColumnChoice;
  columns: ColumnChoice[];
  set: (columns: ColumnChoice[]) => void;
  isFirst: boolean;
  isLast: boolean;
}

function Row({ column: { name, hidden = false, pinned = false, width }, columns, set, isFirst, isLast }: RowProps) {
  const called = plain(name);
  const change = (change: Partial<ColumnChoice>) => set(withChange(columns, name, change));
  const resize = (text: string) => {
    const { width: _, ...rest } = columns.find((one) => one.name === name)!;
    const width = Number(text);
    set(columns.map((one) => (one.name === name ? { ...rest, ...(width >= 1 && width <= 500 ? { width } : {}) } : one)));
  };
  return (
    <li class="row">
      <label class="check">
        <input type="checkbox" checked={!hidden} onChange={(event) => change({ hidden: !event.currentTarget.checked })} />
        <Text of={name} />
      </label>
      <label class="check" title="Stays in view while the others are scrolled">
        <input
          type="checkbox"
          aria-label={`${called} stays in view`}
          checked={pinned}
          onChange={(event) => change({ pinned: event.currentTarget.checked })}
        />
        stays
      </label>
      <input
        type="number"
        class="short"
        min={1}
        max={500}
        aria-label={`Width of ${called} in characters`}
        placeholder="width"
        value={width ?? ""}
        onChange={(event) => resize(event.currentTarget.value)}
      />
      <button type="button" class="small" aria-label={`${called} earlier`} disabled={isFirst} onClick={() => set(moved(columns, name, -1))}>
        ↑
      </button>
      <button type="button" class="small" aria-label={`${called} later`} disabled={isLast} onClick={() => set(moved(columns, name, 1))}>
        ↓
      </button>
    </li>
  );
}
