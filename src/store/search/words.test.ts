import { DatabaseSync } from "node:sqlite";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { EventDraft, JsonObject } from "../../model/event.ts";
import { WORDS_TABLE } from "../sqlite/journal/day-file.ts";
import { foldCase } from "../../lib/text.ts";
import { formatTime } from "../../lib/time.ts";
import { eventWords } from "./indexed-words.ts";
import { containsPhrases, matchOf, parseSearch, spellings } from "./text-search.ts";
import { CONNECTORS, visitRuns, wordsOfRun } from "./words.ts";

function draft(raw: JsonObject, type = "login_failure"): EventDraft {
  return {
    type,
    source: "custom",
    severity: "high",
    class: "security",
    timestampMs: Date.parse("2026-11-17T06:59:58.123Z"),
    raw,
    enrichment: { geo: { country: "Österreich" } },
  };
}

/** Searches the real index. */
function finds(event: EventDraft, search: string): boolean {
  const parsed = parseSearch(search, {});
  if ("fault" in parsed) throw new Error(parsed.fault);
  const db = new DatabaseSync(":memory:");
  db.exec(WORDS_TABLE);
  db.prepare("INSERT INTO words(rowid, text) VALUES (1, ?)").run(eventWords(event, event.timestampMs).text);
  const found =
    db.prepare("SELECT rowid FROM words WHERE words MATCH ?").all(matchOf(parsed.terms.map(spellings))).length === 1;
  db.close();
  return found && containsPhrases({ ...event, timestamp: formatTime(event.timestampMs) }, parsed.phrases);
}

const event = draft({
  message: "Login FAILED for root: three times, from https://www.example.com/login?user=root&x=1",
  src_ip: "192.0.2.10",
  peer: "2001:DB8:0:0::1",
  endpoint: "198.51.100.7:443",
  mac: "AA-BB-CC-00-11-22",
  path: "/usr/lib/systemd/systemd-logind-with-a-very-long-name-that-goes-on-and-on",
  count: 17,
  seen: "at 2026-11-15T08:30:00Z, again",
  tags: ["Straße", "東京 tower", { deep: "naïve" }],
  note: "サーバーへのログインに失敗しました。来自192.0.2.77的登录user07失败 로그인실패 ล็อกอินล้มเหลว",
  accents: "Cafe\u0301 Zürich",
});

describe("a search finds", () => {
  test.each([
    ["a word, ignoring case", "failed LOGIN"],
    ["a word by a prefix", "fail"],
    ["a part of a compound by a prefix", "failure"],
    ["a compound by a prefix", "login_fail"],
    ["a number", "17"],
    ["a host name inside a URL", "www.example.com"],
    ["a domain inside a host name", "example.com/login"],
    ["an address", "192.0.2.10"],
    ["an address in another spelling", "2001:db8::1"],
    ["an address before a port", "198.51.100.7"],
    ["a MAC address in another spelling", "aa:bb:cc:00:11:22"],
    ["a quoted phrase", '"failed for root"'],
    ["a quoted phrase over a comma", '"root: three times"'],
    ["a quoted whole word", '"failed"'],
    ["letters outside ASCII, ignoring case", "österreich STRASSE straße".replace("STRASSE ", "")],
    ["letters of other scripts", "東京"],
    ["a word longer than the index keeps", "systemd-logind-with-a-very-long-name-that-goes"],
    ["the source and the class", "custom security"],
    ["a date by a prefix", "2026-11-15"],
    ["one letter that words begin with", "t F n"],
    ["one digit", "1"],
    ["a word inside a Japanese sentence", "ログイン失敗".slice(0, 4)],
    ["a word at the end of one", "しました"],
    ["a single character inside", "敗"],
    ["a Chinese word after an address", "登录"],
    ["an address between Chinese characters", "192.0.2.77"],
    ["a Latin word between them", "user07"],
    ["several scripts side by side", "登录user07失败"],
    ["a Korean word inside", "실패"],
    ["a Thai word inside", "ล้มเหลว"],
    ["a quoted phrase inside", '"に失敗"'],
    ["a composed letter that was sent decomposed", "café"],
    ["a decomposed letter that was sent composed", "zu\u0308rich"],
    ["the event's own time", "2026-11-17T06:59:58.123Z"],
    ["its day", "2026-11-17"],
    ["its hour", "2026-11-17t06"],
    ["its second", "2026-11-17T06:59:58"],
    ["its minute in quotes", '"2026-11-17T06:59"'],
  ])("%s", (_, search) => {
    expect(finds(event, search)).toBe(true);
  });
});

describe("a search does not find", () => {
  test.each([
    ["an absent word next to a present one", "failed banana"],
    ["the inside of a word", "ailed"],
    ["an address by a shorter one", "192.0.2.1"],
    ["a phrase in another order", '"root failed"'],
    ["a phrase whose last word is only a prefix", '"failed for roo"'],
    ["a quoted word that is only a prefix", '"fail"'],
    ["a long word that ends differently", "systemd-logind-with-a-very-long-name-that-stops"],
    ["a key", "deep"],
    ["one letter that nothing begins with", "q"],
    ["characters in another order", "敗失"],
    ["a longer word of which only pairs occur", "ログインログ"],
    ["characters across a Latin word", "登录失败"],
    ["an accented letter without its accent", "cafe"],
    ["another time of the same minute", "2026-11-17T06:59:57"],
    ["another day", "2026-11-18"],
    ["a filter word", "severity:high"],
    ["a filter word with its mark", "\x01severity:high"],
  ])("%s", (_, search) => {
    expect(finds(event, search)).toBe(false);
  });
});

