// The real service, with a private mongod. The tests of the adapters and of the explorer use it, too.

import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";

/** The program, or why there is none. */
export const { PAGEBUCKET } = process.env;
// In CI a test that would be skipped fails: it does not find the program.
export const skip = PAGEBUCKET || process.env["CI"] ? false : "PAGEBUCKET names no program";

/** The checkout, wherever this file is compiled to. */
export const root = checkoutAround(import.meta.dirname);

function checkoutAround(directory: string): string {
  return existsSync(join(directory, "Cargo.lock")) ? directory : checkoutAround(dirname(directory));
}

/** Longer than anything takes on a slow machine. Only a failure waits for it. */
const PATIENCE = 300_000;

export class RealService {
  #process: ChildProcess | undefined;
  readonly directory = mkdtempSync(join(tmpdir(), "pagebucket-client-"));
  baseUrl = "";

  /** With these flags of `serve`, beside those that it needs; on the database of another one, or with a mongod of its own. */
  constructor(
    readonly flags: string[] = [],
    readonly other?: RealService,
  ) {
    // Trades, and the histories of the examples.
    const histories = join(this.directory, "histories");
    cpSync(join(root, "examples/histories"), histories, { recursive: true });
    writeFileSync(join(histories, "trades.json"), execFileSync(PAGEBUCKET!, ["histories", "show", "trades"]));
  }

  /** Starts it, or starts it again at the same address. */
  async start(): Promise<this> {
    const listen = this.baseUrl ? new URL(this.baseUrl).host : "127.0.0.1:0";
    const flags = ["--listen", listen, ...this.place(), ...this.flags];
    const child = spawn(PAGEBUCKET!, ["serve", ...flags], { env: environment(), stdio: ["ignore", "pipe", "pipe"] });
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

  /** Where its mongod is, while it runs. */
  #uri(): string {
    const [password, port] = ["password", "port"].map((name) => readFileSync(join(this.directory, "data", name), "utf8").trim());
    return `mongodb://pagebucket:${password}@127.0.0.1:${port}/?directConnection=true`;
  }

  /** The output of another command on the same data. */
  command(...words: string[]): string {
    const all = [...words, ...this.place()];
    return execFileSync(PAGEBUCKET!, all, { env: environment(), encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  }

  private place(): string[] {
    const database = this.other ? ["--mongodb-uri", this.other.#uri()] : ["--data-dir", join(this.directory, "data")];
    return [...database, "--histories", join(this.directory, "histories")];
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

  /** Kills the service, which has no mongod of its own. */
  async kill(): Promise<void> {
    const ended = once(this.#process!, "exit");
    this.#process!.kill("SIGKILL");
    await ended;
  }

  /** Kills its mongod, which it then starts again. */
  killMongod(): void {
    // Not by its lock file: there a mongod under Wine writes a number that only Wine knows.
    const directory = join(this.directory, "data", "db");
    const is = (pid: string) => {
      try {
        const words = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
        return words[words.indexOf("--dbpath") + 1] === directory;
      } catch {
        return false; // It has ended.
      }
    };
    const found = readdirSync("/proc").filter((name) => /^\d+$/.test(name) && is(name));
    if (found.length !== 1) throw new Error(`${found.length} processes have ${directory}`);
    process.kill(Number(found[0]), "SIGKILL");
  }

  /** Stops it, and removes its data. */
  async remove(): Promise<void> {
    await this.stop();
    rmSync(this.directory, { recursive: true });
  }
}

function environment(): NodeJS.ProcessEnv {
  const { MONGODB_URI: _, ...env } = process.env;
  return env;
}
