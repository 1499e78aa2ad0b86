import { describe, expect, test } from "vitest";
import type { ContractContext } from "./contract.ts";

export function analysisContract({ store, reopen }: ContractContext): void {
  describe("the token budget", () => {
    test("tokens add up by month and survive a restart", async () => {
      await store().analysis.addTokens("2026-11", 100);
      await store().analysis.addTokens("2026-11", 23);
      await store().analysis.addTokens("2026-12", 1);
      await reopen();
      expect(await store().analysis.tokensUsed("2026-11")).toBe(123);
      expect(await store().analysis.tokensUsed("2027-01")).toBe(0);
    });

    test("tokens are reserved up to the limit, also by concurrent calls", async () => {
      await store().analysis.addTokens("2028-01", 10);
      const reserve = () => store().analysis.reserveTokens("2028-01", 30, 100);
      const reserved = await Promise.all(Array.from({ length: 5 }, reserve));
      expect(reserved.filter(Boolean)).toHaveLength(3);
      expect(await store().analysis.tokensUsed("2028-01")).toBe(100);
      expect(await reserve()).toBe(false);
      expect(await store().analysis.tokensUsed("2028-01")).toBe(100);
    });

    test("tokens beyond the limit are not reserved in a new month either", async () => {
      expect(await store().analysis.reserveTokens("2029-01", 101, 100)).toBe(false);
      expect(await store().analysis.tokensUsed("2029-01")).toBe(0);
    });
  });
}
