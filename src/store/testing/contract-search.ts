import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { AlertSummary } from "../../model/alert.ts";
import type { Event } from "../../model/event.ts";
import { newAlert } from "./new-alert.ts";
import type { EventFilter } from "../ports/event-engine.ts";
import { QueryRefused } from "../ports/store-errors.ts";
import {
  searchableAlert,
  searchableEvent,
  searchableTexts,
  textMatcher,
  type Searchable,
} from "../search/text-matcher.ts";
import { searchFault } from "../search/text-search.ts";
import type { ContractContext } from "./contract.ts";

// The part of the contract about full-text matches in memory (textMatcher), which find the same as lists.

const SEED = 11;
const WHOLE = { mode: "page", page: 1, size: 1000 } as const;

const piece = fc.constantFrom(
  "Failed",
  "log-ins",
  "login_failure",
  "alice@example.com",
  "C:\\Windows\\cmd.exe",
  "/usr/bin/id",
  "Büro",
  "ΑΣ",
  "σας",
  "東京",
  "サーバーへのログインに失敗しました",
  "来自192.0.2.7的登录user07失败",
  "로그인실패",
  "Cafe\u0301",
  "Café",
  "2026-11-17T06:59:58.123Z",
  "İstanbul",
  "😀",
  "192.0.2.7",
  "192.0.2.70",
  "198.51.100.7:443",
  "10.0.0.0/8",
  "2001:DB8:0:0::1",
  "2001:db8::1",
  "AA-BB-CC-22-33-44",
  "aabb.cc22.3344",
  "2026-11-15",
  "08:30",
  "443",
  "true",
  "a",
  "-b.",
  "x\u0001severity:high",
  "one,two;three",
  "100% sure",
  "systemd-logind-with-a-very-long-name-that-goes-on",
  "systemd-logind-with-a-very-long-name-that-stops",
  // The length limit of a word falls inside a character.
  "home/mia/reports-2026/november/invoices😀bill.pdf",
  `a-${"x".repeat(39)}😀.tail`,
  "wagtail\u{10ffff}b",
  "evt_01a1de53db4c70008000499d449120c4",
);
const text = fc
  .array(fc.tuple(piece, fc.constantFrom(" ", " ", "  ", "=", "|", "\n", ".", "")), { minLength: 1, maxLength: 4 })
  .map((parts) => parts.map((part) => part.join("")).join(""));
/** Whole pieces, prefixes, substrings and several in a row, as people type and mistype them. */
const typed = fc
  .array(
    fc.oneof(
      piece,
      fc.tuple(piece, fc.nat(12), fc.nat(12)).map(([of, start, length]) => of.slice(start, start + 1 + length)),
      fc.tuple(piece, fc.nat(2), fc.nat(50)).map(([of, start, length]) => of.slice(start, start + 1 + length)),
      fc.constantFrom("high", "custom", "0.2.7", "db8", "22-33", "AA:BB:CC:22:33:44", "Σασ", "false"),
    ),
    { minLength: 1, maxLength: 2 },
  )
  .chain((pieces) => fc.constantFrom(pieces.join(" "), `"${pieces.join(" ")}"`, pieces.join(" ").toUpperCase()));

