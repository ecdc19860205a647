// The frame of all views: where the reader is, and what each view is.

import { ProblemError } from "@pagebucket/client";
import { useEffect, useRef, useState } from "preact/hooks";
import { addressOf, useAddress, type Address, type Place } from "./address";
import { catalogOf, DOCUMENT, type Catalog, type OpenApi } from "./api/catalog";
import { read } from "./api/read";
import { BASE, onSignIn, signedIn, signInTurn } from "./api/service";
import { Announcer } from "./parts/announce";
import { CurlRow, curlOf } from "./parts/curl";
import { useLoaded } from "./parts/loaded";
import { Problem } from "./parts/problem";
import { RequestPanel } from "./parts/request-panel";
import { SignIn } from "./parts/sign-in";
import { useChanges } from "./parts/store";
import { plain, Text } from "./parts/text";
import { ThemeButton } from "./parts/theme";
import { HistoryView } from "./views/history";
import { ItemView } from "./views/item";
import { OwnerView } from "./views/owner";
import { OwnersView } from "./views/owners";
import { PageViewsView } from "./views/page-views";
import { StartView } from "./views/start";

async function loadCatalog(signal: AbortSignal): Promise<Catalog> {
  return catalogOf((await read(DOCUMENT, signal)) as OpenApi);
}

export function App() {
  const address = useAddress();
  useChanges(onSignIn);
  const catalog = useLoaded(`catalog ${signInTurn()}`, loadCatalog);
  const [asking, setAsking] = useState(false);
  const { place } = address;
  const shown = useRef<Place>(undefined);
  useEffect(() => {
    document.title = titleOf(place);
    // Another view begins at its top, for readers of the screen as well.
    if (shown.current !== undefined) {
      document.getElementById("main")!.focus({ preventScroll: true });
      scrollTo({ top: 0 });
    }
    shown.current = place;
  }, [JSON.stringify(place)]);
  const refused = catalog.error instanceof ProblemError && catalog.error.status === 401;
  return (
    <>
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <header class="bar">
        <Crumbs place={place} />
        <nav class="row" aria-label="Service">
          {catalog.data?.pageViews && <a href={addressOf(["page-views"])}>Page views</a>}
          <a href={`${BASE}/docs/`}>API</a>
          {(catalog.data?.signIn || refused || signedIn()) && (
            <button type="button" class="small" aria-expanded={asking} onClick={() => setAsking(!asking)}>
              {signedIn() ? "Signed in" : "Sign in"}
            </button>
          )}
          <ThemeButton />
        </nav>
      </header>
      <main id="main" tabIndex={-1}>
        {(asking || refused) && <SignIn onDone={() => setAsking(false)} />}
        {catalog.error !== undefined && (!refused || signedIn()) && (
          <Problem error={catalog.error}>
            <button type="button" onClick={catalog.again}>
              Try again
            </button>
          </Problem>
        )}
        {catalog.error !== undefined && <CurlRow commands={[curlOf(DOCUMENT)]} />}
        {catalog.data && <View key={`${signInTurn()} ${JSON.stringify(place)}`} address={address} catalog={catalog.data} />}
      </main>
      <footer>
        <RequestPanel />
      </footer>
      <Announcer />
    </>
  );
}

function View({ address: { place, query }, catalog }: { address: Address; catalog: Catalog }) {
  if (place.view === "start") return <StartView catalog={catalog} />;
  if (place.view === "page-views") return <PageViewsView query={query} />;
  const ofOwners = catalog.definitions.filter(({ owners }) => owners === place.owners);
  if (ofOwners.length === 0) return <Unknown what={place.owners} />;
  if (place.view === "owners") return <OwnersView definitions={ofOwners} query={query} />;
  if (place.view === "owner") return <OwnerView definitions={ofOwners} owner={place.owner} />;
  const definition = ofOwners.find(({ items }) => items === place.items);
  if (!definition) return <Unknown what={place.items} />;
  if (place.view === "history") return <HistoryView definition={definition} owner={place.owner} query={query} />;
  return <ItemView definition={definition} owner={place.owner} seq={place.seq} query={query} />;
}

function Unknown({ what }: { what: string }) {
  return (
    <>
      <div class="problem" role="alert">
        <strong>Nothing is here</strong>
        <p>
          This service has no{" "}
          <q>
            <Text of={what} />
          </q>
          . <a href={addressOf()}>See what it has.</a>
        </p>
      </div>
      <CurlRow commands={[curlOf(DOCUMENT)]} />
    </>
  );
}

function Crumbs({ place }: { place: Place }) {
  const parts = Object.values(place).slice(1);
  return (
    <nav class="crumbs" aria-label="Where you are">
      <a class="brand" href={addressOf()}>
        <img src={`${BASE}/icon.svg`} alt="" width="22" height="22" />
        pagebucket
      </a>
      {place.view === "page-views" && <span aria-current="page">page views</span>}
      {parts.map((part, index) => {
        const isLast = index === parts.length - 1;
        return (
          <a key={index} href={addressOf(parts.slice(0, index + 1))} aria-current={isLast ? "page" : undefined}>
            <Text of={part} />
          </a>
        );
      })}
    </nav>
  );
}

function titleOf(place: Place): string {
  const parts = place.view === "page-views" ? ["page views"] : Object.values(place).slice(1);
  return [...parts.map(plain).reverse(), "pagebucket"].join(" · ");
}
