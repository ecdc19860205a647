// An nginx before the service, in several configurations, each at a port of its own.

import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { root } from "./service.js";

export const { NGINX } = process.env;

/** Longer than a start takes on a slow machine. */
const PATIENCE = 300_000;

/** The lines that the documentation has, for these upstreams. */
export function documented(...upstreams: [string, string]): string {
  const [, lines] = /^cat > pagebucket.conf <<'END'\n(.*?)^END$/ms.exec(readFileSync(join(root, "docs/how-to/deploy.md"), "utf8"))!;
  return ["one:8080", "two:8080"].reduce((lines, address, index) => lines.replace(address, new URL(upstreams[index]!).host), lines!);
}

export class Nginx {
  #process: ChildProcess | undefined;
  readonly #directory = mkdtempSync(join(tmpdir(), "pagebucket-nginx-"));
  /** The address of each server. */
  readonly urls: string[] = [];

  /** Starts it with servers that have these lines for `/`, or are {@link documented}. */
  async start(servers: { lines: string; http2?: boolean; documented?: boolean }[]): Promise<this> {
    const ports = await freePorts(servers.length);
    const at = (name: string) => join(this.#directory, name);
    const pair = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-keyout", at("privkey.pem"), "-out", at("fullchain.pem")];
    execFileSync("openssl", ["req", "-x509", "-nodes", "-subj", "/CN=localhost", ...pair], { stdio: "ignore" });
    const server = ({ lines, http2, documented }: (typeof servers)[0], index: number) => {
      const address = `127.0.0.1:${ports[index]}`;
      if (documented) return lines.replace("listen 443", `listen ${address}`).replaceAll("/etc/nginx", this.#directory);
      return `server { listen ${address}${http2 ? " http2" : ""}; location / {\n${lines}} }\n`;
    };
    const paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((name) => `${name}_temp_path ${at(name)};\n`).join("");
    // Everything else is as the package has it.
    writeFileSync(
      at("nginx.conf"),
      `daemon off; error_log stderr; pid ${at("pid")}; events {}\nhttp { access_log off;\n${paths}${servers.map(server).join("")}}\n`,
    );
    const child = spawn(NGINX!, ["-p", this.#directory, "-c", at("nginx.conf"), "-e", "stderr"], { stdio: ["ignore", "ignore", "pipe"] });
    this.#process = child;
    let log = "";
    child.stderr.on("data", (piece) => (log += piece));
    const deadline = performance.now() + PATIENCE;
    while (!(await accepts(ports[0]!))) {
      if (child.exitCode !== null || performance.now() > deadline) throw new Error(`nginx does not start:\n${log}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    this.urls.push(...ports.map((port, index) => `http${servers[index]!.documented ? "s" : ""}://127.0.0.1:${port}`));
    return this;
  }

  async stop(): Promise<void> {
    const child = this.#process;
    if (child && child.exitCode === null) {
      const ended = once(child, "exit");
      child.kill("SIGTERM");
      await ended;
    }
    rmSync(this.#directory, { recursive: true });
  }
}

async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, "127.0.0.1"));
  await Promise.all(servers.map((server) => once(server, "listening")));
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(servers.map((server) => once(server.close(), "close")));
  return ports;
}

function accepts(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  return new Promise((resolve) => {
    socket.on("connect", () => (socket.destroy(), resolve(true)));
    socket.on("error", () => resolve(false));
  });
}