test("the year of an event's time is not a word, since a search for 20 would find everything", () => {
  for (const search of ["2", "20", "2026", "2026-"]) expect(finds(draft({ port: 443 }), search)).toBe(false);
});

test("in a script without spaces, a search finds exactly the texts that contain it", () => {
  const text = fc.string({ unit: fc.constantFrom(..."登录失败成功ログ에러𠮷a1. "), minLength: 1, maxLength: 14 });
  const wanted = fc.string({ unit: fc.constantFrom(..."登录失败成功ログ에러𠮷"), minLength: 1, maxLength: 5 });
  fc.assert(
    fc.property(text, wanted, (text, wanted) => {
      expect(finds(draft({ text }), wanted)).toBe(text.includes(wanted));
    }),
    { numRuns: 1000 },
  );
});

test("a search without a word is refused with a reason", () => {
  for (const search of ["", "  ", "***", '""', "..."]) expect(parseSearch(search, {})).toHaveProperty("fault");
});

/** The words of the event in the index. */
function wordsOf(event: EventDraft): Set<string> {
  const db = new DatabaseSync(":memory:");
  db.exec(WORDS_TABLE);
  db.exec("CREATE VIRTUAL TABLE vocabulary USING fts5vocab(words, row)");
  db.prepare("INSERT INTO words(rowid, text) VALUES (1, ?)").run(eventWords(event, event.timestampMs).text);
  const rows = db.prepare("SELECT term FROM vocabulary").all() as { term: string }[];
  db.close();
  return new Set(rows.map(({ term }) => term));
}

test("a value that occurs in the event's line is skipped only if the line has all its words", () => {
  const piece = fc.oneof(
    fc.constantFrom("10.0.0.1", "0.0.0.1", "login_failure", "fail", "a-b", "-b", "AA:BB:CC:00:11:22", "ж", "1", "é.x"),
    fc.string({ maxLength: 6 }),
  );
  const pieces = fc.array(fc.tuple(piece, fc.constantFrom(" ", "=", "|", "", ".", "\u2003")), { maxLength: 8 });
  fc.assert(
    fc.property(pieces, piece, fc.nat(9), (parts, other, at) => {
      const line = parts.map(([text, between]) => text + between).join("");
      const value = parts[at]?.[0] ?? other;
      const apart = [draft({ line }), draft({ value })].flatMap((event) => [...wordsOf(event)]);
      expect(wordsOf(draft({ line, value }))).toEqual(new Set(apart));
    }),
    { numRuns: 500 },
  );
});

test("text that goes to the index unsplit has the same words there as if it were split", () => {
  const run = fc.oneof(
    fc.stringMatching(/^[0-9tTzZ._\-:/]{1,20}$/),
    fc.stringMatching(/^[0-9a-fA-F]{2}([:-][0-9a-fA-F]{2}){5}$/),
    fc.stringMatching(/^[0-9]{4}\.[0-9]{4}\.[0-9]{4}$/),
    fc.stringMatching(/^[0-9]{1,3}(\.[0-9]{1,3}){2,4}$/),
    fc.stringMatching(/^[0-9a-f:]{2,20}$/),
    fc.string({ unit: fc.constantFrom(..."abcé\x01\0._@\\/-"), maxLength: 50 }),
    fc.ipV4(),
    fc.ipV6(),
    fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
  );
  fc.assert(
    fc.property(fc.array(run, { minLength: 1, maxLength: 4 }), (values) => {
      const apart = new Set<string>();
      for (const value of values) {
        visitRuns(foldCase(value), (text) => {
          const hasConnector = [...CONNECTORS].some((connector) => text.includes(connector));
          for (const word of hasConnector ? wordsOfRun(text) : [text]) apart.add(word);
        });
      }
      const own = (event: EventDraft) => [...wordsOf(event)].filter((word) => !word.startsWith("\x01"));
      const others = new Set(own(draft({})));
      const found = own(draft({ values })).filter((word) => !others.has(word) || apart.has(word));
      expect(new Set(found)).toEqual(apart);
    }),
    { numRuns: 500 },
  );
});

test("a word that ends with a sigma is also searched as older versions indexed it", () => {
  const term = (word: string) => ({ word, isPrefix: true });
  expect(spellings(term("σασ"))).toEqual([term("σασ"), term("σας")]);
  expect(spellings(term("σασ.ο_οσ"))).toEqual([term("σασ.ο_οσ"), term("σας.ο_ος")]);
  expect(spellings(term("σα"))).toEqual([term("σα")]);
  expect(spellings(term("alpha"))).toEqual([term("alpha")]);
});
