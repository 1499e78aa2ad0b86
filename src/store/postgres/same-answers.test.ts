import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fc from "fast-check";
import pino from "pino";
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { describeWithPostgres, testDatabase } from "../../../test/cluster/test-database.ts";
import { OpenedParts } from "../../lib/opened-parts.ts";
import { SCOPES, type ApiKey } from "../../model/key.ts";
import type { ListEntry } from "../../model/watch-list.ts";
import type { SavedView } from "../../model/view.ts";
import { openEmbeddedCases } from "../embedded/embedded-cases.ts";
import { folderPlace, folderWord, PlatformWord } from "../embedded/platform-word.ts";
import { openStateDatabase } from "../sqlite/state-database.ts";
import { openPostgresCases, type PostgresCases } from "./postgres-cases.ts";
import { postgresSettings } from "./postgres-store.fixture.ts";

// The same random operations on the small stores of both engines give the same answers.

type Part = Omit<PostgresCases, "check">;
/** Reads what it can of a part after each change, so that a difference shows at the operation that causes it. */
type Operation = (cases: Part) => Promise<unknown>;

const RUNS = 40;
const log = pino({ level: "silent" });

/** Names that sort, compare or store differently where an engine is careless. */
const name = fc.constantFrom(
  "a",
  "B",
  "b",
  "Ä",
  "ä",
  "z",
  "_",
  "10",
  "9",
  "é",
  "e\u0301",
  "\u{1F600}",
  "\uFF5E",
  "a b",
);
const time = fc.constantFrom(0, 1, 2, 3, 50, 1_700_000_000_000, 2 ** 53 - 1);
const bytes = fc.constantFrom("", "00", "ff", "0102").map((hex) => new Uint8Array(Buffer.from(hex, "hex")));
const text = fc.string({ unit: "grapheme", maxLength: 8 });
const id = name.map((end) => `id_${end}`);

const key: fc.Arbitrary<ApiKey> = fc.record({
  id,
  name: text.map((given) => given.replaceAll("\0", "")),
  scopes: fc.subarray([...SCOPES].slice(0, 4)),
  plan: fc.constantFrom("starter", "pro", "enterprise"),
  createdAt: time,
  expiresAt: fc.option(time),
  revokedAt: fc.option(time),
  secretHash: bytes,
  previous: fc.uniqueArray(fc.record({ hash: bytes, until: time }), {
    maxLength: 3,
    selector: ({ hash }) => Buffer.from(hash).toString("hex"),
  }),
});
const usage = fc.record({
  keyId: id,
  lastUsedAt: time,
  day: time,
  dayCount: time,
  minuteEndsAt: time,
  minuteCount: time,
});
const view: fc.Arbitrary<SavedView> = fc.record({
  id,
  owner: id,
  ownerName: text,
  screen: fc.constantFrom("alerts", "events"),
  name: text,
  search: text,
  columns: fc.option(fc.array(text, { maxLength: 2 })),
  density: fc.constant(null),
  grouping: fc.constant(null),
  shared: fc.boolean(),
  position: fc.nat(5),
  createdAt: time,
  updatedAt: time,
  revision: fc.integer({ min: 1, max: 3 }),
}) as fc.Arbitrary<SavedView>;
const entry: fc.Arbitrary<ListEntry> = fc.record({
  value: name,
  type: fc.constantFrom("domain", "address"),
  note: fc.option(text),
  expiresAt: fc.option(time),
  addedAt: time,
  author: text,
});
const limits = fc.record({ perKeyMax: fc.integer({ min: 1, max: 4 }), sharedMax: fc.integer({ min: 1, max: 4 }) });
const hash = fc.integer({ min: 1, max: 6 }).map((byte) => new Uint8Array(32).fill(byte));
const month = fc.constantFrom("2026-11", "2026-12");

const readKeys: Operation = async ({ keys }) => ({
  keys: await keys.list(),
  usage: (await keys.usage()).toSorted((a, b) => (a.keyId < b.keyId ? -1 : 1)),
});
const readViews: Operation = async ({ views }) => views.list({ keyId: "id_a" }, 1, 100);
const then =
  (change: Operation, read: Operation): Operation =>
  async (cases) => [await change(cases), await read(cases)];

