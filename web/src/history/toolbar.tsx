// What stands above the items of a history: steps, order, rows, places to go to, and ways to take items along.

import { go } from "../address";
import type { Item } from "../api/read";
import { number } from "../format";
import { Choice } from "../parts/choice";
import { Curl, curlOf } from "../parts/curl";
import { Fold } from "../parts/fold";
import { Download } from "./download";
import { GoTo } from "./go-to";
import { StepButtons } from "./pager";
import { addressOfHistory, isSelection, ROWS, type Change } from "./parameters";
import type { TabProps } from "./tab";
import { columnsOf } from "./table";
import { TableMenu } from "./table-menu";
import type { TableChoice } from "./table-choice";
import { hasText, stepWords, type Steps } from "./view-state";

/** What the reader does with a table that is loaded. */
export interface ReaderProps {
  /** Only rows with this text are shown. */
  find: string;
  onFind: (text: string) => void;
  choice: TableChoice;
}

interface Props extends TabProps, ReaderProps {
  steps: Steps<string>;
  /** Rows of a view, unless the address has others. */
  usualRows: number;
  items: Item[];
  /** What the tab has asked for. */
  paths: string[];
  children: preact.ComponentChildren;
}

export function Toolbar({ steps, usualRows, items, paths, children, find, onFind, choice, ...props }: Props) {
  const { definition, owner, parameters, asked } = props;
  const { order, rows = usualRows } = parameters;
  // Another arrangement of a selection begins at its own beginning.
  const rearranged = (change: Change) => {
    const { after, before, page: _, mark: __, ...kept } = parameters;
    const place = isSelection(parameters) ? {} : { after, before };
    go(addressOfHistory(definition, owner, { ...kept, ...place, ...change }));
  };
  // Other rows: the page that has the first item of this one.
  const withRows = (chosen: number) => {
    const { page } = parameters;
    const same = page === undefined ? {} : { page: Math.ceil(((page - 1) * rows + 1) / chosen) };
    rearranged({ rows: chosen === usualRows ? undefined : chosen, ...same });
  };
  const turned = (order: "asc" | "desc") => {
    const { page } = parameters;
    rearranged({ order, ...(page === undefined ? {} : { page }) });
  };
  const shown = find ? items.filter((item) => hasText(item, find)) : items;
  const choices = [...new Set([...ROWS, usualRows])].sort((one, other) => one - other);
  return (
    <div class="toolbar">
      <div class="row">
        <StepButtons steps={steps} words={stepWords(order)} />
        {children}
        <span class="row end">
          <select aria-label="Order" value={order} onChange={(event) => turned(event.currentTarget.value as "asc" | "desc")}>
            <option value="desc">newest first</option>
            <option value="asc">oldest first</option>
          </select>
          <Choice
            label="Rows"
            value={String(rows)}
            options={choices.map((rows) => [String(rows), String(rows)])}
            onValue={(value) => withRows(Number(value))}
          />
        </span>
      </div>
      <Fold name="Go to, find, take along" open={false}>
        <div class="row">
          <GoTo {...props} usualRows={usualRows} />
          <input
            type="search"
            class="find"
            aria-label="Find a text in the rows that are loaded"
            placeholder="Find in these rows"
            value={find}
            onInput={(event) => onFind(event.currentTarget.value)}
          />
          <span class="row end">
            <TableMenu columns={columnsOf(definition, items, choice)} choice={choice} />
            <Download definition={definition} owner={owner} parameters={parameters} items={shown} total={props.total} />
            <Curl commands={[...commandsOf(paths), ...asked]} />
          </span>
        </div>
      </Fold>
    </div>
  );
}

/** A search may have many requests. */
const MOST_COMMANDS = 10;

function commandsOf(paths: string[]): string[] {
  const left = paths.length - MOST_COMMANDS;
  const more = left > 0 ? [`# ${number(left)} more: each goes on where the one before it ended, by its link`] : [];
  return [...paths.slice(0, MOST_COMMANDS).map((path) => curlOf(path)), ...more];
}
