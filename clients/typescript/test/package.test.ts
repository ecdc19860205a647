// What the package has: its README, whose examples run as printed, and its files.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { pathToFileURL } from "node:url";

import { transform } from "esbuild";

import { RealService, skip } from "./service.js";

// The tests run in `build`, beside `src`.
const root = join(import.meta.dirname, "..");
const readme = readFileSync(join(root, "README.md"), "utf8");
const [quickStart, ...examples] = [...readme.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code]) => code!);

// Below the package, so that its name means this package.
const directory = join(import.meta.dirname, "readme");

/** What the examples after the quick start take for granted. */
const GIVEN = `
import { all, append, followQuery, GoneError, history, item, list, listQuery, live, liveBatches, liveMany, liveOwners, newest, newKey, page, pages, ProblemError, trades, windows } from "@pagebucket/client";
import { QueryClient } from "@tanstack/query-core";
const service = { baseUrl: "http://127.0.0.1:8080" };
const mine = trades(service, 7);
const queryClient = new QueryClient();
const show = (..._: unknown[]) => {};
export const given = { all, followQuery, GoneError, history, listQuery, live, liveBatches, liveMany, liveOwners, queryClient, show, item, list, newest, newKey, page, pages, ProblemError, windows, mine, service };
`;

test("the examples of the README have no type errors", () => {
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory);
  const flags = { noEmit: true, noUnusedLocals: false, rootDir: "." };
  writeFileSync(join(directory, "tsconfig.json"), JSON.stringify({ extends: "../../tsconfig.json", compilerOptions: flags, include: ["."] }));
  writeFileSync(join(directory, "quick-start.ts"), quickStart!);
  assert(examples.length >= 7, `${examples.length}`);
  for (const [number, code] of examples.entries()) writeFileSync(join(directory, `${number}.ts`), GIVEN + code);
  try {
    execFileSync(join(root, "node_modules/.bin/tsc"), ["-p", directory], { encoding: "utf8" });
  } catch (error) {
    assert.fail((error as { stdout: string }).stdout);
  }
});

suite("the quick start of the README", { skip }, () => {
  let service: RealService;
  before(async () => {
    service = await new RealService().start();
  });
  after(() => service.remove());

  test("does what it says", async (t) => {
    const { code } = await transform(quickStart!.replace("http://127.0.0.1:8080", service.baseUrl), { loader: "ts" });
    const program = join(directory, "quick-start.js");
    writeFileSync(program, code);
    const printed = t.mock.method(console, "log", () => {});
    await import(pathToFileURL(program).href);
    const lines = printed.mock.calls.map(({ arguments: words }) => (words as unknown[]).join(" "));
    assert.deepEqual(lines, ["stored as number 1", "1 trades, the newest is of AMD", "page 1 has 1", "1 448"]);
  });
});

test("the package has licences, source maps, and everything that it exports, and works when it is installed", (t) => {
  const project = mkdtempSync(join(tmpdir(), "pagebucket-package-"));
  t.after(() => rmSync(project, { recursive: true }));
  // Without scripts: the other tests use what is built already.
  const pack = ["pack", "--json", "--ignore-scripts", "--pack-destination", project];
  const [packed] = JSON.parse(execFileSync("npm", pack, { cwd: root, encoding: "utf8", stdio: "pipe" }));
  const files: string[] = packed.files.map(({ path }: { path: string }) => path);
  // What it exports has types for all who can import it; it has no CommonJS.
  execFileSync(join(root, "node_modules/.bin/attw"), ["--profile", "esm-only", join(project, packed.filename)], { encoding: "utf8" });
  const { dependencies, name, exports, keywords, license } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  assert.deepEqual(files.filter((path) => !path.startsWith("dist/")), ["LICENSE-APACHE", "LICENSE-MIT", "README.md", "package.json"]);
  assert.equal(license, "MIT OR Apache-2.0");
  assert(keywords.length > 0);
  const adapters = readdirSync(join(root, "src/adapters")).map((file) => `./adapters/${file.replace(".ts", "")}`);
  const inner = ["./adapters/matching", "./adapters/records", "./adapters/snapshot"];
  assert.deepEqual(Object.keys(exports).sort(), [".", ...adapters.filter((path) => !inner.includes(path))].sort());
  for (const path of files.filter((path) => path.endsWith(".js"))) {
    assert(files.includes(`${path}.map`), path);
    const { sources, sourcesContent } = JSON.parse(readFileSync(join(root, `${path}.map`), "utf8"));
    assert.deepEqual([sources.length, sourcesContent.length], [1, 1], path);
  }

  const installed = join(project, "node_modules", name);
  mkdirSync(installed, { recursive: true });
  execFileSync("tar", ["-xzf", join(project, packed.filename), "-C", installed, "--strip-components=1"]);
  for (const name of Object.keys(dependencies)) cpSync(join(root, "node_modules", name), join(project, "node_modules", name), { recursive: true });
  const specifiers = Object.keys(exports).map((path) => name + path.slice(1));
  writeFileSync(join(project, "package.json"), '{ "type": "module" }');
  writeFileSync(join(project, "all.ts"), specifiers.map((path, n) => `import * as e${n} from "${path}";\nvoid e${n};\n`).join(""));
  const flags = ["--module", "nodenext", "--target", "es2022", "--strict", "--lib", "es2022,dom,dom.iterable"];
  try {
    execFileSync(join(root, "node_modules/.bin/tsc"), [...flags, "all.ts"], { cwd: project, encoding: "utf8" });
  } catch (error) {
    assert.fail((error as { stdout: string }).stdout);
  }
  execFileSync(process.execPath, ["all.js"], { cwd: project });
});

test("a copy of the directory alone can be built, and has the licences of the repository", (t) => {
  const copy = mkdtempSync(join(tmpdir(), "pagebucket-copy-"));
  t.after(() => rmSync(copy, { recursive: true }));
  for (const name of readdirSync(root).filter((name) => !["node_modules", "dist", "build"].includes(name))) cpSync(join(root, name), join(copy, name), { recursive: true });
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
  const [packed] = JSON.parse(execFileSync("npm", ["pack", "--json", "--silent"], { cwd: copy, encoding: "utf8", stdio: "pipe" }));
  const files: string[] = packed.files.map(({ path }: { path: string }) => path);
  for (const name of ["LICENSE-APACHE", "LICENSE-MIT"]) {
    assert(files.includes(name), name);
    assert.equal(readFileSync(join(root, name), "utf8"), readFileSync(join(root, "../..", name), "utf8"));
  }
});

test("the README has no links that only the repository has", () => {
  const links = [...readme.matchAll(/\]\(([^)]*)\)/g)].map(([, link]) => link!);
  assert(links.length > 2);
  assert.deepEqual(links.filter((link) => !/^(#|https:\/\/)/.test(link)), []);
});
