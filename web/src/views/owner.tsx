// One owner: the summary of each of its histories.

import { addressOf } from "../address";
import type { Definition } from "../api/catalog";
import { ownerPath, summaries, type Summary } from "../api/read";
import { count, moment, number, singular } from "../format";
import { CurlRow, curlOf } from "../parts/curl";
import { useLoaded } from "../parts/loaded";
import { Failure } from "../parts/problem";
import { Text } from "../parts/text";

export function OwnerView({ definitions, owner }: { definitions: Definition[]; owner: string }) {
  const { owners } = definitions[0]!;
  const loaded = useLoaded(owner, (signal) => summaries(definitions[0]!, owner, signal));
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
          definitions.map((definition) => (
            <HistoryCard key={definition.items} definition={definition} owner={owner} summary={loaded.data![definition.items] as Summary} />
          ))}
      </div>
      <CurlRow commands={[curlOf(ownerPath(owners, owner))]} />
    </>
  );
}

function HistoryCard({
  definition: { owners, items, title, about, date },
  owner,
  summary,
}: {
  definition: Definition;
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
          numbers {number(first.seq)} to {number(last.seq)}, the last of {moment(String(last[date]))}
        </p>
      )}
      {firstPage > 1 && (
        <p>
          <span class="tag warn">begins with page {number(firstPage)}</span>
        </p>
      )}
    </section>
  );
}
