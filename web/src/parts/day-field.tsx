import { isDay } from "../format";

/** One end of a span of time: a day. An instant that an address names is shown as it is. */
export function DayField({ name, value, onValue }: { name: "from" | "to"; value: string; onValue: (value: string) => void }) {
  const change = (event: { currentTarget: { value: string } }) => onValue(event.currentTarget.value);
  return (
    <label>
      <span>
        {name} <span class="quiet">(UTC)</span>
      </span>
      {value === "" || isDay(value) ? (
        <input type="date" name={name} value={value} onInput={change} />
      ) : (
        <input type="text" name={name} value={value} onInput={change} />
      )}
    </label>
  );
}
