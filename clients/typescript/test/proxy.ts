// A proxy that cuts connections where a test says so.

import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import type { TestContext } from "node:test";

/** A proxy before `target`. It cuts connection `n`, counted from 0, after `after(n)` bytes of answers. */
export async function proxy(t: TestContext, target: string, after: (n: number) => number) {
  const { hostname, port } = new URL(target);
  const sockets = new Set<Socket>();
  const proxied = { baseUrl: "", connections: 0 };
  const server = createServer((client) => {
    let left = after(proxied.connections++);
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