export function searchContract({ store, draft, append, runs }: ContractContext): void {
  const compare = async <Item extends { readonly id: string }>(
    items: readonly Item[],
    more: readonly string[],
    searchable: (item: Item) => Searchable,
    list: (search: string) => Promise<string[]>,
  ) => {
    const ready = items.map((item) => ({ id: item.id, what: searchable(item) }));
    let found = 0;
    for (const search of [...fc.sample(typed, { numRuns: runs(400), seed: SEED }), ...more]) {
      if (searchFault(search) !== undefined) continue;
      const finds = textMatcher(search);
      const inMemory = ready.filter(({ what }) => finds(what)).map(({ id }) => id);
      expect(inMemory.sort(), search).toEqual((await list(search)).sort());
      if (inMemory.length > 0) found++;
    }
    expect(found).toBeGreaterThan(runs(100));
  };

  /** Walks the list one event at a time. */
  const walk = async (filter: EventFilter) => {
    const found: string[] = [];
    let after: string | undefined;
    do {
      const { items, nextCursor } = await store().events.list(filter, { mode: "cursor", after, size: 1 });
      found.push(...items.map((item) => (JSON.parse(item) as Event).id));
      after = nextCursor ?? undefined;
    } while (after !== undefined);
    return found;
  };
  const alertsOf = (ruleName: string) => async (search: string) => {
    const filter = { ruleName: [ruleName], search };
    const { items } = await store().alerts.list(filter, WHOLE, "created_at", true);
    return items.map(({ id }) => id);
  };

  describe("a search in memory", () => {
    test("finds the events that the list finds", async () => {
      const type = "in_memory";
      const value = fc.oneof(text, text, fc.constantFrom(443, 0.5, true, null));
      const raws = fc.sample(
        fc.record({ line: text, value, list: fc.array(value, { maxLength: 2 }), deep: fc.record({ value }) }),
        { numRuns: 150, seed: SEED },
      );
      const events = await append(...raws.map((raw) => draft({ type, raw, enrichment: { geo: { city: "Wien" } } })));
      const [one, two, other] = events.map(({ id }) => id);
      // Some contain the ids of others.
      events.push(
        ...(await append(
          draft({ type, raw: { ref: one!, text: `see ${two}, wien` } }),
          draft({ type, raw: { refs: [`${two}.json`, `${one}`] }, severity: "high" }),
          draft({ type, raw: { ref: `x${one}` } }),
        )),
      );
      const ids = [
        one!,
        `${one} wien`,
        `${one} ${two}`,
        `"${two}"`,
        ` "${other}" custom `,
        `${other} ${one}`,
        `${one}0`,
      ];
      await compare(
        events,
        [...ids, `${two} high`, `${one} "see ${two}"`, "wien", "at_hand", "hand", "t", '"at_hand"'],
        (event) => searchableEvent(event),
        async (search) => {
          const { total, items } = await store().events.list({ type, search }, WHOLE);
          const found = items.map((item) => (JSON.parse(item) as Event).id);
          expect(total).toBe(found.length);
          if (ids.includes(search)) expect(await walk({ type, search })).toEqual(found);
          return found;
        },
      );
    });

    test("finds the alerts that the list finds", async () => {
      const rule = { id: "rule_h", name: "search.at_hand", description: "", tags: [] };
      const alerts: AlertSummary[] = fc
        .sample(fc.tuple(text, text, text), { numRuns: 150, seed: SEED })
        .map(([title, description, value], i) =>
          newAlert({
            rule,
            title,
            description,
            group: i % 3 === 0 ? null : { field: "raw.x", value },
            assignee: i % 2 === 0 ? "Mia.O@example.net" : null,
          }),
        );
      await store().alerts.commit({ alerts, timeline: [] });
      await compare(
        alerts,
        ["mia", "MIA.O", "example.net", "at_hand", "m"],
        (alert) => searchableAlert(alert),
        alertsOf(rule.name),
      );
    });

    test("finds texts by the same words as an alert that contains them", async () => {
      const texts = fc.sample(fc.tuple(text, text), { numRuns: 150, seed: SEED });
      const rule = { id: "rule_h", name: "search.texts", description: "", tags: [] };
      const alerts = texts.map(([title, description]) => newAlert({ rule, title, description, group: null }));
      await store().alerts.commit({ alerts, timeline: [] });
      await compare(
        alerts,
        [],
        ({ title, description }) => searchableTexts([title, description, rule.name]),
        alertsOf(rule.name),
      );
    });

    test("is refused if a list would refuse it", () => {
      expect(() => textMatcher("***")).toThrow(QueryRefused);
    });
  });
}
