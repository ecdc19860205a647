// A proxy that cuts connections where a test says so.

import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import type { TestContext } from "node:test";

/** A proxy before `targets`, in turns. It cuts connection `n`, counted from 0, after `after(n)` bytes of answers. */
export async function proxy(t: TestContext, targets: string | readonly string[], after: (n: number) => number) {
  const sockets = new Set<Socket>();
  const proxied = { baseUrl: "", connections: 0 };
  const server = createServer((client) => {
    const n = proxied.connections++;
    const { hostname, port } = new URL([targets].flat()[n % [targets].flat().length]!);
    let left = after(n);
    const service = connect(Number(port), hostname);
    for (const socket of [client, service]) {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => {
        client.destroy();
        service.destroy();
        sockets.delete(socket);
      });
    }
    client.pipe(service);
    service.on("data", (piece) => {
      const passed = piece.subarray(0, left);
      left -= passed.length;
      const cut = left === 0;
      client.write(passed, () => cut && client.destroy());
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  proxied.baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return proxied;
}

/** Cuts four connections at random, each within what 200 trades take, and not inside the head of an answer. */
export function randomCuts(t: TestContext): (n: number) => number {
  const cuts = Array.from({ length: 4 }, () => 1000 + Math.floor(Math.random() * 16_000));
  t.diagnostic(`connections are cut after ${cuts} bytes`);
  return (n) => cuts[n] ?? Infinity;
}
