// A chart of what the service says that items add up to by spans of time: of the whole history, or of a selection of it.

import { ProblemError, summary as readSummary, type SummaryPoint } from "@pagebucket/client";
import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { go } from "../address";
import { historyOf, type AnyHistory } from "../api/read";
import { LazyChart } from "../chart/lazy";
import { LENGTHS, summaryChart, type Measure } from "../chart/of-summaries";
import { count, fromInstant, number, toInstant } from "../format";
import { Choice } from "../parts/choice";
import { Curl, curlOf } from "../parts/curl";
import { useLoaded } from "../parts/loaded";
import { Failure } from "../parts/problem";
import { plain } from "../parts/text";
import { useZone } from "../parts/zone";
import type { TabProps } from "./tab";
import { addressOfHistory, isSelection, pathOf, type Parameters } from "./parameters";

/** More points are not loaded: that is more than a screen can show. */
const MOST = 20_000;

/** Of these the first that makes few enough spans is taken, unless the reader takes another. */
const USUAL: [length: string, hours: number][] = [
  ["1h", 1],
  ["1d", 24],
  ["1w", 168],
  ["1M", 730],
];
const FEW = 500;

interface Gathered {
  points: SummaryPoint[];
  /** The length of their spans. */
  length: string;
  /** The first item that is there. */
  firstSeq: number;
  /** Whether there are more. */
  more: boolean;
}

interface Props extends TabProps {
  measure: Measure;
  /** Chooses it. */
  children: ComponentChildren;
}

export function SummaryChart({ measure, children, ...props }: Props) {
  const { definition, owner, parameters, total, asked } = props;
  const { from, to, filters } = parameters;
  const { groups, lengths } = definition.summaries!;
  const history = useMemo(() => historyOf(definition, owner), [definition, owner]);
  // All points are of one moment, whatever is appended meanwhile.
  const [asOf, setAsOf] = useState(total);
  const shownZone = useZone();
  const zone = parameters.zone ?? shownZone;
  const group = groups.find((name) => name === parameters.group);
  const wanted = lengths.find((length) => length === parameters.length);
  const [progress, setProgress] = useState(0);
  const query = {
    ...(group === undefined ? {} : { group }),
    ...(from ? { from: fromInstant(from) } : {}),
    ...(to ? { to: toInstant(to) } : {}),
    ...filters,
    tz: zone,
    asOf: String(asOf),
    limit: "1000",
  };
  const key = JSON.stringify([query, wanted]);
  const choices = wanted === undefined ? lengthsFor(props) : [wanted];
  const loaded = useLoaded(asOf === 0 ? undefined : key, (signal) => gather(history, query, choices, signal, setProgress));
  const data = loaded.key === key ? loaded.data : undefined;
  const length = wanted ?? loaded.data?.length ?? choices[0]!;
  const at = (change: Partial<Parameters>) => addressOfHistory(definition, owner, { ...parameters, ...change });
  const chart = useMemo(() => {
    if (!data) return undefined;
    const addressOfPoint = (point: SummaryPoint) => {
      const items = itemsOf(props, point, group);
      return items && addressOfHistory(definition, owner, items);
    };
    const shownIn = isKnown(zone) ? zone : "UTC";
    return summaryChart({ definition, points: data.points, measure, group, length: data.length, zone: shownIn, addressOfPoint });
  }, [data, measure.id, group, zone]);
  const choose = (change: Partial<Parameters>) => go(at(change), { replace: true });
  return (
    <>
      <div class="toolbar row">
        {children}
        <Choice
          label="per"
          value={length}
          options={lengths.map((length) => [length, LENGTHS[length] ?? length])}
          onValue={(length) => choose({ length })}
        />
        {groups.length > 0 && (
          <Choice
            label="for each"
            value={group ?? ""}
            options={[["", "–"], ...groups.map((name) => [name, plain(name)] as const)]}
            onValue={(group) => choose({ group })}
          />
        )}
        {total > asOf && (
          <button type="button" class="small" onClick={() => setAsOf(total)}>
            {number(total - asOf)} new: draw again
          </button>
        )}
        <span class="row end">
          <Curl commands={asOf === 0 ? asked : [curlOf(pathOf(`${history.path}/summary`, { by: length, ...query })), ...asked]} />
        </span>
      </div>
      <Failure error={loaded.error} href={(page) => at({ tab: "items", page, order: "asc" })} />
      {loaded.loading && (
        <p class="quiet loading" role="status">
          {count(progress, "points")} …
        </p>
      )}
      {(asOf === 0 || data?.points.length === 0) && <p class="empty">There are no {definition.items} to draw.</p>}
      {data && chart && data.points.length > 0 && (
        <LazyChart input={{ ...chart.input, madeOf: madeOfWords(props, data, asOf) + chart.input.madeOf }} pointOf={chart.pointOf} />
      )}
    </>
  );
}

