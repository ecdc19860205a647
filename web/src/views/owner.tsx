// One owner: the summary of each of its histories.

import { addressOf } from "../address";
import type { Outline } from "../api/catalog";
import { ownerPath, summaries, type Summary } from "../api/read";
import { count, number, singular } from "../format";
import { CurlRow, curlOf } from "../parts/curl";
import { useLoaded } from "../parts/loaded";
import { Failure } from "../parts/problem";
import { Text } from "../parts/text";
import { Time } from "../parts/zone";

export function OwnerView({ histories, owner }: { histories: Outline[]; owner: string }) {
  const { owners } = histories[0]!;
  const loaded = useLoaded(owner, (signal) => summaries(histories[0]!, owner, signal));
  return (
    <>
      <div class="head">
        <h1>
          <span class="quiet">{singular(owners)}</span> <Text of={owner} />
        </h1>
      </div>
      <Failure error={loaded.error} href={() => addressOf([owners, owner])} />
      <div class="cards">
        {loaded.data &&
          histories.map((outline) => (
            <HistoryCard key={outline.items} outline={outline} owner={owner} summary={loaded.data![outline.items] as Summary} />
          ))}
      </div>
      <CurlRow commands={[curlOf(ownerPath(owners, owner))]} />
    </>
  );
}

function HistoryCard({
  outline: { owners, items, title, about, date },
  owner,
  summary,
}: {
  outline: Outline;
  owner: string;
  summary: Summary;
}) {
  const { totalItems, totalPages, firstPage, first, last } = summary;
  return (
    <section class="card">
      <h2>
        <a href={addressOf([owners, owner, items])}>{title}</a>
      </h2>
      <p class="quiet">
        <Text of={about} />
      </p>
      <p>
        <strong>{count(totalItems, items)}</strong> on {count(totalPages, "pages")}
      </p>
      {first && last && (
        <p class="quiet">
          numbers {number(first.seq)} to {number(last.seq)}, the last of <Time of={String(last[date])} />
        </p>
      )}
      {firstPage > 1 && (
        <p>
          <span class="tag warn">
            begins with page {number(firstPage)}, number {number(first?.seq ?? summary.firstSeq)}
            {first && <> of <Time of={String(first[date])} /></>}: what was before is deleted
          </span>
        </p>
      )}
    </section>
  );
}
