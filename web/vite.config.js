import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { defineConfig } from "vite";

const path = (relative) => fileURLToPath(new URL(relative, import.meta.url));

/** The licences of the packages that are in the build, as a file of it. */
const licences = () => ({
  name: "licences",
  apply: "build",
  generateBundle() {
    const { dependencies } = JSON.parse(readFileSync(path("package.json"), "utf8"));
    const texts = Object.keys(dependencies).map((name) => `${name}\n\n${readFileSync(path(`node_modules/${name}/LICENSE`), "utf8").trim()}\n`);
    this.emitFile({ type: "asset", name: "licences.txt", source: texts.join("\n\n") });
  },
});

// A service to develop against: `make run`, then `npm run dev`.
const service = process.env.PAGEBUCKET_URL ?? "http://127.0.0.1:8080";
const served = ["/v1", "/docs", "/histories", "/openapi", "/problems", "/site.css", "/livez", "/readyz", "/.well-known"];

export default defineConfig({
  // What is served beside the assets is the server's own file, not the build's.
  publicDir: false,
  // Addresses relative to the page: the server adapts them to the page's own address.
  base: "./",
  resolve: {
    alias: { "@pagebucket/client": path("../clients/typescript/src/index.ts") },
    // The client's sources use our copy.
    dedupe: ["eventsource-parser"],
  },
  build: {
    target: "es2022",
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    reportCompressedSize: true,
    rolldownOptions: { input: path("index.html") },
  },
  server: {
    proxy: Object.fromEntries(served.map((path) => [path, service])),
    fs: { allow: [path("..")] },
  },
  plugins: [licences()],
});
