import { describe, expect, test } from "vitest";
import { DAY_MS } from "../../lib/time.ts";
import type { Alert } from "../../model/alert.ts";
import { RESOLUTIONS } from "../../model/alert-state.ts";
import type { ContractContext } from "./contract.ts";
import { newAlert, nextAlert } from "./new-alert.ts";

// The part of the contract about the numbers of alerts: totals of a range, outcomes and resolutions of rules.

export function alertFiguresContract({ store }: ContractContext): void {
  const commit = (...alerts: Alert[]) => store().alerts.commit({ alerts, timeline: [] });

  describe("figures of alerts", () => {
    test("totals cover the alerts created in the range", async () => {
      const base = 50 * DAY_MS;
      const at = (createdAt: number, more: Partial<Alert>) => newAlert({ createdAt: base + createdAt, ...more });
      await commit(
        at(0, { severity: "info" }),
        at(10, { status: "acknowledged", firstAcknowledgedAt: base + 40 }),
        at(20, { status: "resolved", firstAcknowledgedAt: base + 30, resolvedAt: base + 120, resolution: "benign" }),
        at(30, { status: "resolved", resolvedAt: base + 40, resolution: "duplicate", severity: "critical" }),
        at(40, {}),
      );
      expect(await store().alerts.totals({ fromMs: base, toMs: base + 40 })).toEqual({
        total: 4,
        byStatus: { open: 1, acknowledged: 1, resolved: 2 },
        bySeverity: { critical: 1, high: 2, medium: 0, low: 0, info: 1 },
        acknowledgeMs: 20,
        resolveMs: 55,
      });
      expect(await store().alerts.totals({ fromMs: base + 41, toMs: base + 40 })).toEqual({
        total: 0,
        byStatus: { open: 0, acknowledged: 0, resolved: 0 },
        bySeverity: { critical: 0, high: 0, medium: 0, low: 0, info: 0 },
        acknowledgeMs: null,
        resolveMs: null,
      });
    });

    test("outcomes of several rules are counted from their times on", async () => {
      const rule = (name: string) => ({ id: `rule_${name}`, name, description: "", tags: [] });
      const [noisy, quiet] = [rule("site.noisy"), rule("site.quiet")];
      const base = 50 * DAY_MS;
      const at = (ms: number, more: Partial<Alert>) => newAlert({ createdAt: base + ms, ...more });
      const resolved = (i: number) =>
        ({ status: "resolved", resolvedAt: base * 2, resolution: RESOLUTIONS[i]! }) as const;
      await commit(
        at(-1, { rule: noisy, ...resolved(1) }),
        at(0, { rule: noisy, ...resolved(1) }),
        at(5, { rule: noisy, ...resolved(0) }),
        at(10, { rule: noisy, ...resolved(1) }),
        at(11, { rule: noisy }),
        at(10, { rule: quiet, ...resolved(3) }),
      );
      const since = { createdMs: base + 10, resolvedMs: base };
      const none = { true_positive: 0, false_positive: 0, benign: 0, duplicate: 0 };
      expect(await store().alerts.outcomes([quiet.name, "site.unheard", noisy.name], since)).toEqual([
        { created: 1, resolutions: { ...none, duplicate: 1 } },
        { created: 0, resolutions: none },
        { created: 2, resolutions: { ...none, true_positive: 1, false_positive: 2 } },
      ]);
      expect(await store().alerts.outcomes([], since)).toEqual([]);
    });

    test("resolutions are counted by the name of the rule", async () => {
      const rule = { id: "rule_r", name: "site.resolved", description: "", tags: [] };
      const resolved = [0, 1, 1, 3].map((i) =>
        newAlert({ rule, status: "resolved", resolvedAt: 4000, resolution: RESOLUTIONS[i]! }),
      );
      await commit(...resolved, newAlert({ rule }));
      const counts = { true_positive: 1, false_positive: 2, benign: 0, duplicate: 1 };
      expect(await store().alerts.resolutions(rule.name)).toEqual(counts);
      await commit(nextAlert(resolved[0]!, { status: "open", resolution: null, resolvedAt: null }));
      expect(await store().alerts.resolutions(rule.name)).toEqual({ ...counts, true_positive: 0 });
      expect(await store().alerts.resolutions("site.never")).toEqual({
        true_positive: 0,
        false_positive: 0,
        benign: 0,
        duplicate: 0,
      });
    });
  });
}
