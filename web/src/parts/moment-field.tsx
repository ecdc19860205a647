// A date and a time, as the clocks of the zone show them in which the page shows moments.

import { instantOf, moment } from "../format";
import { useWritten } from "./written";
import { useZone } from "./zone";

interface Props {
  /** An instant, or empty. */
  value: string;
  onValue: (value: string) => void;
  id: string;
  "aria-invalid": boolean;
  "aria-describedby": string | undefined;
}

export function MomentField({ value, onValue, ...common }: Props) {
  const zone = useZone();
  const [wall, write, settle] = useWritten(value, zone, wallOf(value, zone), onValue);
  // The service says what is wrong with a text that is no moment.
  if (wall === undefined)
    return <input {...common} type="text" value={value} onInput={(event) => write(undefined, event.currentTarget.value)} onChange={settle} />;
  const change = (text: string) => {
    const [day, time] = text.split("T") as [string, string?];
    write(text, time === undefined ? "" : instantOf(day, time, zone));
  };
  return <input {...common} type="datetime-local" step={1} value={wall} onInput={(event) => change(event.currentTarget.value)} />;
}

/** What the field shows. `undefined` for a text that is no moment. */
function wallOf(value: string, zone: string): string | undefined {
  if (value === "") return "";
  const at = new Date(value);
  return Number.isNaN(at.getTime()) ? undefined : moment(at.toISOString(), zone).replace(" ", "T");
}
