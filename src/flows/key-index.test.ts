import { expect, test } from "vitest";
import { Contacts } from "./contacts.ts";
import { growColumn, KeyIndex } from "./key-index.ts";

test("a column that has grown keeps its values and leaves no memory behind", () => {
  const column = Uint32Array.from({ length: 1000 }, (_, n) => n);
  const larger = growColumn(column, 2000);
  expect([larger.length, larger[999], larger[1000]]).toEqual([2000, 999, 0]);
  expect(column.byteLength).toBe(0);
});

test("an index finds every key while it grows, and holds no memory once it has ended", () => {
  const index = new KeyIndex(2, 16);
  const find = (n: number) => {
    index.lookupKey.set([n, n ^ 7]);
    return index.find(Number.MAX_SAFE_INTEGER);
  };
  const rows = Array.from({ length: 5000 }, (_, n) => find(n));
  expect(rows).toEqual(Array.from({ length: 5000 }, (_, n) => n));
  expect(Array.from({ length: 5000 }, (_, n) => find(n))).toEqual(rows);
  const { keys } = index;
  index.free();
  expect(keys.byteLength).toBe(0);
});

test("contacts of many hosts are counted while they grow, and hold no memory once they have ended", () => {
  const contacts = new Contacts(1);
  for (let host = 0; host < 300; host++) {
    for (let value = 0; value <= host % 5; value++) {
      contacts.index.lookupKey[1] = value;
      expect(contacts.add(host, 10, 20, true)).toBe(true);
    }
  }
  expect(Array.from({ length: 300 }, (_, host) => contacts.countOf(host))).toEqual(
    Array.from({ length: 300 }, (_, host) => 1 + (host % 5)),
  );
  const { keys } = contacts.index;
  contacts.free();
  expect(keys.byteLength).toBe(0);
});
