// A list to choose one of, after the word that says what it is for.

interface Props {
  label: string;
  /** What a screen reader calls it, if the word alone does not say it. */
  name?: string;
  value: string;
  /** What may be chosen, and its words. */
  options: readonly (readonly [value: string, words: string])[];
  onValue: (value: string) => void;
}

export function Choice({ label, name, value, options, onValue }: Props) {
  return (
    <label>
      {label}{" "}
      <select value={value} onChange={(event) => onValue(event.currentTarget.value)} aria-label={name}>
        {options.map(([value, words]) => (
          <option key={value} value={value}>
            {words}
          </option>
        ))}
      </select>
    </label>
  );
}
