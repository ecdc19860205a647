// The frame of all views: where the reader is, and what each view is.

import { useEffect, useRef, useState } from "preact/hooks";
import { addressOf, useAddress, type Address, type Place } from "./address";
import { CATALOG, readCatalog, readDefinition, type Catalog, type Outline } from "./api/catalog";
import { BASE, docsNeedToken, onSignIn, readOnly, refusal, setDocsNeedToken, setReadOnly, signedIn, signInTurn } from "./api/service";
import { Announcer } from "./parts/announce";
import { CurlRow, curlOf } from "./parts/curl";
import { useLoaded } from "./parts/loaded";
import { Failure } from "./parts/problem";
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
  const catalog = await readCatalog(signal);
  setDocsNeedToken(catalog.docsNeedToken);
  return catalog;
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
  const refused = refusal() !== undefined;
  return (
    <>
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <header class="bar">
        <Crumbs place={place} />
        <nav class="row" aria-label="Service">
          {/* From the beginning: what comes later moves what stands below. */}
          {!refused && <a href={addressOf(["page-views"])}>Page views</a>}
          {!docsNeedToken() && !refused && <a href={`${BASE}/docs/`}>API</a>}
          {(catalog.data?.needsToken || refused || signedIn()) && (
            <button type="button" class="small" aria-expanded={asking || refused} onClick={() => setAsking(!asking)}>
              {signedIn() && !refused ? "Signed in" : "Sign in"}
            </button>
          )}
          <ReadOnlySwitch />
          <ThemeButton />
        </nav>
      </header>
      <main id="main" tabIndex={-1}>
        {(asking || refused) && <SignIn onDone={() => setAsking(false)} />}
        <Failure error={catalog.error}>
          <button type="button" onClick={catalog.again}>
            Try again
          </button>
        </Failure>
        {catalog.error !== undefined && <CurlRow commands={[curlOf(CATALOG)]} />}
        {!catalog.data && catalog.loading && (
          <p class="quiet loading" role="status">
            Asking the service which histories it keeps …
          </p>
        )}
        {catalog.data && <View key={`${signInTurn()} ${JSON.stringify(place)}`} address={address} catalog={catalog.data} />}
      </main>
      <footer>
        <RequestPanel />
      </footer>
      <Announcer />
    </>
  );
}

/** Whoever looks only wants no button that stores. */
function ReadOnlySwitch() {
  const on = readOnly();
  return (
    <button
      type="button"
      class="small switch"
      role="switch"
      aria-checked={on}
      title="Whether this browser hides what appends"
      onClick={() => setReadOnly(!on)}
    >
      <span class="dot" aria-hidden="true" /> Read only
    </button>
  );
}

function View({ address: { place, query }, catalog }: { address: Address; catalog: Catalog }) {
  if (place.view === "start") return <StartView catalog={catalog} />;
  if (place.view === "page-views") return <PageViewsView query={query} />;
  const ofOwners = catalog.histories.filter(({ owners }) => owners === place.owners);
  if (ofOwners.length === 0) return <Unknown what={place.owners} />;
  if (place.view === "owners") return <OwnersView histories={ofOwners} query={query} />;
  if (place.view === "owner") return <OwnerView histories={ofOwners} owner={place.owner} />;
  const outline = ofOwners.find(({ items }) => items === place.items);
  return outline ? <ViewOfHistory key={outline.items} outline={outline} place={place} query={query} /> : <Unknown what={place.items} />;
}

type PlaceInHistory = Extract<Place, { items: string }>;

function ViewOfHistory({ outline, place, query }: { outline: Outline; place: PlaceInHistory; query: URLSearchParams }) {
  const { data: definition, error, again } = useLoaded(outline.items, () => readDefinition(outline));
  if (!definition)
    return error === undefined ? (
      <p class="quiet loading" role="status">
        Asking the service what the {outline.items} are …
      </p>
    ) : (
      <Failure error={error}>
        <button type="button" onClick={again}>
          Try again
        </button>
      </Failure>
    );
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
      <CurlRow commands={[curlOf(CATALOG)]} />
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
