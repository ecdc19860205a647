// A document for React, without a browser.

import { Window } from "happy-dom";
import type { ReactNode } from "react";

const window = new Window({ url: "http://127.0.0.1/" });
const { document, navigator, HTMLElement, HTMLIFrameElement } = window;
// Node.js from 21 on has a navigator, which cannot be assigned to.
for (const [name, value] of Object.entries({ window, document, navigator, HTMLElement, HTMLIFrameElement })) {
  Object.defineProperty(globalThis, name, { value, configurable: true });
}

/** What a component hands to `done`. */
export async function found<T>(render: (done: (found: T) => void, failed: (error: unknown) => void) => ReactNode): Promise<T> {
  const { createRoot } = await import("react-dom/client"); // it looks for a document when it is loaded
  const root = createRoot(globalThis.document.createElement("div"));
  try {
    return await new Promise<T>((done, failed) => root.render(render(done, failed)));
  } finally {
    root.unmount();
  }
}
