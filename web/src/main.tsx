import { render } from "preact";
import { followLinks, readAddress, type Place } from "./address";
import { definitionPath } from "./api/catalog";
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

/** The first view of a history waits for the catalogue, for its definition and for its summary: the address says all three. */
function beginWith(place: Place): void {
  if ("items" in place) readAhead(definitionPath(place.items));
  if (place.view === "history") readAhead(ownerPath(place.owners, place.owner));
}
