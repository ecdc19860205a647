// Pages in a browser, each with one module of its own.

import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";

import { build } from "esbuild";

import { CHROMIUM } from "../../typescript/test/browser.js";
import { root, skip } from "../../typescript/test/service.js";

export const directory = join(root, "clients/typescript-adapters");

/** Why there is no browser with a service to show, or `false`. */
export const why = skip || (CHROMIUM || process.env["CI"] ? false : "CHROMIUM names no browser");

/** Serves a page for each module, at the module's name. Their names must differ. */
export async function site(modules: string[]): Promise<{ origin: string; close: () => void }> {
  const define = { "process.env.NODE_ENV": '"production"' };
  const options = { bundle: true, minify: true, format: "esm", target: "es2022", write: false, define, outdir: "/", entryNames: "[name]" } as const;
  const { outputFiles } = await build({ entryPoints: modules, tsconfig: join(directory, "tsconfig.json"), ...options });
  const server: Server = createServer(({ url }, response) => {
    const script = outputFiles.find(({ path }) => path === url);
    const page = `<!doctype html><link rel="icon" href="data:,"><div id="grid" style="height: 500px"></div><script type="module" src="${url}.js"></script>`;
    response.writeHead(200, { "content-type": script ? "text/javascript" : "text/html" }).end(script?.contents ?? page);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
