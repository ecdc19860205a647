// A date and a time, as the clocks of the zone show them in which the page shows moments.

import { useState } from "preact/hooks";
import { instantOf, moment } from "../format";
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
  // While it is typed, the field keeps it as it is written: another way to write the same would begin a part of it again.
  const [typed, setTyped] = useState({ wall: "", value: "", zone });
  const isTyped = typed.value === value && typed.zone === zone;
  const at = new Date(value);
  // The service says what is wrong with a text that is no moment.
  if (value !== "" && Number.isNaN(at.getTime()))
    return <input {...common} type="text" value={value} onInput={(event) => onValue(event.currentTarget.value)} />;
  const wall = value === "" ? "" : moment(at.toISOString(), zone).replace(" ", "T");
  const change = (text: string) => {
    const [day, time] = text.split("T") as [string, string?];
    const value = time === undefined ? "" : instantOf(day, time, zone);
    setTyped({ wall: text, value, zone });
    onValue(value);
  };
  return (
    <input
      {...common}
      type="datetime-local"
      step={1}
      value={isTyped ? typed.wall : wall}
      onInput={(event) => change(event.currentTarget.value)}
    />
  );
}
