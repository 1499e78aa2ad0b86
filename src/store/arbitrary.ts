import * as fc from "fast-check";
import type { Condition } from "../model/condition.ts";
import type { EventDraft, JsonObject } from "../model/event.ts";

// Random events and conditions that meet often enough to say something: few values, few paths, every shape.

const word = fc.constantFrom(
  "alpha",
  "Alpha",
  "beta",
  "be",
  "",
  "ΑΣ Σας",
  "İstanbul",
  "straße",
  'q"uo\\te',
  "nul\u0000x",
  "line\nbreak",
  "10.0.0.1",
  "10.0.0.12",
  "10.1.2.3",
  "2001:db8::1",
  "::ffff:10.0.0.1",
  "x'); DROP TABLE events; --",
  "a,b",
  "%_",
  "\u0001",
);
const number = fc.constantFrom(0, -1, 1, 2.5, 22, 443, 65535, 1e21, -1e-7, 9007199254740991, 0.1);
const scalar = fc.oneof(word, number, fc.boolean());
const anything = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: "small" },
    scalar,
    fc.constant(null),
    fc.array(tie("value"), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom("a", "b", "b.c", "~t/x", "c"), tie("value"), { maxKeys: 3 }),
  ),
})).value;

const raw = fc.record(
  {
    src_ip: fc.oneof(
      { weight: 6, arbitrary: fc.constantFrom("10.0.0.1", "10.0.0.12", "192.0.2.7", "2001:db8::1", "::ffff:10.0.0.1") },
      anything,
    ),
    dst_port: fc.oneof({ weight: 6, arbitrary: number }, anything),
    user: fc.oneof({ weight: 4, arbitrary: word }, anything),
    mixed: scalar,
    list: fc.array(scalar, { maxLength: 3 }),
    flag: fc.boolean(),
    port: fc.constantFrom(0, 3, 22, 443, -5),
    ports: fc.array(fc.constantFrom<number | string>(1, 2, 8, 443, "22"), { maxLength: 3 }),
    a: anything,
    "a.b": anything,
  },
  { requiredKeys: [] },
) as fc.Arbitrary<JsonObject>;

export function drafts(fromMs: number, toMs: number): fc.Arbitrary<EventDraft> {
  return fc.record({
    type: fc.constantFrom("login_failure", "motion", "Odd Type:1", "dns"),
    source: fc.constantFrom("custom", "platform_network", "platform_talk"),
    severity: fc.constantFrom("critical", "high", "medium", "low", "info"),
    class: fc.constantFrom("security", "network", "audit"),
    timestampMs: fc.integer({ min: fromMs, max: toMs - 1 }),
    raw,
    enrichment: fc.constantFrom<JsonObject>(
      {},
      { geo: { country: "AT", city: "Wien" } },
      { geo: { country: "DE" }, abuse_ipdb: { score: 80 } },
    ),
  });
}

const paths = fc.constantFrom(
  "raw.src_ip",
  "raw.dst_port",
  "raw.user",
  "raw.mixed",
  "raw.list",
  "raw.flag",
  "raw.a",
  "raw.a.b",
  "raw.a.b.c",
  "raw.a.c",
  "raw.a.~t/x",
  "raw.nothing",
  "raw",
  "enrichment",
  "enrichment.geo.country",
  "enrichment.geo",
  "enrichment.abuse_ipdb.score",
  "type",
);
const texts = fc.oneof(
  word.filter((text) => text !== ""),
  fc.constantFrom("a", "10.", "0.0.1", "TA", "ς", "i"),
);

const test = (field: string, operator: string, value: unknown, ignoreCase = false) =>
  ({ kind: "test", field, operator, value, ignoreCase }) as Condition;

const fieldTest: fc.Arbitrary<Condition> = fc.oneof(
  fc
    .tuple(paths, fc.constantFrom("equals", "not_equals"), scalar, fc.boolean())
    .map(([f, o, v, i]) => test(f, o, v, i)),
  fc
    .tuple(paths, fc.constantFrom("in", "not_in"), fc.array(scalar, { minLength: 1, maxLength: 4 }), fc.boolean())
    .map(([f, o, v, i]) => test(f, o, v, i)),
  fc
    .tuple(paths, fc.constantFrom("contains", "starts_with", "prefix", "ends_with"), texts, fc.boolean())
    .map(([f, o, v, i]) => test(f, o, v, i)),
  fc
    .tuple(
      paths,
      fc.constantFrom("^a", "a$", "[0-9]+\\.0", "(?i)ALPHA", "b.?t", "\\bte\\b", "^$", "x.y", "l.n", "ß"),
      fc.boolean(),
    )
    .map(([f, v, i]) => test(f, "regex", v, i)),
  fc
    .tuple(paths, fc.constantFrom("10.0.0.0/8", "10.0.0.0/30", "0.0.0.0/0", "2001:db8::/32", "::/0", "10.0.0.1"))
    .map(([f, v]) => test(f, "cidr", v)),
  fc.tuple(paths, fc.constantFrom("gt", "gte", "lt", "lte"), number).map(([f, o, v]) => test(f, o, v)),
  fc.tuple(paths, fc.boolean()).map(([f, v]) => test(f, "exists", v)),
  fc
    .tuple(
      fc.constantFrom("severity", "class", "source"),
      fc.constantFrom("equals", "not_equals"),
      fc.constantFrom("high", "HIGH", "audit", "custom", "platform_network"),
      fc.boolean(),
    )
    .map(([f, o, v, i]) => test(f, o, v, i)),
  fc
    .tuple(
      fc.constantFrom("severity", "source", "type", "timestamp"),
      fc.constantFrom("contains", "ends_with", "regex"),
      fc.constantFrom("i", "o", "T1"),
    )
    .map(([f, o, v]) => test(f, o, v)),
);

export function conditions(): fc.Arbitrary<Condition> {
  return fc.letrec<{ condition: Condition }>((tie) => ({
    condition: fc.oneof(
      { depthSize: "small", withCrossShrink: true },
      fieldTest,
      fc.array(tie("condition"), { maxLength: 3 }).map((of): Condition => ({ kind: "all", of })),
      fc.array(tie("condition"), { maxLength: 3 }).map((of): Condition => ({ kind: "any", of })),
      tie("condition").map((of): Condition => ({ kind: "not", of })),
    ),
  })).condition;
}
