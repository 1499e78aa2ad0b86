import { useSyncExternalStore } from "react";
import { useSession } from "./session.ts";

// Who handles alerts in this browser. Alerts are assigned to e-mail addresses; a key whose name is one says it, otherwise the
// reader is asked once.

const NAME = "address";
const ADDRESS = /^[^\s@,]+@[^\s@,]+\.[^\s@,]+$/;
const ADDRESS_CHARACTERS_MAX = 254;

const listeners = new Set<() => void>();

export const isAddress = (text: string) => ADDRESS.test(text) && text.length <= ADDRESS_CHARACTERS_MAX;

function stored(): string | undefined {
  const text = localStorage.getItem(NAME);
  return text !== null && isAddress(text) ? text : undefined;
}

export function setMyAddress(address: string): void {
  localStorage.setItem(NAME, address);
  for (const listener of listeners) listener();
}

/** The reader's e-mail address; undefined while nobody has said it. */
export function useMyAddress(): string | undefined {
  const { key } = useSession();
  const said = useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, stored);
  return said ?? (isAddress(key.name) ? key.name : undefined);
}
