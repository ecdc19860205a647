import { render } from "preact";
import { followLinks } from "./address";
import { App } from "./app";

followLinks();
const root = document.getElementById("app")!;
root.replaceChildren();
render(<App />, root);
