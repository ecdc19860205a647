// One item, at its permanent address.

import { item as readItem } from "@pagebucket/client";
import { useMemo } from "preact/hooks";
import { addressOf } from "../address";
import type { Definition } from "../api/catalog";
import { historyOf, ownerPath, summaries, type Item, type Summary } from "../api/read";
import { ItemDetails } from "../history/item-details";
import { addressOfHistory } from "../history/parameters";
import { StepButtons, useKeys } from "../history/pager";
import { itemSteps, stepWords, type Order, type Steps } from "../history/view-state";
import { number, plural, singular } from "../format";
import { Curl, curlOf } from "../parts/curl";
import { useLoaded } from "../parts/loaded";
import { Failure } from "../parts/problem";
import { Text } from "../parts/text";
import { ZoneChoice } from "../parts/zone";

interface Props {
  definition: Definition;
  owner: string;
  seq: string;
  query: URLSearchParams;
}

export function ItemView({ definition, owner, seq, query }: Props) {
  const { owners, items } = definition;
  const history = useMemo(() => historyOf(definition, owner), [definition, owner]);
  const order: Order = query.get("order") === "asc" ? "asc" : "desc";
  const at = (seq: number | undefined) =>
    seq === undefined ? undefined : addressOf([owners, owner, items, seq], { order: order === "asc" ? order : undefined });
  const place = Number(seq);
  const isPlace = Number.isSafeInteger(place) && place > 0;
  const path = `${history.path}/${place}`;
  // Another text is the address of something else, or of nothing.
  const loaded = useLoaded(isPlace ? path : undefined, (signal) => readItem(history, place, { signal }));
  // Where the history begins and ends: no step leads out of it.
  const summary = useLoaded(isPlace ? path : undefined, (signal) => summaries(definition, owner, signal));
  const { firstSeq, totalItems } = (summary.data?.[items] as Summary | undefined) ?? {};
  // The number of its page is of the answer, and not stored with it.
  const { page, ...item } = (loaded.data ?? {}) as Item & { page?: number };
  const leads = itemSteps(order, place, firstSeq, totalItems);
  const steps: Steps<string> = isPlace
    ? { first: at(leads.first), previous: at(leads.previous), next: at(leads.next), last: at(leads.last) }
    : {};
  useKeys(steps);
  const name = plural(items);
  const newest = <a href={addressOfHistory(definition, owner, {})}>The newest {name}</a>;
  return (
    <>
      <div class="head">
        <h1>
          {singular(definition.title)} <Text of={isPlace ? number(place) : seq} /> <span class="quiet">of {singular(owners)}</span>{" "}
          <Text of={owner} />
        </h1>
      </div>
      <div class="toolbar row">
        <StepButtons steps={steps} words={stepWords(order)} />
        {page !== undefined && (
          <a class="button" href={addressOfHistory(definition, owner, { page, order, mark: item.seq })}>
            Page {number(page)}
          </a>
        )}
        <span class="row end">
          <ZoneChoice />
          {isPlace && <Curl commands={[curlOf(path), curlOf(ownerPath(owners, owner))]} />}
        </span>
      </div>
      {!isPlace && (
        <p class="empty" role="alert">
          The number of one of the {name} is a whole number from 1 on. {newest}
        </p>
      )}
      <Failure error={loaded.error} href={(page) => addressOfHistory(definition, owner, { page, order })}>
        <p>{newest}</p>
      </Failure>
      {page !== undefined && <ItemDetails definition={definition} owner={owner} item={item} />}
    </>
  );
}
