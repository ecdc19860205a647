// One history: its head, and a tab for what is done with it.

import { GoneError } from "@pagebucket/client";
import { useMemo } from "preact/hooks";
import { addressOf, go } from "../address";
import type { Definition } from "../api/catalog";
import { historyOf, ownerPath, summaries, type Summary } from "../api/read";
import { may, readOnly } from "../api/service";
import { AppendTab } from "../history/append";
import { ChartTab } from "../history/chart";
import { ItemsTab } from "../history/items";
import { useGrowth, type Growth } from "../history/growth";
import { addressOfHistory, readParameters, type Parameters, type Tab } from "../history/parameters";
import type { TabProps } from "../history/tab";
import { count, number, plural, singular } from "../format";
import { CurlRow, curlOf } from "../parts/curl";
import { useLoaded } from "../parts/loaded";
import { Failure, Gone, Problem } from "../parts/problem";
import { Text } from "../parts/text";

export function HistoryView({ definition, owner, query }: { definition: Definition; owner: string; query: URLSearchParams }) {
  const parameters = readParameters(query, definition);
  const history = useMemo(() => historyOf(definition, owner), [definition, owner]);
  const loaded = useLoaded("summary", async (signal) => (await summaries(definition, owner, signal))[definition.items] as Summary);
  const summary = loaded.data;
  const growth = useGrowth(history, summary?.totalItems, parameters.live);
  const total = Math.max(summary?.totalItems ?? 0, growth.position);
  const toPage = (page: number) => addressOfHistory(definition, owner, { page, order: "asc" });
  const gone = loaded.error instanceof GoneError ? loaded.error : growth.error instanceof GoneError ? growth.error : undefined;
  const live = `# This one goes on until it is stopped:\n# ${curlOf(`${history.path}/live?after=${summary?.totalItems}`)}`;
  const asked = [curlOf(ownerPath(definition.owners, owner)), ...(summary && parameters.live ? [live] : [])];
  const isErased = gone !== undefined && gone.firstPage === undefined;
  return (
    <>
      <div class="head history">
        <div>
          <h1>
            {definition.title} <span class="quiet">of {singular(definition.owners)}</span> <Text of={owner} />
          </h1>
          {summary && <Facts definition={definition} summary={summary} total={total} />}
        </div>
        {summary && <LiveSwitch definition={definition} owner={owner} parameters={parameters} growth={growth} />}
      </div>
      {gone && <Gone error={gone} href={toPage} />}
      {loaded.error !== undefined && !gone && (
        <Failure error={loaded.error}>
          <button type="button" onClick={loaded.again}>
            Try again
          </button>
        </Failure>
      )}
      {growth.error !== undefined && !gone && <Problem error={growth.error} />}
      {summary && !isErased && (
        <>
          <Tabs definition={definition} owner={owner} parameters={parameters} />
          <TabContent {...{ definition, owner, parameters, summary, growth, total, asked }} />
        </>
      )}
      {(loaded.error !== undefined || isErased) && <CurlRow commands={asked} />}
    </>
  );
}

function TabContent(props: TabProps) {
  const { tab } = props.parameters;
  if (tab === "chart") return <ChartTab {...props} />;
  if (tab === "append")
    return may("append") ? (
      <AppendTab {...props} />
    ) : (
      <p class="note">
        {readOnly() ? "This browser only reads: the switch is at the top of the page." : "Your token does not allow to append."}
      </p>
    );
  return <ItemsTab {...props} />;
}

function Facts({ definition, summary, total }: { definition: Definition; summary: Summary; total: number }) {
  const { pageSize, items } = definition;
  return (
    <p class="facts">
      <strong data-total={total}>{count(total, items)}</strong> on {count(Math.ceil(total / pageSize), "pages")} of {pageSize}
      {summary.firstPage > 1 && (
        <span class="tag warn">
          begins with page {number(summary.firstPage)}, number {number(summary.firstSeq)}: what was before is deleted
        </span>
      )}
    </p>
  );
}

const WORDS: Record<Growth["state"], string> = {
  off: "paused",
  connecting: "connecting",
  stream: "live",
  polling: "live",
  waiting: "not connected, trying again",
  ended: "ended",
};

function LiveSwitch({ definition, owner, parameters, growth }: Omit<TabProps, "summary" | "total" | "asked">) {
  const { live } = parameters;
  const toggle = () => go(addressOfHistory(definition, owner, { ...parameters, live: !live }), { replace: true });
  return (
    <button
      type="button"
      class={`live ${growth.state}`}
      role="switch"
      aria-checked={live}
      aria-label="Live"
      aria-describedby="live-state"
      onClick={toggle}
      title={live ? "Pause" : "Go on where it was paused"}
    >
      <span class="dot" aria-hidden="true" />{" "}
      <span id="live-state" data-live={growth.state}>{live && growth.state === "off" ? "connecting" : WORDS[growth.state]}</span>
    </button>
  );
}

function Tabs({ definition, owner, parameters }: { definition: Definition; owner: string; parameters: Parameters }) {
  const tabs: [Tab, string][] = [
    ["items", definition.title],
    ["chart", "Chart"],
  ];
  if (may("append")) tabs.push(["append", "Append"]);
  return (
    <nav class="tabs" aria-label={`Views of these ${plural(definition.items)}`}>
      {tabs.map(([tab, name]) => (
        <a
          key={tab}
          href={addressOfHistory(definition, owner, { ...parameters, tab })}
          aria-current={tab === parameters.tab ? "page" : undefined}
        >
          {name}
        </a>
      ))}
      <a class="right" href={addressOf([definition.owners, owner])}>
        All of this {singular(definition.owners)}
      </a>
    </nav>
  );
}
