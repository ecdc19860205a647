import { render } from "preact";
import { followLinks } from "./address";
import { finishSignIn } from "./api/issuer";
import { App } from "./app";

followLinks();
void finishSignIn().then(() => {
  const root = document.getElementById("app")!;
  root.replaceChildren();
  render(<App />, root);
});
