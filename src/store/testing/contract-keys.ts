import { describe, expect, test } from "vitest";
import { ALWAYS } from "../../model/condition.ts";
import type { ExportJob } from "../../model/export.ts";
import type { ApiKey } from "../../model/key.ts";
import type { ContractContext } from "./contract.ts";

export function keysContract({ store, reopen, page, search }: ContractContext): void {
  describe("keys and exports", () => {
    const key: ApiKey = {
      id: "key_1",
      name: "ci",
      scopes: ["events:read", "keys:manage"],
      plan: "pro",
      createdAt: 1,
      expiresAt: null,
      revokedAt: null,
      secretHash: new Uint8Array([1, 2, 3]),
      previous: [],
    };

    test("a key is found as it was stored and as it was changed", async () => {
      expect(await store().keys.find("key_1")).toBeUndefined();
      await store().keys.put(key);
      expect(await store().keys.find("key_1")).toEqual(key);
      const previous = [
        { hash: new Uint8Array([9]), until: 7 },
        { hash: new Uint8Array([8]), until: 9 },
      ];
      const revoked = { ...key, revokedAt: 5, previous };
      await store().keys.put(revoked);
      expect(await store().keys.find("key_1")).toEqual(revoked);
      expect(await store().keys.list()).toEqual([revoked]);
      const renamed = await store().keys.change("key_1", (now) => ({ ...now, name: "renamed", previous: [] }));
      expect(renamed).toEqual({ ...revoked, name: "renamed", previous: [] });
      expect(await store().keys.find("key_1")).toEqual(renamed);
    });

    test("a change to an unknown key, or one that throws, changes nothing", async () => {
      const before = await store().keys.list();
      expect(await store().keys.change("key_0", (now) => now)).toBeUndefined();
      const aborted = store().keys.change("key_1", () => {
        throw new Error("aborted");
      });
      await expect(aborted).rejects.toThrow("aborted");
      expect(await store().keys.list()).toEqual(before);
    });

    test("a removed key is gone with its usage, and the others stay", async () => {
      const before = await store().keys.list();
      const previous = [{ hash: new Uint8Array([9]), until: 7 }];
      await store().keys.put({ ...key, id: "key_2", previous });
      await store().keys.saveUsage([
        { keyId: "key_2", lastUsedAt: 1, day: 0, dayCount: 1, minuteEndsAt: 0, minuteCount: 0 },
      ]);
      expect(await store().keys.find("key_2")).toBeDefined();
      expect(await store().keys.remove(["key_2", "key_none"])).toEqual(["key_2", "key_none"]);
      expect(await store().keys.find("key_2")).toBeUndefined();
      expect(await store().keys.list()).toEqual(before);
      expect((await store().keys.usage()).filter(({ keyId }) => keyId === "key_2")).toEqual([]);
      await store().keys.put({ ...key, id: "key_2" });
      expect((await store().keys.find("key_2"))!.previous).toEqual([]);
      await store().keys.remove(["key_2"]);
    });

    test("usage and exports survive a restart", async () => {
      const job: ExportJob = {
        id: "exp_1",
        status: "running",
        format: "csv",
        question: { condition: ALWAYS, fields: null, fromMs: 0, toMs: 1 },
        rowCount: null,
        sizeBytes: null,
        owner: "key_1",
        createdAt: 1,
        completedAt: null,
        expiresAt: 2,
        error: null,
      };
      await store().exports.put(job);
      await store().keys.saveUsage([
        { keyId: "key_1", lastUsedAt: 3, day: 0, dayCount: 4, minuteEndsAt: 5, minuteCount: 6 },
      ]);
      const before = await store().events.count();
      const newest = (await page({}, 1, 3)).items;
      await reopen();
      expect(await store().exports.get("exp_1")).toEqual(job);
      expect(await store().exports.list()).toEqual([job]);
      expect(await store().keys.usage()).toEqual([
        { keyId: "key_1", lastUsedAt: 3, day: 0, dayCount: 4, minuteEndsAt: 5, minuteCount: 6 },
      ]);
      await store().exports.remove("exp_1");
      expect(await store().exports.get("exp_1")).toBeUndefined();
      expect(await store().events.count()).toBe(before);
      expect((await page({}, 1, 3)).items).toEqual(newest);
      expect((await search(ALWAYS, { limit: 0 })).total).toBe(before);
    });
  });
}
