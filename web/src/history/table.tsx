// Items as a table, or on narrow screens as cards.

import { addressOf } from "../address";
import type { Definition } from "../api/catalog";
import type { Item } from "../api/read";
import { isNumeric } from "../api/schema";
import { number } from "../format";
import { Text } from "../parts/text";
import { Value } from "../parts/value";

export interface TableProps {
  definition: Definition;
  owner: string;
  items: Item[];
  /** Items with a greater `seq` came while the reader looked on. */
  newSince: number;
  caption: string;
  busy: boolean;
}

export function ItemTable({ definition, owner, items, newSince, caption, busy }: TableProps) {
  const { columns } = definition;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={caption} aria-busy={busy}>
      <table role="table" class="items">
        <caption class="only-read">{caption}</caption>
        <thead role="rowgroup">
          <tr role="row">
            <th role="columnheader" scope="col" class="right" title="Number of the item in its history">
              seq
            </th>
            {columns.map(({ name, schema }) => (
              <th key={name} role="columnheader" scope="col" class={isNumeric(schema) ? "right" : undefined} title={schema.description}>
                <Text of={name} />
              </th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {items.map((item) => (
            <tr key={item.seq} role="row" class={item.seq > newSince ? "new" : undefined} data-seq={item.seq}>
              <th role="rowheader" scope="row" class="right seq" data-name="seq">
                <a href={addressOf([definition.owners, owner, definition.items, item.seq])}>{number(item.seq)}</a>
                {item.seq > newSince && (
                  <span class="mark" title="new">
                    <span class="only-read"> new</span>
                  </span>
                )}
              </th>
              {columns.map(({ name, schema }) => (
                <td key={name} role="cell" class={isNumeric(schema) ? "right" : undefined} data-name={name}>
                  <Value of={item[name]} schema={schema} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
