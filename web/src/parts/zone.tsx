// The time zone in which moments are shown and asked for: the browser's own, or UTC. One switch for tables, forms and charts.

import { ofDevice } from "../api/storage";
import { moment } from "../format";
import { Choice } from "./choice";
import { useChanges } from "./store";
import { plain } from "./text";

/** The time zone of this browser. */
export const OWN_ZONE = ownZone();

function ownZone(): string {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  return !zone || zone === "Etc/UTC" ? "UTC" : zone;
}

const STORED = "pagebucket.zone";
const listeners = new Set<() => void>();
let shown = ofDevice.get(STORED) === "UTC" ? "UTC" : OWN_ZONE;

function onZone(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useZone(): string {
  useChanges(onZone);
  return shown;
}

function setZone(zone: string): void {
  shown = zone;
  ofDevice.set(STORED, zone === "UTC" ? "UTC" : undefined);
  for (const listener of listeners) listener();
}

interface Props {
  /** A third zone, which an address names. */
  other?: string | undefined;
  onValue?: ((zone: string) => void) | undefined;
}

export function ZoneChoice({ other, onValue }: Props) {
  const zone = useZone();
  const zones = [...new Set([OWN_ZONE, "UTC", other ?? zone])];
  if (zones.length === 1) return null;
  const choose = (zone: string) => {
    if (zone === OWN_ZONE || zone === "UTC") setZone(zone);
    onValue?.(zone);
  };
  return (
    <Choice label="times in" name="Time zone" value={other ?? zone} options={zones.map((name) => [name, plain(name)])} onValue={choose} />
  );
}

/** In which zone moments are shown. */
export function ZoneName() {
  return <span class="zone">{useZone()}</span>;
}

/** A moment as the clocks of that zone show it. */
export function Time({ of }: { of: string }) {
  const zone = useZone();
  return (
    <time dateTime={of} title={zone === "UTC" ? undefined : of}>
      {moment(of, zone)}
    </time>
  );
}