/** Whether this browser can write moments in a zone that an address names. */
function isKnown(zone: string): boolean {
  try {
    return Boolean(Intl.DateTimeFormat("en", { timeZone: zone }));
  } catch {
    return false;
  }
}

/** Lengths of spans: the one that makes a readable number of them, then shorter ones. */
function lengthsFor({ definition, parameters, summary }: TabProps): string[] {
  const { date, summaries } = definition;
  const ends = [parameters.from ? fromInstant(parameters.from) : summary.first?.[date], parameters.to ? toInstant(parameters.to) : summary.last?.[date]];
  const [begin, end] = ends.map((at) => Date.parse(String(at)));
  const hours = Math.abs(end! - begin!) / 3_600_000;
  const [length] = USUAL.find(([, each]) => hours / each <= FEW) ?? USUAL.at(-1)!;
  const { lengths } = summaries!;
  return lengths.slice(0, lengths.indexOf(length) + 1).reverse();
}

/** The items of a point, from the first of them on. `undefined` if no filter chooses those of its group. */
function itemsOf({ definition, parameters }: TabProps, point: SummaryPoint, group: string | undefined): Partial<Parameters> | undefined {
  const { start, end, firstSeq = 1 } = point;
  const value = group === undefined ? undefined : point.group?.[group];
  const isFilter = definition.filters.some(({ name }) => name === group);
  if (group !== undefined && (value === undefined || !isFilter)) return undefined;
  return {
    from: start,
    to: end,
    filters: { ...parameters.filters, ...(group !== undefined && value !== undefined ? { [group]: [value] } : {}) },
    order: "asc",
    ...(firstSeq > 1 ? { after: firstSeq - 1 } : {}),
  };
}

function madeOfWords({ definition, parameters, total }: TabProps, { points, firstSeq, more }: Gathered, asOf: number): string {
  const drawn = points.reduce((sum, point) => sum + point.count, 0);
  const items = count(drawn, definition.items);
  if (more) return `the first ${items}, until ${points.at(-1)!.end.slice(0, 10)}: longer spans show more`;
  if (isSelection(parameters)) return `all ${items} of this selection, in whole spans`;
  if (firstSeq > 1 && drawn === total - firstSeq + 1) return `all ${items} from number ${number(firstSeq)} on`;
  return drawn === total && total === asOf ? `all ${items}` : `${number(drawn)} of ${count(total, definition.items)}`;
}

/** All points, of spans of the first of these lengths that is not too long for the service. */
async function gather(
  history: AnyHistory,
  query: Record<string, string | string[]>,
  lengths: string[],
  signal: AbortSignal,
  onProgress: (count: number) => void,
): Promise<Gathered> {
  for (const length of lengths) {
    try {
      return await pointsBy(length);
    } catch (error) {
      // Or it would be short enough with tiles, which are being made.
      const isTooLong = error instanceof ProblemError && (error.status === 422 || error.type.endsWith("#summary-not-ready"));
      if (!isTooLong || length === lengths.at(-1)) throw error;
    }
  }
  throw new Error("there is no length to choose");

  async function pointsBy(length: string): Promise<Gathered> {
    const points: SummaryPoint[] = [];
    let firstSeq = 1;
    onProgress(0);
    for (let next: string | undefined = pathOf(`${history.path}/summary`, { by: length, ...query }); next; ) {
      let answer: Awaited<ReturnType<typeof readSummary>>;
      try {
        answer = await readSummary(history, next, { signal });
      } catch (error) {
        // What is there is drawn, if the service has no place for more.
        const isBusy = error instanceof ProblemError && [429, 503].includes(error.status);
        if (isBusy && points.length > 0) return { points, length, firstSeq, more: true };
        throw error;
      }
      points.push(...answer.points);
      firstSeq = answer.firstSeq ?? 1;
      onProgress(points.length);
      next = answer.links.next;
      if (points.length >= MOST) return { points, length, firstSeq, more: next !== undefined };
    }
    return { points, length, firstSeq, more: false };
  }
}
