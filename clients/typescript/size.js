// Prints how many bytes the client and each adapter add to a page, minified and compressed, and fails if the client alone is
// above the limit.

import { build } from "esbuild";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const LIMIT = 6500;

/** The bytes of a page's bundle that uses these exports. */
async function size(exports, of = "@pagebucket/client") {
  const contents = `export ${exports} from "${of}";`;
  const resolveDir = fileURLToPath(new URL(".", import.meta.url));
  const options = { bundle: true, minify: true, format: "esm", target: "es2022", write: false };
  const { outputFiles } = await build({ stdin: { contents, resolveDir }, ...options });
  return gzipSync(outputFiles[0].contents, { level: 9 }).length;
}

const everything = await size("*");
console.log(`${everything} bytes for everything, minified and compressed by gzip (at most ${LIMIT})`);
for (const exports of ["{ append, trades }", "{ pages, trades }", "{ all, trades }", "{ live, trades }"]) {
  const part = await size(exports);
  console.log(`${part} bytes for ${exports}`);
  if (part > everything * 0.8) throw new Error(`a bundle with ${exports} alone has more than it uses`);
}
const { name, exports: entries } = JSON.parse(readFileSync(new URL("package.json", import.meta.url)));
for (const entry of Object.keys(entries).filter((entry) => entry !== ".")) {
  console.log(`${await size("*", name + entry.slice(1))} bytes for ${entry.slice(2)}, with what it uses of the client`);
}
if (everything > LIMIT) throw new Error(`the client is larger than ${LIMIT} bytes`);
