// One item, at its permanent address.

import { item as readItem } from "@pagebucket/client";
import { useMemo } from "preact/hooks";
import { addressOf } from "../address";
import type { Definition } from "../api/catalog";
import { historyOf, type Item } from "../api/read";
import { addressOfHistory } from "../history/parameters";
import { StepButtons, useKeys } from "../history/pager";
import { number, singular } from "../format";
import { CopyButton, Curl, curlOf } from "../parts/curl";
import { useLoaded } from "../parts/loaded";
import { Failure } from "../parts/problem";
import { Text } from "../parts/text";
import { Value } from "../parts/value";

export function ItemView({ definition, owner, seq }: { definition: Definition; owner: string; seq: string }) {
  const { owners, items, columns } = definition;
  const history = useMemo(() => historyOf(definition, owner), [definition, owner]);
  const at = (seq: number) => addressOf([owners, owner, items, seq]);
  const place = Number(seq);
  const isPlace = Number.isSafeInteger(place) && place > 0;
  const path = `${history.path}/${place}`;
  // Another text is the address of something else, or of nothing.
  const loaded = useLoaded(isPlace ? path : undefined, (signal) => readItem(history, place, { signal }));
  const steps = { previous: isPlace && place > 1 ? at(place - 1) : undefined, next: isPlace && loaded.data ? at(place + 1) : undefined };
  useKeys(steps);
  const item = loaded.data as (Item & { page: number }) | undefined;
  const permanent = new URL(isPlace ? at(place) : "", location.href).href;
  return (
    <>
      <div class="head">
        <h1>
          {singular(definition.title)} <Text of={isPlace ? number(place) : seq} /> <span class="quiet">of {singular(owners)}</span>{" "}
          <Text of={owner} />
        </h1>
      </div>
      <div class="toolbar row">
        <StepButtons steps={steps} words={{ first: "", previous: "older", next: "newer", last: "" }} />
        {item && (
          <a class="button" href={addressOfHistory(definition, owner, { page: item.page, order: "asc" })}>
            Page {number(item.page)}
          </a>
        )}
        <span class="row end">
          <CopyButton text={permanent} label="Copy the permanent link" />
          {isPlace && <Curl commands={[curlOf(path)]} />}
        </span>
      </div>
      {!isPlace && (
        <p class="empty" role="alert">
          The number of one of the {items} is a whole number from 1 on. <a href={addressOfHistory(definition, owner, {})}>The newest {items}</a>
        </p>
      )}
      <Failure error={loaded.error} href={(page) => addressOfHistory(definition, owner, { page, order: "asc" })}>
        <p>
          <a href={addressOfHistory(definition, owner, {})}>The newest {items}</a>
        </p>
      </Failure>
      {item && (
        <dl class="card item">
          {columns.map(({ name, schema }) => (
            <div key={name}>
              <dt>
                <Text of={name} />
                {schema.description && (
                  <span class="hint">
                    <Text of={schema.description} />
                  </span>
                )}
              </dt>
              <dd>
                <Value of={item[name]} schema={schema} lines />
              </dd>
            </div>
          ))}
        </dl>
      )}
    </>
  );
}
