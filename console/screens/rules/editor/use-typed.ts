import { useState } from "react";

/** The text of a field whose value is more than its text: what is typed stays as typed, until the value changes from elsewhere. */
export function useTyped<Value>(value: Value, write: (value: Value) => string, read: (typed: string) => unknown) {
  const [typed, setTyped] = useState<{ text: string; value: unknown }>();
  const isOwn = typed !== undefined && JSON.stringify(typed.value) === JSON.stringify(value);
  return {
    text: isOwn ? typed.text : write(value),
    /** Notes what was typed, and returns its value. */
    type: (text: string): unknown => {
      const next = read(text);
      setTyped({ text, value: next });
      return next;
    },
  };
}
