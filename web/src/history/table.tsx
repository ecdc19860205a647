// Items as a table, or on narrow screens as cards. A row opens to the whole item.

import { Fragment } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { addressOf } from "../address";
import type { Definition } from "../api/catalog";
import type { Item } from "../api/read";
import { isNumeric, kindOf, type Schema } from "../api/schema";
import { count, number, plural, singular } from "../format";
import { plain, Text } from "../parts/text";
import { Value } from "../parts/value";
import { useZone } from "../parts/zone";
import { ColumnEdge } from "./column-edge";
import { arranged, undeclaredIn, withWidth, type ColumnChoice } from "./columns";
import { isChoosable, ItemDetails } from "./item-details";
import { addressOfHistory, type Parameters } from "./parameters";
import type { TableChoice } from "./table-choice";
import { hasText } from "./view-state";

export interface TableProps {
  definition: Definition;
  owner: string;
  parameters: Parameters;
  items: Item[];
  /** Items with a greater `seq` came while the reader looked on. */
  newSince: number;
  caption: string;
  busy: boolean;
  choice: TableChoice;
  /** Only rows with this text are shown. */
  find: string;
}

/** More members that no schema declares have no columns: an opened row has them all. */
const MOST_UNDECLARED = 6;

/** The columns of these items, as the reader has arranged them. */
export function columnsOf({ columns }: Definition, items: Item[], choice: TableChoice): ColumnChoice[] {
  const declared = columns.map(({ name }) => name);
  return arranged([...declared, ...undeclaredIn(items, declared).slice(0, MOST_UNDECLARED)], choice.columns);
}

