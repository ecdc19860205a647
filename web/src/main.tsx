import { render } from "preact";
import { followLinks, readAddress, type Place } from "./address";
import { CATALOG, definitionPath } from "./api/catalog";
import { finishSignIn } from "./api/issuer";
import { ownerPath, readAhead } from "./api/read";
import { BASE } from "./api/service";
import { App } from "./app";

followLinks();
// The page's address changes, and relative to another one its icon is elsewhere.
document.querySelector<HTMLLinkElement>("link[rel=icon]")!.href = `${BASE}/icon.svg`;
void finishSignIn().then(() => {
  beginWith(readAddress().place);
  const root = document.getElementById("app")!;
  root.replaceChildren();
  render(<App />, root);
});

/** What the first view waits for is asked for before anything is drawn. That of a history needs what its address names, too. */
function beginWith(place: Place): void {
  readAhead(CATALOG);
  if ("items" in place) readAhead(definitionPath(place.items));
  if (place.view === "history") readAhead(ownerPath(place.owners, place.owner));
}
