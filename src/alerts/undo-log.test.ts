import { expect, test } from "vitest";
import { UNTOUCHED } from "../model/alert.ts";
import { UndoLog } from "./undo-log.ts";
import { workStateOf } from "./work-state.ts";

const work = workStateOf(UNTOUCHED as never);
const changes = (count: number) =>
  Array.from({ length: count }, (_, i) => ({ id: `alt_${i}`, before: work, after: work }));

test("the oldest changes are forgotten when there are too many alerts", () => {
  let made = 0;
  const log = new UndoLog({ now: () => 0, newId: () => `undo_${++made}` });
  const [first, second] = [log.remember("key", changes(30_000))!, log.remember("key", changes(15_000))!];
  const third = log.remember("key", changes(10_000))!;
  expect(log.take(first, "key")).toBeUndefined();
  expect(log.take(second, "key")?.size).toBe(15_000);
  expect(log.take(third, "key")?.size).toBe(10_000);
  expect(log.remember("key", changes(50_001))).toBeNull();
});
