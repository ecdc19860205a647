// Who has something new: owners that get items while the page is open.

import type { LiveState } from "@pagebucket/client";
import { useEffect, useState } from "preact/hooks";
import { addressOf } from "../address";
import type { Outline } from "../api/catalog";
import { follow, followingOf, MOST_KEPT, MOST_LISTED } from "../api/following";
import { keyOf, type OwnerNews } from "../api/news";
import { capitalised, count, number, plural, singular } from "../format";
import { useAttention } from "../parts/attention";
import { CurlRow, curlOf } from "../parts/curl";
import { Failure } from "../parts/problem";
import { plain, Text } from "../parts/text";
import { Time, ZoneName } from "../parts/zone";

/** Each history has a stream, and a browser has few connections to a service. */
const MOST_HISTORIES = 3;

type State = LiveState | "connecting";

const WORDS: Record<State, string> = { connecting: "connecting", stream: "live", polling: "live", waiting: "not connected, trying again" };

export function NewItems({ histories }: { histories: Outline[] }) {
  const { owners } = histories[0]!;
  const followed = histories.slice(0, MOST_HISTORIES);
  const following = followingOf(owners);
  const { isSeen, isOnline } = useAttention();
  const [, draw] = useState({});
  const [state, setState] = useState<State>("connecting");
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    if (!isSeen || !isOnline) return;
    const controller = new AbortController();
    const { signal } = controller;
    const onState = (state: LiveState) => !signal.aborted && setState(state);
    setError(undefined);
    setState("connecting");
    follow(histories, followed, following, { signal, onState }, () => !signal.aborted && draw({})).catch((error) => !signal.aborted && setError(error));
    return () => controller.abort();
  }, [owners, isSeen, isOnline]);
  const { news, begun, lists } = following;
  const live = followed.map(({ items }) => `# This one goes on until it is stopped:\n# ${curlOf(`/v1/${items}/live`)}`);
  return (
    <>
      {error !== undefined && <Failure error={error} />}
      {!begun && error === undefined && <p class="quiet loading">…</p>}
      {begun && (
        <section class="card wide" aria-label={`${owners} with something new`}>
          <p>
            {capitalised(owners)} that have got something since <Time of={begun.at} /> <ZoneName />, the last ones first. The list goes on while
            this page is open, also while you look at its other views.{" "}
            <span class={`live ${isOnline ? state : "waiting"}`} data-live={state}>
              <span class="dot" aria-hidden="true" /> {WORDS[isOnline ? state : "waiting"]}
            </span>
          </p>
          {followed.length < histories.length && <p class="quiet">Only of {followed.map(({ items }) => plural(items)).join(", ")}.</p>}
          {!begun.baseline.isWhole && (
            <p class="quiet">
              It knows how many items the first {number(MOST_LISTED)} {owners} had. Of others it says how many are new at least.
            </p>
          )}
          <p class="only-read" role="status">
            {news.length > 0 && `${count(news.length, owners)} with something new`}
          </p>
          {news.length > 0 ? <NewsTable outline={histories[0]!} news={news} /> : <p class="empty">None of the {owners} has got anything yet.</p>}
          {news.length >= MOST_KEPT && <p class="quiet">More than the last {number(MOST_KEPT)} are not shown.</p>}
        </section>
      )}
      <CurlRow commands={[...live, ...lists.map((path) => curlOf(path))]} />
    </>
  );
}

function NewsTable({ outline: { owners, ownerField }, news }: { outline: Outline; news: readonly OwnerNews[] }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={`Who has something new: ${owners}`}>
      <table>
        <thead>
          <tr>
            <th>{plain(ownerField)}</th>
            <th class="right">new</th>
            <th class="right">in all</th>
            <th>
              last seen <ZoneName />
            </th>
          </tr>
        </thead>
        <tbody>
          {news.map(({ id, items, fresh, isLeast, totalItems, at }) => (
            <tr key={keyOf({ items, id })}>
              <th scope="row">
                <a href={addressOf([owners, id])}>
                  <Text of={id} />
                </a>
              </th>
              <td class="right">
                <a href={addressOf([owners, id, items])} aria-label={`${count(fresh, items)} new of ${singular(owners)} ${plain(id)}`}>
                  {isLeast && "at least "}
                  {count(fresh, items)}
                </a>
              </td>
              <td class="right">{number(totalItems)}</td>
              <td>
                <Time of={at} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
