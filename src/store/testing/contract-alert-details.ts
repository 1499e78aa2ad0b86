import { describe, expect, test } from "vitest";
import type { Alert } from "../../model/alert.ts";
import { ALERT_EVENTS_MAX, type EventMark } from "../../model/finding.ts";
import { identifyDefinition, type RuleDefinition } from "../../model/rule-definition.ts";
import type { ContractContext } from "./contract.ts";
import { newAlert, nextAlert } from "./new-alert.ts";

// The part of the contract about the events of an alert and the definition of its rule.

const RULE: RuleDefinition = {
  source: "any",
  conditions: [],
  window: null,
  threshold: null,
  sequence: null,
  sequenceOrder: "in_order",
  groupBy: null,
  absence: null,
};

export function alertDetailsContract({ store, reopen }: ContractContext): void {
  const commit = (...alerts: Alert[]) => store().alerts.commit({ alerts, timeline: [] });

  describe("details of alerts", () => {
    test("the events of an alert are listed by time in both directions, the newest up to the limit", async () => {
      const marks = (from: number, to: number) =>
        Array.from({ length: to - from }, (_, i) => ({ id: `evt_${from + i}`, timestampMs: from + i })).toReversed();
      let alert = newAlert({ eventCount: 5000, relatedEvents: marks(1000, 1050) });
      await store().alerts.commit({ alerts: [alert], timeline: [] });
      for (let displaced = 999; displaced > 0; displaced -= 111) {
        alert = nextAlert(alert, {});
        const olderEvents = marks(displaced - 111, displaced);
        await store().alerts.commit({ alerts: [{ ...alert, olderEvents }], timeline: [] });
      }
      await reopen();
      const page = (after: string | undefined, descending: boolean) =>
        store().alerts.events(alert.id, { after, limit: 300, descending });
      // The last event before the gap, and the oldest that is left.
      const listed = [...marks(1000, 1050), ...marks(49, 999)];
      for (const descending of [true, false]) {
        const found: EventMark[] = [];
        let after: string | undefined;
        do {
          const part = (await page(after, descending))!;
          expect([part.eventCount, part.total]).toEqual([5000, ALERT_EVENTS_MAX]);
          found.push(...part.events);
          after = part.nextCursor ?? undefined;
        } while (after !== undefined);
        expect(found).toEqual(descending ? listed : listed.toReversed());
      }
      expect(await store().alerts.events("alt_0", { limit: 1, descending: true })).toBeUndefined();
      await expect(page("evt_none", true)).rejects.toHaveProperty("field", "after");
      const small = newAlert();
      await commit(small);
      expect(await store().alerts.events(small.id, { limit: 5, descending: true })).toEqual({
        eventCount: 5,
        total: 1,
        events: small.relatedEvents,
        nextCursor: null,
      });
    });

    test("a definition is stored once, and read by its id, also after a restart", async () => {
      const definition = identifyDefinition({
        ...RULE,
        conditions: [
          { field: "raw.number", equals: 2n ** 60n },
          { field: "raw.text", equals: "\u0000 é" },
        ],
      });
      const alert = newAlert({ definitionId: definition.id });
      const definitions = [definition, definition];
      expect(await store().alerts.commit({ alerts: [alert], timeline: [], definitions })).toEqual([]);
      const again = { alerts: [newAlert({ definitionId: definition.id })], timeline: [], definitions };
      expect(await store().alerts.commit(again)).toEqual([]);
      await reopen();
      expect(await store().alerts.definition(definition.id)).toEqual(definition.definition);
      expect(await store().alerts.definition("def_0")).toBeUndefined();
      expect((await store().alerts.get(alert.id))!.definitionId).toBe(definition.id);
    });
  });
}
