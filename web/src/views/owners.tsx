// All owners of a collection, with the totals of their histories.

import { addressOf } from "../address";
import type { Definition } from "../api/catalog";
import { ownersAfter, ownersPath, type Totals } from "../api/read";
import { count, number } from "../format";
import { CurlRow, curlOf } from "../parts/curl";
import { useLoaded } from "../parts/loaded";
import { Problem } from "../parts/problem";
import { plain, Text } from "../parts/text";
import { OwnerField } from "../parts/owner-field";

const SHOWN = 50;

export function OwnersView({ definitions, query }: { definitions: Definition[]; query: URLSearchParams }) {
  const { owners, ownersTitle } = definitions[0]!;
  const after = query.get("after") ?? "";
  return (
    <>
      <div class="head">
        <h1>{ownersTitle}</h1>
        <OwnerField definitions={definitions} />
      </div>
      <OwnersTable definitions={definitions} after={after} limit={SHOWN} more={(after) => addressOf([owners], { after })} />
      <CurlRow commands={[curlOf(ownersPath(owners, after, SHOWN))]} />
    </>
  );
}

interface TableProps {
  definitions: Definition[];
  after: string;
  limit: number;
  /** The address of the owners after an id. */
  more: (after: string) => string;
  /** What stands here if there are none. */
  none?: preact.ComponentChildren;
}

export function OwnersTable({ definitions, after, limit, more, none }: TableProps) {
  const { owners, ownerField, ownersTitle } = definitions[0]!;
  const loaded = useLoaded(`${owners} ${after}`, (signal) => ownersAfter(owners, after, limit, signal));
  if (loaded.error !== undefined) return <Problem error={loaded.error} />;
  if (!loaded.data) return <p class="quiet loading">…</p>;
  const { items, links } = loaded.data;
  if (items.length === 0) return <>{none ?? <p class="empty">There are no more {owners}.</p>}</>;
  const next = links.next && new URLSearchParams(links.next.split("?")[1]).get("after");
  return (
    <>
      <div class="scroll" tabIndex={0} role="region" aria-label={`${ownersTitle} and their totals`}>
        <table>
          <thead>
            <tr>
              <th>{plain(ownerField)}</th>
              {definitions.map(({ items }) => (
                <th class="right" key={items}>
                  {items}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {items.map((owner) => {
              const id = String(owner[ownerField]);
              return (
                <tr key={id}>
                  <th scope="row">
                    <a href={addressOf([owners, id])}>
                      <Text of={id} />
                    </a>
                  </th>
                  {definitions.map(({ items }) => {
                    const totals = owner[items] as Totals | undefined;
                    return (
                      <td class="right" key={items}>
                        {totals ? (
                          <a href={addressOf([owners, id, items])} aria-label={`${count(totals.totalItems, items)} of ${plain(id)}`}>
                            {number(totals.totalItems)}
                          </a>
                        ) : (
                          "–"
                        )}
                        {totals && <span class="quiet"> on {count(totals.totalPages, "pages")}</span>}
                      </td>
                    );
                  })}
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      {next && (
        <p>
          <a class="button small" href={more(next)}>
            More {owners}
          </a>
        </p>
      )}
    </>
  );
}
