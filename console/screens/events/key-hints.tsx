import { KEYS } from "../../app/keys.ts";
import { KeyHints, type KeyHint } from "../../components/ui/key-hints.tsx";

const HINTS: readonly KeyHint[] = [
  [[KEYS.list.next, KEYS.list.previous], "move"],
  [[KEYS.events.expand], "open"],
  [[KEYS.events.filterFor], "filter for the value, or the type"],
  [[KEYS.events.filterOut], "filter it out"],
];

export function EventKeyHints() {
  return <KeyHints hints={HINTS} />;
}
