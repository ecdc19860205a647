// The menu of a table: which columns it has, in which order, and which stay in view.

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
        <span class="quiet">This browser keeps it. The edge of a column's head is dragged to give it a width.</span>
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

function Row({ column: { name, hidden = false, pinned = false }, columns, set, isFirst, isLast }: RowProps) {
  const called = plain(name);
  const change = (change: Partial<ColumnChoice>) => set(withChange(columns, name, change));
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
      <button type="button" class="small" aria-label={`${called} earlier`} disabled={isFirst} onClick={() => set(moved(columns, name, -1))}>
        ↑
      </button>
      <button type="button" class="small" aria-label={`${called} later`} disabled={isLast} onClick={() => set(moved(columns, name, 1))}>
        ↓
      </button>
    </li>
  );
}
