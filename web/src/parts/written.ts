import { useState } from "preact/hooks";

/**
 * What a field shows of its value, and what writes it. What is typed stays as it is written for as long as that is the value: another
 * way to write the same would begin a part of the field again, or take away what is not complete yet. Once it is settled, the field
 * shows its value as it shows others.
 */
export function useWritten<Written>(value: string, zone: string, shown: Written, onValue: (value: string) => void) {
  const [typed, setTyped] = useState<{ written: Written; value: string; zone: string }>();
  const write = (written: Written, value: string) => {
    setTyped({ written, value, zone });
    onValue(value);
  };
  const settle = () => setTyped(undefined);
  return [typed?.value === value && typed.zone === zone ? typed.written : shown, write, settle] as const;
}
