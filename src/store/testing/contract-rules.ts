import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { DAY_MS } from "../../lib/time.ts";
import type { Rule } from "../../model/rule.ts";
import { plainRule } from "../../model/rule.fixture.ts";
import type { DetectionProgress, SeenRow } from "../ports/detection-store.ts";
import { LeaseLost, type Fence } from "../ports/lease-store.ts";
import { RuleConflict } from "../ports/rule-store.ts";
import type { ContractContext } from "./contract.ts";
import { newAlert } from "./new-alert.ts";

// The part of the contract about rules and the progress of detection.

function newRule(name: string, more: Partial<Rule> = {}): Rule {
  return plainRule({ id: `rule_${name}`, name, conditions: [{ field: "type", equals: "login_failure" }], ...more });
}

export function rulesContract({ store, reopen }: ContractContext): void {
  describe("rules", () => {
    const list = async () => (await store().rules.list()).filter(({ name }) => name.startsWith("kept."));

    test("are read back unchanged, also after a restart", async () => {
      const rule = newRule("kept.first", {
        title: "From {{raw.src_ip}}",
        tags: ["attack.t1110"],
        tests: [
          { name: "twice", events: [{ type: "x", raw: { n: "{n}", deep: [null, { a: 1.5 }] }, repeat: 2 }], alerts: 1 },
          { name: "nothing", start: "2026-11-02T12:00:00Z", events: [], wait: "5m", alerts: 0, event_count: 0 },
        ],
      });
      await store().rules.put(rule);
      expect(await list()).toEqual([rule]);
      const edited = { ...rule, revision: 2, enabled: false, tests: rule.tests!.slice(1) };
      await store().rules.put(edited);
      await reopen();
      expect(await list()).toEqual([edited]);
      await store().rules.remove(rule.id);
      expect(await list()).toEqual([]);
      await store().rules.remove(rule.id);
    });

    test("a name belongs to one rule, and one of two concurrent edits is refused", async () => {
      const rule = newRule("kept.name");
      const taken = await Promise.allSettled([rule, { ...rule, id: "rule_b" }].map((each) => store().rules.put(each)));
      expect(taken.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
      const reasonOf = (outcome: PromiseSettledResult<void>) => (outcome as PromiseRejectedResult).reason as unknown;
      expect(reasonOf(taken[1]!)).toBeInstanceOf(RuleConflict);
      expect(reasonOf(taken[1]!)).toHaveProperty("kind", "name_taken");
      const edits = await Promise.allSettled(
        ["a", "b"].map((description) => store().rules.put({ ...rule, description, revision: 2 })),
      );
      expect(edits.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
      expect(reasonOf(edits[1]!)).toHaveProperty("kind", "changed");
      expect((await list())[0]?.description).toBe("a");
      await store().rules.remove(rule.id);
      // An edit does not bring back a rule that was deleted in the meantime.
      await expect(store().rules.put({ ...rule, revision: 3 })).rejects.toHaveProperty("kind", "changed");
      // A built-in rule is stored when it is first changed, at any revision.
      await store().rules.put({ ...rule, builtin: true, revision: 2 });
      await store().rules.remove(rule.id);
    });

    test("several are stored as a whole or not at all", async () => {
      await store().rules.put(newRule("kept.there"));
      const many = [newRule("kept.new"), { ...newRule("kept.there"), id: "rule_other" }];
      await expect(store().rules.putMany(many)).rejects.toHaveProperty("kind", "name_taken");
      expect((await list()).map(({ name }) => name)).toEqual(["kept.there"]);
      await store().rules.putMany([newRule("kept.new"), newRule("kept.newer")]);
      expect((await list()).map(({ name }) => name).sort()).toEqual(["kept.new", "kept.newer", "kept.there"]);
    });
  });

  describe("detection progress", () => {
    const MINUTE_MS = 60_000;
    const note = (detected: Partial<DetectionProgress>, fence?: Fence) =>
      store().alerts.commit({
        alerts: [],
        timeline: [],
        detected: { upTo: "evt_1", matches: [], seen: [], ...detected },
        fence,
      });

    const last: SeenRow["last"] = {
      type: "heartbeat",
      source: "custom",
      class: "network",
      severity: "info",
      timestamp: "2026-11-15T08:00:00.000Z",
    };
    const seen = (ruleId: string, group: string, atMs: number, event: SeenRow["last"] = null): SeenRow => ({
      ruleId,
      group,
      atMs,
      last: event,
    });

    test("is stored together with its results and survives a restart", async () => {
      const alert = newAlert();
      const detected: DetectionProgress = { upTo: "evt_7", matches: [], seen: [seen("rule_a", "g", 5)] };
      await store().alerts.commit({ alerts: [alert], timeline: [], detected });
      await note({
        upTo: "evt_8",
        seen: [seen("rule_b", "", 7), seen("rule_a", "g", 6, last)],
      });
      await reopen();
      expect(await store().detection.position()).toBe("evt_8");
      expect(await store().detection.seen()).toEqual([seen("rule_a", "g", 6, last), seen("rule_b", "", 7)]);
    });

    test("a detector whose lease is over stores nothing", async () => {
      const acquire = async (holder: string) => (await store().leases.acquire("detection", holder, 600_000))!;
      const fence = await acquire("one");
      await note({ upTo: "evt_fenced" }, fence);
      expect(await store().detection.position()).toBe("evt_fenced");
      await store().leases.release(fence);
      const next = await acquire("other");
      const alert = newAlert();
      const detected: DetectionProgress = { upTo: "evt_late", matches: [], seen: [] };
      const late = store().alerts.commit({ alerts: [alert], timeline: [], detected, fence });
      await expect(late).rejects.toBeInstanceOf(LeaseLost);
      expect(await store().alerts.get(alert.id)).toBeUndefined();
      expect(await store().detection.position()).toBe("evt_fenced");
      await note({ upTo: "evt_8" }, next);
      await store().leases.release(next);
    });

    test("a rule that starts over has seen nothing, and one that continues keeps what it saw", async () => {
      const [one, other] = ["rule_restarted", "rule_continued"].map((id) =>
        plainRule({ id, name: `seen.${id}`, absence: "5m" }),
      );
      await store().rules.putMany([one!, other!]);
      const rows = [seen("rule_restarted", "g", 8), seen("rule_continued", "g", 9)];
      await note({ seen: rows });
      await store().rules.putMany([
        { ...one!, revision: 2, activeAfter: "evt_5" },
        { ...other!, revision: 2, severity: "low" },
      ]);
      expect((await store().detection.seen()).filter(({ ruleId }) => /restarted|continued/.test(ruleId))).toEqual([
        rows[1],
      ]);
    });

    test("every outage, from a last commit to the next start, is known", async () => {
      const at = 1_900_000_000_000;
      const known = await store().detection.begin(at);
      await reopen();
      const outages = [...known, { fromMs: at, toMs: at + 1000 }];
      expect(await store().detection.begin(at + 1000)).toEqual(outages);
      // A clock that is set back removes no outage.
      expect(await store().detection.begin(at)).toEqual(outages);
      expect(await store().detection.begin(at + 500)).toEqual(outages);
    });

    test("match counts of a day and of a week are exact to the millisecond, also with many matches in a minute", async () => {
      const now = 1_800_000_000_000 + 17 * MINUTE_MS + 12_345;
      const times = fc.sample(fc.integer({ min: now - 7.9 * DAY_MS, max: now }), { numRuns: 400, seed: 9 });
      const edges = [now - DAY_MS, now - 7 * DAY_MS].flatMap((edge) => [edge - MINUTE_MS, edge - 1, edge, edge + 1]);
      const busy = fc.sample(fc.integer({ min: now - DAY_MS - 20_000, max: now - DAY_MS + 20_000 }), 5000);
      const matched = [...times, ...edges, ...busy];
      for (let i = 0; i < matched.length; i += 300) {
        const [some, others] = [matched.slice(i, i + 100), matched.slice(i + 100, i + 300)];
        await note({ matches: [some, others].map((part) => ({ ruleId: "rule_m", timesMs: part })) });
      }
      for (const later of [0, 1, 777, MINUTE_MS, 43 * MINUTE_MS, 3 * 3_600_000, DAY_MS]) {
        const since = (days: number) => now + later - days * DAY_MS;
        const count = (days: number) => matched.filter((ms) => ms >= since(days)).length;
        expect(await store().rules.stats(["rule_m", "rule_none"], now + later)).toEqual([
          { matches24h: count(1), matches7d: count(7), lastMatchAt: Math.max(...matched) },
          { matches24h: 0, matches7d: 0, lastMatchAt: null },
        ]);
      }
      await store().rules.remove("rule_m");
      expect(await store().rules.stats(["rule_m"], now)).toEqual([{ matches24h: 0, matches7d: 0, lastMatchAt: null }]);
    });
  });
}