export function ItemTable(props: TableProps) {
  const { definition, owner, parameters, items, newSince, caption, busy, choice, find } = props;
  const { mark, order } = parameters;
  const [opened, setOpened] = useState<ReadonlySet<number>>(new Set());
  const all = columnsOf(definition, items, choice);
  const columns = all.filter(({ hidden }) => !hidden);
  const schemas = new Map(definition.columns.map(({ name, schema }) => [name, schema]));
  const shown = find ? items.filter((item) => hasText(item, find)) : items;
  const place = useRef<HTMLTableElement>(null);
  const pins = columns.filter(({ pinned }) => pinned).length;
  usePins(place, pins);
  const markedIsShown = items.some(({ seq }) => seq === mark);
  useLayoutEffect(() => {
    if (markedIsShown) place.current?.querySelector(`[data-seq="${mark}"]`)?.scrollIntoView({ block: "center" });
  }, [mark, markedIsShown]);
  const turn = (seq: number) => {
    const next = new Set(opened);
    if (!next.delete(seq)) next.add(seq);
    setOpened(next);
  };
  const zone = useZone();
  const isDate = (name: string) => kindOf(schemas.get(name) ?? {}) === "date";
  const cell = (index: number) => (index < pins ? `pin pin-${index + 1}` : "");
  return (
    <>
      {find && (
        <p class="quiet" role="status">
          {number(shown.length)} of {count(items.length, definition.items)} that are loaded have “{plain(find)}”
        </p>
      )}
      <div class="scroll" tabIndex={0} role="region" aria-label={caption} aria-busy={busy}>
        <table ref={place} role="table" class={`items${choice.dense ? " dense" : ""}`}>
          <caption class="only-read">{caption}</caption>
          <thead role="rowgroup">
            <tr role="row">
              <th role="columnheader" scope="col" class={`right${pins ? " pin pin-0" : ""}`} title="Number of the item in its history">
                seq
              </th>
              {columns.map(({ name, width }, index) => (
                <th
                  key={name}
                  role="columnheader"
                  scope="col"
                  class={`${isRight(schemas.get(name))} ${cell(index)}`}
                  // Without the edge, which has a name of its own.
                  aria-label={isDate(name) ? `${plain(name)} ${zone}` : plain(name)}
                  title={schemas.get(name)?.description ?? (schemas.has(name) ? undefined : "The definition does not declare it")}
                >
                  <Text of={name} />
                  {isDate(name) && <span class="zone"> {zone}</span>}
                  <ColumnEdge name={name} width={width} onWidth={(width) => choice.change({ columns: withWidth(all, name, width) })} />
                </th>
              ))}
            </tr>
          </thead>
          <tbody role="rowgroup">
            {shown.map((item) => (
              <Fragment key={item.seq}>
                <tr
                  role="row"
                  class={`${item.seq > newSince ? "new" : ""} ${item.seq === mark ? "marked" : ""}`}
                  aria-current={item.seq === mark ? "true" : undefined}
                  data-seq={item.seq}
                >
                  <th role="rowheader" scope="row" class={`right seq${pins ? " pin pin-0" : ""}`} data-name="seq">
                    <button
                      type="button"
                      class="open"
                      aria-expanded={opened.has(item.seq)}
                      aria-label={`All of ${singular(plural(definition.items))} ${number(item.seq)}`}
                      onClick={() => turn(item.seq)}
                    >
                      <span aria-hidden="true">{opened.has(item.seq) ? "▾" : "▸"}</span>
                    </button>
                    <a
                      href={addressOf([definition.owners, owner, definition.items, item.seq], { order: order === "asc" ? order : undefined })}
                    >
                      {number(item.seq)}
                    </a>
                    {item.seq > newSince && (
                      <span class="mark" title="new">
                        <span class="only-read"> new</span>
                      </span>
                    )}
                  </th>
                  {columns.map(({ name, width }, index) => (
                    <td key={name} role="cell" class={`${kindOf(schemas.get(name) ?? {})} ${isRight(schemas.get(name))} ${cell(index)}`} data-name={plain(name)} data-zone={zone}>
                      <div class="cell" style={width === undefined ? undefined : { width: `${width}ch`, maxWidth: "none" }}>
                        <Chosen {...props} name={name} value={item[name]}>
                          <Value of={item[name]} schema={schemas.get(name) ?? {}} />
                        </Chosen>
                      </div>
                    </td>
                  ))}
                </tr>
                {opened.has(item.seq) && (
                  <tr role="row" class="opened">
                    <td role="cell" colSpan={columns.length + 1}>
                      <ItemDetails definition={definition} owner={owner} item={item} />
                    </td>
                  </tr>
                )}
              </Fragment>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

function isRight(schema: Schema | undefined): string {
  return schema && isNumeric(schema) ? "right" : "";
}

/** A value that a click chooses by, if the definition has a filter for it. */
function Chosen({ definition, owner, parameters, name, value, children }: TableProps & { name: string; value: unknown; children: preact.ComponentChildren }) {
  const { filters } = parameters;
  const isFilter = definition.filters.some((filter) => filter.name === name);
  const isChosen = filters[name]?.length === 1 && filters[name][0] === String(value);
  if (!isFilter || isChosen || !isChoosable(value)) return <>{children}</>;
  const { page: _, after: __, before: ___, mark: ____, ...kept } = parameters;
  const href = addressOfHistory(definition, owner, { ...kept, filters: { ...filters, [name]: [String(value)] } });
  return (
    <a class="only" href={href} title={`Only ${plain(name)} ${plain(String(value))}`}>
      {children}
    </a>
  );
}

/** Columns that stay in view stand beside each other: each as far from the edge as those before it are wide. */
function usePins(place: { current: HTMLTableElement | null }, pins: number): void {
  useLayoutEffect(() => {
    const table = place.current;
    if (!table || pins === 0) return;
    const heads = [...table.querySelectorAll<HTMLElement>("thead th")];
    const set = () => {
      let left = 0;
      for (const [index, head] of heads.slice(0, pins + 1).entries()) {
        for (const cell of table.querySelectorAll<HTMLElement>(`.pin-${index}`)) cell.style.left = `${left}px`;
        left += head.offsetWidth;
      }
    };
    set();
    const watch = new ResizeObserver(set);
    watch.observe(table);
    return () => watch.disconnect();
  });
}
