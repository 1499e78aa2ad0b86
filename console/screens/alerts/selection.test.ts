import { describe, expect, test } from "vitest";
import { isNothing, isSelected, NOTHING, selectedCount, withRow, type Selectable } from "./selection.ts";

const alert = (id: string, rule = "r"): Selectable => ({ kind: "alert", id, rule });
const group = (rule: string): Selectable => ({ kind: "group", id: "any", rule });
const LOADED = [group("r"), alert("1"), alert("2"), group("s"), alert("3", "s")];
const loaded = () => LOADED;
const SIZES = new Map([
  ["r", 200],
  ["s", 1],
]);

const picked = (selection: ReturnType<typeof withRow>) =>
  LOADED.filter((row) => isSelected(selection, row)).map(({ id }) => id);

describe("a selection", () => {
  test("starts with nothing, and ends with nothing when the last row leaves", () => {
    const one = withRow(NOTHING, alert("1"), true, loaded);
    expect([isNothing(NOTHING), isNothing(one), isNothing(withRow(one, alert("1"), false, loaded))]).toEqual([
      true,
      false,
      true,
    ]);
  });

  test("of a group has all its alerts, those that are not loaded too", () => {
    const all = withRow(withRow(NOTHING, alert("1"), true, loaded), group("r"), true, loaded);
    expect(picked(all)).toEqual(["any", "1", "2"]);
    expect(selectedCount(all, 201, SIZES)).toBe(200);
  });

  test("without one of a group keeps the others that are loaded", () => {
    const rest = withRow(withRow(NOTHING, group("r"), true, loaded), alert("1"), false, loaded);
    expect(picked(rest)).toEqual(["2"]);
  });

  test("of all that match without one keeps the others that are loaded", () => {
    const all = { kind: "all" } as const;
    expect(selectedCount(all, 201, SIZES)).toBe(201);
    expect(picked(withRow(all, alert("2"), false, loaded))).toEqual(["1", "3"]);
    expect(picked(withRow(all, group("r"), false, loaded))).toEqual(["3"]);
  });
});
