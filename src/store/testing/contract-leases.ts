import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { LeaseLost } from "../ports/lease-store.ts";
import type { ContractContext } from "./contract.ts";

const LONG_MS = 600_000;

export function leasesContract({ store }: ContractContext): void {
  describe("leases", () => {
    const leases = () => store().leases;

    test("one holder has a lease until it releases it, and epochs grow", async () => {
      expect(await leases().current("detector")).toBeUndefined();
      const first = (await leases().acquire("detector", "a", LONG_MS))!;
      expect(first).toEqual({ name: "detector", holder: "a", epoch: expect.any(Number) });
      expect(await leases().acquire("detector", "b", LONG_MS)).toBeUndefined();
      expect(await leases().current("detector")).toMatchObject(first);
      expect((await leases().current("detector"))!.expiresInMs).toBeGreaterThan(LONG_MS / 2);
      expect((await leases().current("detector"))!.status).toBeNull();
      expect(await leases().renew(first, LONG_MS, "at work")).toBe(true);
      expect((await leases().current("detector"))!.status, "what the holder said").toBe("at work");
      await leases().release(first);
      expect(await leases().current("detector")).toBeUndefined();
      const second = (await leases().acquire("detector", "b", LONG_MS))!;
      expect(second.holder).toBe("b");
      expect((await leases().current("detector"))!.status, "of the holder before").toBeNull();
      expect(second.epoch).toBeGreaterThan(first.epoch);
      await leases().release(first);
      expect(await leases().renew(first, LONG_MS)).toBe(false);
      expect((await leases().current("detector"))!.holder, "an old lease changes nothing").toBe("b");
      await leases().release(second);
    });

    test("the holder itself gets a new epoch", async () => {
      const first = (await leases().acquire("notifier", "a", LONG_MS))!;
      const second = (await leases().acquire("notifier", "a", LONG_MS))!;
      expect(second.epoch).toBeGreaterThan(first.epoch);
      await expect(leases().check(first)).rejects.toThrow(LeaseLost);
      await leases().release(second);
    });

    test("one that expired can be acquired by another, or still be renewed while nobody has", async () => {
      const first = (await leases().acquire("analyst", "a", 1))!;
      await sleep(20);
      expect((await leases().current("analyst"))!.expiresInMs).toBe(0);
      await expect(leases().check(first), "nobody has acquired it").resolves.toBeUndefined();
      expect(await leases().renew(first, 1)).toBe(true);
      await sleep(20);
      const second = (await leases().acquire("analyst", "b", LONG_MS))!;
      expect(second.epoch).toBeGreaterThan(first.epoch);
      await expect(leases().check(first)).rejects.toMatchObject({ name: "LeaseLost", fence: first });
      expect(await leases().renew(first, LONG_MS)).toBe(false);
      await leases().release(second);
      await expect(leases().check(second), "released").rejects.toThrow(LeaseLost);
    });

    test("of several that want it at once, one gets it", async () => {
      const holders = ["a", "b", "c", "d", "e"];
      const got = await Promise.all(holders.map((holder) => leases().acquire("retention", holder, LONG_MS)));
      expect(got.filter(Boolean)).toHaveLength(1);
      await leases().release(got.find(Boolean)!);
    });

    test("listeners hear of a release", async () => {
      const released: string[] = [];
      // Notices of earlier releases may still be on their way.
      const stop = leases().onRelease((name) => /export|report/.test(name) && released.push(name));
      for (const name of ["export", "report"]) await leases().release((await leases().acquire(name, "a", LONG_MS))!);
      await expect.poll(() => released).toEqual(["export", "report"]);
      stop();
    });
  });
}
