import { KEYS } from "../../../app/keys.ts";
import { KeyHints, type KeyHint } from "../../../components/ui/key-hints.tsx";

const HINTS: readonly KeyHint[] = [
  [[KEYS.list.next, KEYS.list.previous], "move"],
  [[KEYS.list.openGroup], "open group"],
  [[KEYS.list.select], "select"],
  [[KEYS.alert.acknowledge], "acknowledge"],
  [[KEYS.alert.resolve], "resolve"],
  [[KEYS.alert.exception], "exception"],
];

export function AlertKeyHints() {
  return <KeyHints hints={HINTS} />;
}
