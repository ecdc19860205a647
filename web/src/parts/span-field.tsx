// One end of a span of time: a day, and a time of it if that is given.

import { dayFrom, fromInstant, instantOf, isDay, moment, toInstant } from "../format";
import { useWritten } from "./written";

interface Props {
  name: "from" | "to";
  /** As addresses have it: a day of UTC, or an instant. */
  value: string;
  zone: string;
  onValue: (value: string) => void;
}

export function SpanField({ name, value, zone, onValue }: Props) {
  const [wall, write, settle] = useWritten(value, zone, wallOf(name, value, zone), onValue);
  const label = (
    <span>
      {name} <span class="quiet">({zone})</span>
    </span>
  );
  if (!wall)
    return (
      <label>
        {label}
        <input type="text" name={name} value={value} onInput={(event) => write(undefined, event.currentTarget.value)} onChange={settle} />
      </label>
    );
  const change = (day: string, time: string) => write({ day, time }, valueOf(name, day, time, zone));
  return (
    <span class="group">
      <label>
        {label}
        <input type="date" name={name} value={wall.day} onInput={(event) => change(event.currentTarget.value, wall.time)} />
      </label>
      <input
        type="time"
        step={1}
        name={`${name}-time`}
        aria-label={`${name}: the time of the day`}
        title={name === "from" ? "From this time on" : "Before this time. Without one, the whole day"}
        value={wall.time}
        disabled={wall.day === ""}
        onInput={(event) => change(wall.day, event.currentTarget.value)}
      />
    </span>
  );
}

/** What the fields show. `undefined` for a text that is no moment: the service says what is wrong with it. */
function wallOf(name: "from" | "to", value: string, zone: string): { day: string; time: string } | undefined {
  if (value === "" || (zone === "UTC" && isDay(value))) return { day: value, time: "" };
  const at = new Date(name === "from" ? fromInstant(value) : toInstant(value));
  if (Number.isNaN(at.getTime())) return undefined;
  const [day, time] = moment(at.toISOString(), zone).split(" ") as [string, string];
  if (time !== "00:00:00") return { day, time };
  // A day belongs to a span as a whole.
  return { day: name === "from" ? day : dayFrom(day, -1), time: "" };
}

function valueOf(name: "from" | "to", day: string, time: string, zone: string): string {
  if (day === "" || time !== "") return day && instantOf(day, time, zone);
  if (zone === "UTC") return day;
  return instantOf(name === "from" ? day : dayFrom(day, 1), "00:00:00", zone);
}
