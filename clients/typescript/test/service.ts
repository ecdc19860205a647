// The real service, with a private mongod.

import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** The program, or why there is none. */
export const { PAGEBUCKET } = process.env;
// In CI a test that would be skipped fails: it does not find the program.
export const skip = PAGEBUCKET || process.env["CI"] ? false : "PAGEBUCKET names no program";

export const root = join(import.meta.dirname, "../../..");

/** Longer than anything takes on a slow machine. Only a failure waits for it. */
const PATIENCE = 90_000;

export class RealService {
  #process: ChildProcess | undefined;
  readonly #directory = mkdtempSync(join(tmpdir(), "pagebucket-client-"));
  baseUrl = "";

  constructor() {
    // Trades, and the histories of the examples.
    const histories = join(this.#directory, "histories");
    cpSync(join(root, "examples/histories"), histories, { recursive: true });
    writeFileSync(join(histories, "trades.json"), execFileSync(PAGEBUCKET!, ["histories", "show", "trades"]));
  }

  /** Starts it, or starts it again at the same address. */
  async start(): Promise<this> {
    const listen = this.baseUrl ? new URL(this.baseUrl).host : "127.0.0.1:0";
    const flags = ["--listen", listen, "--data-dir", join(this.#directory, "data"), "--histories", join(this.#directory, "histories")];
    const { MONGODB_URI: _, ...env } = process.env;
    const child = spawn(PAGEBUCKET!, ["serve", ...flags], { env, stdio: ["ignore", "pipe", "pipe"] });
    this.#process = child;
    let log = "";
    child.stderr.on("data", (piece) => (log += piece));
    const told = new Promise<string>((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`the service does not tell its address:\n${log}`)), PATIENCE);
      child.once("exit", () => reject(new Error(`the service does not start:\n${log}`)));
      createInterface(child.stdout).on("line", (line) => {
        const address = /listens on (http:\S+)/.exec(line)?.[1];
        if (!address) return;
        clearTimeout(timer);
        resolve(address);
      });
    });
    this.baseUrl = await told;
    return this;
  }

  /** Stops the service and its mongod, in order. */
  async stop(): Promise<void> {
    const child = this.#process;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGTERM");
    const timer = setTimeout(() => child.kill("SIGKILL"), PATIENCE);
    await ended;
    clearTimeout(timer);
  }

  /** Stops it, and removes its data. */
  async remove(): Promise<void> {
    await this.stop();
    rmSync(this.#directory, { recursive: true });
  }
}
