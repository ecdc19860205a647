// Views of web pages: the series of one, and the most viewed.

import { useMemo, useState } from "preact/hooks";
import { addressOf, go } from "../address";
import { read } from "../api/read";
import { count, fromInstant, moment, number, toInstant } from "../format";
import { LazyChart } from "../chart/lazy";
import type { ChartInput } from "../chart/input";
import { CurlRow, curlOf } from "../parts/curl";
import { useLoaded } from "../parts/loaded";
import { Failure } from "../parts/problem";
import { SpanField } from "../parts/span-field";
import { plain, Text } from "../parts/text";

const RESOLUTIONS = ["second", "minute", "hour", "day"];

interface Point {
  at: string;
  views: number;
}

interface Views {
  path: string;
  from: string;
  to: string;
  totalViews: number;
  busiest?: Point;
  points: Point[];
}

interface Top {
  from: string;
  to: string;
  items: { path: string; totalViews: number }[];
}

export function PageViewsView({ query }: { query: URLSearchParams }) {
  const path = query.get("path") ?? "";
  const resolution = RESOLUTIONS.find((one) => one === query.get("resolution")) ?? "minute";
  const [from, to] = ["from", "to"].map((name) => query.get(name) ?? "") as [string, string];
  const span = { ...(from ? { from: fromInstant(from) } : {}), ...(to ? { to: toInstant(to) } : {}) };
  const top = `/v1/page-views/top?${new URLSearchParams({ ...lastDay(span), limit: "20" })}`;
  const series = `/v1/page-views?${new URLSearchParams({ path, resolution, ...span })}`;
  return (
    <>
      <div class="head">
        <h1>Page views</h1>
      </div>
      <Choice {...{ path, resolution, from, to }} />
      {path && <SeriesOf key={series} request={series} resolution={resolution} />}
      <TopPages request={top} resolution={resolution} from={from} to={to} />
      <CurlRow commands={(path ? [series, top] : [top]).map((path) => curlOf(path))} />
    </>
  );
}

function Choice(asked: Record<"path" | "resolution" | "from" | "to", string>) {
  const of = JSON.stringify(asked);
  const [typed, setTyped] = useState({ of, chosen: asked });
  // What was typed for another address is of no use. The fields stay, and so does the focus.
  const chosen = typed.of === of ? typed.chosen : asked;
  const choose = (change: Partial<typeof asked>) => setTyped({ of, chosen: { ...chosen, ...change } });
  const submit = (event: Event) => {
    event.preventDefault();
    go(addressOf(["page-views"], chosen));
  };
  return (
    <form class="selection row" onSubmit={submit} role="search" aria-label="Choose page views">
      <label>
        <span>path of a page</span>
        <input
          name="path"
          value={chosen.path}
          onInput={(event) => choose({ path: event.currentTarget.value })}
          placeholder="/index.htm"
          spellcheck={false}
        />
      </label>
      <label>
        <span>by</span>
        <select name="resolution" value={chosen.resolution} onChange={(event) => choose({ resolution: event.currentTarget.value })}>
          {RESOLUTIONS.map((one) => (
            <option key={one} value={one}>
              {one}
            </option>
          ))}
        </select>
      </label>
      {(["from", "to"] as const).map((end) => (
        <SpanField key={end} name={end} zone="UTC" value={chosen[end]} onValue={(value) => choose({ [end]: value })} />
      ))}
      <button type="submit">Show</button>
    </form>
  );
}

/** Lists of the most viewed need a span: without one, the last day. Whole hours, so that an address means the same for a while. */
function lastDay(span: { from?: string; to?: string }): { from: string; to: string } {
  const hour = 3_600_000;
  const end = Math.ceil(Date.now() / hour) * hour;
  const to = span.to ?? new Date(end).toISOString();
  const begin = Date.parse(to) - 24 * hour;
  // The service says what is wrong with a text that is no moment.
  return { from: span.from ?? (Number.isNaN(begin) ? to : new Date(begin).toISOString()), to };
}

function SeriesOf({ request, resolution }: { request: string; resolution: string }) {
  const loaded = useLoaded(request, (signal) => read(request, signal) as Promise<Views>);
  const views = loaded.data;
  const input = useMemo((): ChartInput | undefined => {
    if (!views) return undefined;
    const label = `Views of ${plain(views.path)} by ${resolution}`;
    const madeOf = `all ${count(views.totalViews, "views")} from ${moment(views.from)} to ${moment(views.to)}`;
    return {
      kind: "bars",
      label,
      madeOf,
      x: views.points.map(({ at }) => Date.parse(at) / 1000),
      series: [{ name: "views", values: views.points.map(({ views }) => views) }],
    };
  }, [views]);
  if (loaded.error !== undefined) return <Failure error={loaded.error} />;
  if (!views || !input) return <p class="quiet loading">…</p>;
  return (
    <section class="card wide">
      <h2>
        <Text of={views.path} />
      </h2>
      <p>
        <strong>{count(views.totalViews, "views")}</strong>
        {views.busiest && (
          <span class="quiet">
            ; the busiest {resolution} was {moment(views.busiest.at)} with {number(views.busiest.views)}
          </span>
        )}
      </p>
      <LazyChart
        input={input}
        pointOf={(_, index) => ({ words: `${moment(views.points[index]!.at)}: ${count(views.points[index]!.views, "views")}` })}
      />
    </section>
  );
}

function TopPages({ request, resolution, from, to }: { request: string; resolution: string; from: string; to: string }) {
  const loaded = useLoaded(request, (signal) => read(request, signal) as Promise<Top>);
  if (loaded.error !== undefined) return <Failure error={loaded.error} />;
  if (!loaded.data) return <p class="quiet loading">…</p>;
  const { items, from: since, to: until } = loaded.data;
  const most = items[0]?.totalViews ?? 1;
  return (
    <section class="card wide">
      <h2>Most viewed pages</h2>
      <p class="quiet">
        {moment(since)} to {moment(until)}
      </p>
      {items.length === 0 && <p class="empty">No page was viewed.</p>}
      <ol class="top">
        {items.map(({ path, totalViews }) => (
          <li key={path}>
            <a href={addressOf(["page-views"], { path, resolution, from, to })}>
              <Text of={path} />
            </a>
            <meter min={0} max={most} value={totalViews} aria-label={`views of ${plain(path)}`} />
            <span class="right">{number(totalViews)}</span>
          </li>
        ))}
      </ol>
    </section>
  );
}
