import { describe, expect, test } from "vitest";
import { DAY_MS } from "../../lib/time.ts";
import type { ContractContext } from "./contract.ts";

// The part of the contract about what enrichment and retention remember.

export function reputationsContract({ store, reopen }: ContractContext): void {
  describe("reputations", () => {
    const reputation = (address: string, checkedAt: number) => ({ address, checkedAt, report: { score: checkedAt } });

    test("survive a restart until they are removed, and are listed newest first", async () => {
      const { reputations } = store();
      for (const [i, address] of ["192.0.2.1", "2001:db8::1", "192.0.2.2"].entries()) {
        await reputations.put(reputation(address, 100 + i));
      }
      await reputations.put(reputation("192.0.2.1", 110));
      await reopen();
      const known = await store().reputations.since(0, 10);
      expect(known).toEqual([
        reputation("192.0.2.1", 110),
        reputation("192.0.2.2", 102),
        reputation("2001:db8::1", 101),
      ]);
      expect(await store().reputations.since(102, 1)).toEqual([reputation("192.0.2.1", 110)]);
      await store().reputations.removeBefore(102);
      const left = await store().reputations.since(0, 10);
      expect(left.map(({ checkedAt }) => checkedAt)).toEqual([110, 102]);
    });

    test("and the number of look-ups per day survive a restart", async () => {
      expect(await store().reputations.lookups(0)).toBe(0);
      await store().reputations.saveLookups(0, 7);
      await store().reputations.saveLookups(DAY_MS, 3);
      await reopen();
      expect([await store().reputations.lookups(0), await store().reputations.lookups(DAY_MS)]).toEqual([0, 3]);
    });
  });

  describe("notes of retention", () => {
    test("are kept one by one, also after a restart, and can be taken back", async () => {
      const none = {
        ranAt: null,
        heldAt: null,
        confirmedAt: null,
        before: { events: null, flows: null, alerts: null },
      };
      const before = { events: 3, flows: 4, alerts: null };
      expect(await store().retention.notes()).toEqual(none);
      await store().retention.save({ ranAt: 1, heldAt: 2, before });
      await store().retention.save({ confirmedAt: 2 });
      await reopen();
      expect(await store().retention.notes()).toEqual({ ranAt: 1, heldAt: 2, confirmedAt: 2, before });
      await store().retention.save({ ranAt: null, heldAt: null, confirmedAt: null, before: none.before });
      expect(await store().retention.notes()).toEqual(none);
    });
  });
}