const operation: fc.Arbitrary<Operation> = fc.oneof(
  key.map((given) => then(({ keys }) => keys.put(given), readKeys)),
  fc
    .tuple(id, text)
    .map(([which, note]) =>
      then(
        ({ keys }) => keys.change(which, (known) => ({ ...known, name: `${known.name}${note.replaceAll("\0", "")}` })),
        readKeys,
      ),
    ),
  fc.array(id, { maxLength: 2 }).map((ids) => then(({ keys }) => keys.remove(ids), readKeys)),
  fc
    .uniqueArray(usage, { maxLength: 3, selector: ({ keyId }) => keyId })
    .map((used) => then(({ keys }) => keys.saveUsage(used), readKeys)),
  id.map(
    (which): Operation =>
      ({ keys }) =>
        keys.find(which),
  ),
  fc
    .tuple(hash, id, fc.nat(5), fc.nat(5), fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: 4 }))
    .map(([idHash, keyId, createdAt, lastUsedAt, perKeyMax, max]): Operation => async ({ sessions }) => {
      // Ties would be broken at will; a session is added once.
      const at = createdAt * 10 + idHash[0]!;
      await sessions.remove(idHash);
      const session = { idHash, keyId, secretHash: idHash, createdAt: at, lastUsedAt: lastUsedAt * 10 + idHash[0]! };
      await sessions.add(session, { perKeyMax, max });
      return Promise.all([1, 2, 3, 4, 5, 6].map((byte) => sessions.find(new Uint8Array(32).fill(byte))));
    }),
  fc.tuple(hash, fc.nat(5)).map(([idHash, at]): Operation => async ({ sessions }) => {
    await sessions.touch(idHash, at * 10 + idHash[0]!);
    return sessions.find(idHash);
  }),
  fc.record({ usedAt: fc.nat(60), createdAt: fc.nat(60) }).map(
    (times): Operation =>
      ({ sessions }) =>
        sessions.removeBefore(times),
  ),
  fc
    .tuple(view, limits)
    .map(([given, max]): Operation =>
      then(async ({ views }) => ((await views.get(given.id)) ? "known" : views.add(given, max)), readViews),
    ),
  fc.tuple(view, limits).map(([given, max]) => then(({ views }) => views.put(given, max), readViews)),
  fc
    .tuple(id, fc.array(id, { maxLength: 3 }))
    .map(([owner, ids]) => then(({ views }) => views.arrange(owner, "alerts", ids), readViews)),
  id.map((which) => then(({ views }) => views.remove(which), readViews)),
  fc.array(id, { maxLength: 3 }).map((owners) => then(({ views }) => views.removeUnshared(owners), readViews)),
  fc
    .record({
      list: name,
      isReplacement: fc.boolean(),
      set: fc.array(entry, { maxLength: 3 }),
      removed: fc.array(name, { maxLength: 2 }),
    })
    .map(({ list, ...changes }) => {
      const document = {
        name: list,
        description: list,
        kind: "any",
        createdAt: 1,
        updatedAt: 2,
        author: "ci",
      } as const;
      return then(
        ({ lists }) => lists.put(document, changes),
        ({ lists }) => lists.all(),
      );
    }),
  name.map((list) =>
    then(
      ({ lists }) => lists.remove(list),
      ({ lists }) => lists.all(),
    ),
  ),
  fc.tuple(name, time, fc.nat()).map(([address, checkedAt, score]) =>
    then(
      ({ reputations }) => reputations.put({ address, checkedAt, report: { score, large: 2n ** 63n } as never }),
      async ({ reputations }) => (await reputations.since(1, 100)).toSorted((a, b) => (a.address < b.address ? -1 : 1)),
    ),
  ),
  fc.tuple(time, fc.nat(9)).map(([day, count]) =>
    then(
      ({ reputations }) => reputations.saveLookups(day, count),
      ({ reputations }) => reputations.lookups(day),
    ),
  ),
  fc.tuple(month, fc.nat(50), fc.nat(100)).map(([of, tokens, max]) =>
    then(
      ({ analysis }) => analysis.reserveTokens(of, tokens, max),
      ({ analysis }) => analysis.tokensUsed(of),
    ),
  ),
  fc.record({ ranAt: fc.option(time), heldAt: fc.option(time) }, { requiredKeys: [] }).map((notes) =>
    then(
      ({ retention }) => retention.save(notes),
      ({ retention }) => retention.notes(),
    ),
  ),
);

describeWithPostgres("SQLite and PostgreSQL", () => {
  test("give the same answers to the same operations", async () => {
    const opened = new OpenedParts();
    const folder = mkdtempSync(join(tmpdir(), "tocsin-same-"));
    opened.add(() => rmSync(folder, { recursive: true, force: true }));
    try {
      const settings = postgresSettings(await testDatabase());
      const postgres = await openPostgresCases({ settings, registry: new Registry(), log }, opened);
      const state = await openStateDatabase({ dataDir: folder, indexPrefix: "tocsin" });
      opened.add(() => state.close());
      const options = { dataDir: folder, registry: new Registry(), log, now: Date.now };
      const platformWord = new PlatformWord(folderWord(state), folderPlace("folder"), "platform");
      const sqlite = await openEmbeddedCases(options, { state, platformWord, hasEvents: false }, opened);
      // Each run goes on with what the last one left, on both sides. So nothing is shrunk.
      const property = fc.asyncProperty(fc.array(operation, { minLength: 5, maxLength: 25 }), async (operations) => {
        for (const operate of operations) expect(await operate(postgres)).toEqual(await operate(sqlite));
      });
      await fc.assert(property, { numRuns: RUNS, endOnFailure: true });
    } finally {
      await opened.close();
    }
  });
});
