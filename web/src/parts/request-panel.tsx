// The requests that this page has made: what each took, and who has answered it.

import { clearRequests, onRequests, requests, type Sent } from "../api/requests";
import { bytes, count, milliseconds } from "../format";
import { useChanges } from "./store";
import { plain } from "./text";

export function RequestPanel() {
  useChanges(onRequests);
  const all = requests();
  const cached = all.filter(({ by }) => by === "browser's cache").length;
  return (
    <details class="requests">
      <summary>
        {count(all.length, "requests")}
        {cached > 0 && <span class="quiet">, {cached} answered by the browser's cache</span>}
      </summary>
      <div class="scroll" tabIndex={0} role="region" aria-label="Requests of this page">
        <table>
          <thead>
            <tr>
              <th>Request</th>
              <th>Status</th>
              <th class="right">Time</th>
              <th>Answered by</th>
              <th class="right">Size</th>
              <th>Server-Timing</th>
            </tr>
          </thead>
          <tbody>
            {all.map((one) => (
              <Row key={one.id} one={one} />
            ))}
          </tbody>
        </table>
      </div>
      <button type="button" class="small" onClick={clearRequests}>
        Clear
      </button>
    </details>
  );
}

function Row({ one: { method, path, status, time, timing, by, bytes: size, failed } }: { one: Sent }) {
  return (
    <tr>
      <td>
        <code>
          {method} {plain(path)}
        </code>
      </td>
      <td>{failed ?? status ?? "…"}</td>
      <td class="right">{time === undefined ? "" : milliseconds(time)}</td>
      <td>{by === "browser's cache" ? <span class="tag final">{by}</span> : (by ?? "")}</td>
      <td class="right">{size === undefined ? "" : bytes(size)}</td>
      <td>
        <code>{by === "browser's cache" ? "" : timing}</code>
      </td>
    </tr>
  );
}
