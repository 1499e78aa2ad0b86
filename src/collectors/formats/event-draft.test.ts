import * as fc from "fast-check";
import { expect, test } from "vitest";
import { parseExact } from "../../lib/exact-json.ts";
import { CLASSES, SEVERITIES, SOURCE_KINDS, type JsonObject } from "../../model/event.ts";
import { fromColumns, packDraft, toColumns, toDraft } from "./event-draft.ts";
import type { ParsedEvent } from "./reading.ts";

const event: fc.Arbitrary<ParsedEvent> = fc.record({
  type: fc.constantFrom("login_failure", "motion", "ids_alert", "unparsed"),
  source: fc.constantFrom(...SOURCE_KINDS),
  severity: fc.constantFrom(...SEVERITIES),
  class: fc.option(fc.constantFrom(...CLASSES), { nil: undefined }),
  timestampMs: fc.option(fc.integer({ min: 0, max: 4e12 })),
  raw: fc
    .dictionary(fc.string({ unit: "grapheme" }), fc.jsonValue())
    .map((raw) => parseExact(JSON.stringify(raw)) as JsonObject),
});

test("events are unchanged by packing and unpacking", () => {
  fc.assert(
    fc.property(fc.array(event, { maxLength: 20 }), (events) => {
      const there = fromColumns(structuredClone(toColumns(events.map((one) => packDraft(one, "platform", 1000)))));
      expect(there).toEqual(
        events.map((one) => ({ ...toDraft(one, "platform", 1000), rawText: JSON.stringify(one.raw) })),
      );
    }),
  );
});
