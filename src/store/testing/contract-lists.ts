import { describe, expect, test } from "vitest";
import type { ListEntry, WatchList } from "../../model/watch-list.ts";
import type { ContractContext } from "./contract.ts";

// The part of the contract about lists that are managed by the API.

export function managedListsContract({ store, reopen }: ContractContext): void {
  describe("managed lists", () => {
    const list = (name: string, more: Partial<WatchList> = {}): WatchList => ({
      name,
      description: 'quotes " and é',
      kind: "any",
      createdAt: 1,
      updatedAt: 2,
      author: "ci",
      ...more,
    });
    const entry = (value: string, more: Partial<ListEntry> = {}): ListEntry => ({
      value,
      type: "domain",
      note: null,
      expiresAt: null,
      addedAt: 3,
      author: "ci",
      ...more,
    });

    test("are kept with their entries, by name and value, also after a restart", async () => {
      expect(await store().lists.all()).toEqual([]);
      await store().lists.put(list("b"), {
        set: [entry("z.example"), entry("a.example", { note: "n", expiresAt: 9 })],
      });
      await store().lists.put(list("a"), {});
      const wanted = [
        { list: list("a"), entries: [] },
        { list: list("b"), entries: [entry("a.example", { note: "n", expiresAt: 9 }), entry("z.example")] },
      ];
      expect(await store().lists.all()).toEqual(wanted);
      await reopen();
      expect(await store().lists.all()).toEqual(wanted);
    });

    test("change entry by entry or as a whole, and are removed with their entries", async () => {
      const changed = list("b", { description: "changed", updatedAt: 5 });
      await store().lists.put(changed, {
        set: [entry("m.example"), entry("z.example", { note: "new" })],
        removed: ["a.example", "unknown.example"],
      });
      const [, found] = await store().lists.all();
      expect(found).toEqual({ list: changed, entries: [entry("m.example"), entry("z.example", { note: "new" })] });
      await store().lists.put(changed, { isReplacement: true, set: [entry("only.example")] });
      expect((await store().lists.all())[1]!.entries).toEqual([entry("only.example")]);
      await store().lists.remove("b");
      await store().lists.remove("never");
      await store().lists.put(list("b"), {});
      expect((await store().lists.all())[1]).toEqual({ list: list("b"), entries: [] });
    });
  });
}
