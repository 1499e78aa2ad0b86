import * as fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createRule } from "../../src/api/rule-endpoints.fixture.ts";
import { parseExact } from "../../src/lib/exact-json.ts";
import { DAY_MS, formatTime } from "../../src/lib/time.ts";
import { flowRowsOf } from "../../src/model/flow-rows.ts";
import { withEventEngines } from "../../src/store/opensearch/opensearch-events.fixture.ts";
import { openTestServer, type Answer, type TestServer } from "../api-server.ts";

// The same random operations on a service with its data folder and on one with PostgreSQL and OpenSearch give the same answers:
// events, amendments, detection, work on alerts, flows, and questions about all of them, through the API. Each engine has a
// test of its own that looks closer. TOCSIN_TEST_OPERATIONS=2000 TOCSIN_TEST_SEED=7 has it run for longer.

const OPERATIONS = Number(process.env["TOCSIN_TEST_OPERATIONS"] ?? 40);
const SEED = Number(process.env["TOCSIN_TEST_SEED"] ?? 1);
const START = Date.UTC(2026, 10, 15, 12);
const MINUTE_MS = 60_000;
/** The numbers of events that only show that detection has seen all before them. */
const MARKERS = 1_000_000;
const ID = /\b([a-z]{3,4})_[0-9a-z]{16,}/g;

/** A service and the names that the test gives to its ids, which differ between services. */
class Side {
  readonly server: TestServer;
  readonly names = new Map<string, string>();
  markers = 0;
  constructor(server: TestServer) {
    this.server = server;
  }

  named(text: string): string {
    return text.replaceAll(ID, (id, kind: string) => this.names.get(id) ?? kind);
  }

  idOf(name: string): string {
    return [...this.names].find(([, known]) => known === name)![0];
  }

  async ask(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    const answer = await this.server.call(method, path, { body, headers });
    expect(answer.status, answer.text).toBeLessThan(500);
    return answer;
  }

  async answer(method: string, path: string, body?: unknown): Promise<unknown> {
    const { status, text } = await this.ask(method, path, body);
    return [status, rounded(parseExact(this.named(text)))];
  }
}

/** Runs on one side. What it returns must be the same on the other. */
type Operation = (side: Side) => Promise<unknown>;

/** Sums of doubles differ in their last digits. */
function rounded(value: unknown): unknown {
  if (typeof value === "number" && !Number.isInteger(value)) return Number(value.toPrecision(9));
  if (Array.isArray(value)) return value.map(rounded);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, rounded(inner)]));
}

/** Alerts that were created in the same millisecond have no order that both sides share. */
function unordered(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.map(unordered).sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
  }
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, unordered(inner)]));
}

const USERS = ["ada", "Ben", "straße", "ΣΑΣ"];
const ADDRESSES = ["192.0.2.1", "192.0.2.20", "198.51.100.7", "2001:db8::1"];
const TEXTS = ["door opened", "Door closed", "line\nbreak 10.0.0.1", "naïve café", "x".repeat(1200)];
const data = fc.record(
  {
    user: fc.constantFrom(...USERS),
    src_ip: fc.constantFrom(...ADDRESSES),
    port: fc.constantFrom<unknown>(22, 443, "443", 9_007_199_254_740_993n, 0.1, null, true),
    text: fc.constantFrom(...TEXTS),
    deep: fc.array(fc.record({ tag: fc.constantFrom("a", "b", 1) }), { maxLength: 2 }),
  },
  { requiredKeys: ["user"] },
);
const condition = fc.oneof(
  fc.constantFrom(...USERS).map((equals) => ({ field: "raw.user", equals, ignore_case: true })),
  fc.constantFrom("192.0.2.0/24", "2001:db8::/32").map((cidr) => ({ field: "raw.src_ip", cidr })),
  fc.constantFrom(100, 443).map((gt) => ({ field: "raw.port", gt })),
  fc.constantFrom("door", "10.0.0", "café").map((keyword) => ({ keyword })),
  fc.constantFrom("^[Dd]oor", "o{1,2}").map((regex) => ({ field: "raw.text", regex })),
  fc.constantFrom("raw.deep.tag", "enrichment.seen").map((field) => ({ field, exists: true })),
);
const field = fc.constantFrom("raw.user", "raw.port", "raw.src_ip", "raw.deep.tag", "type", "severity");
const query = fc
  .tuple(fc.array(condition, { maxLength: 2 }), fc.array(condition, { maxLength: 1 }))
  .map(([must, not]) => ({ bool: { must, must_not: not } }));
const from = fc.nat(3).map((days) => formatTime(START - days * DAY_MS));

function operations(): Operation[] {
  let next = 0;
  let batches = 0;
  const submit = fc
    .tuple(fc.array(data, { minLength: 1, maxLength: 8 }), fc.constantFrom("login", "motion"), fc.boolean())
    .map(([several, type, isRepeated]): Operation => {
      const first = next;
      next += several.length;
      // No two events have the same time: ids would order them.
      const body = several.map((each, i) => ({
        type,
        source: "custom",
        severity: ["low", "high", "critical"][(first + i) % 3],
        timestamp: formatTime(START - (((first + i) * 61_001) % (3 * DAY_MS))),
        data: { ...each, n: first + i },
      }));
      const headers = { "idempotency-key": `batch-${++batches}` };
      return async (side) => {
        for (let attempt = 0; attempt < (isRepeated ? 2 : 1); attempt++) {
          const answer = await side.ask("POST", "/v1/events/batch", body, headers);
          expect(answer.status, answer.text).toBeLessThan(300);
          for (const [i, id] of answer.body.data.ids.entries()) side.names.set(id, `event ${first + i}`);
        }
      };
    });
  /** One by one, at the present: a threshold is reached in the order of arrival. */
  const attack = fc.tuple(fc.constantFrom(...USERS), fc.integer({ min: 1, max: 4 })).map(([user, count]): Operation => {
    const first = next;
    next += count;
    return async (side) => {
      for (let n = first; n < first + count; n++) {
        const timestamp = formatTime(START + n);
        const body = { type: "brute", source: "custom", timestamp, data: { user, n } };
        side.names.set((await side.ask("POST", "/v1/events", body)).body.data.id, `event ${n}`);
      }
    };
  });
  const amend = fc.integer({ min: 2, max: 5 }).map((every): Operation => async ({ server, names }) => {
    const chosen = [...names].filter(([, name]) => name.startsWith("event") && Number(name.slice(6)) % every === 0);
    await server.store.events.amend(chosen.map(([id]) => ({ id, enrichment: { seen: every, [`by${every}`]: ["é"] } })));
  });
  const flows = fc
    .array(fc.tuple(fc.nat(200), fc.nat(3), fc.nat(3), fc.integer({ min: 1, max: 10 ** 6 })), { minLength: 1 })
    .map((drawn): Operation => {
      const batch = `flows ${++batches}`;
      const rows = drawn.map(([minute, src, dst, bytes], nth) => {
        const windowStartMs = START - (minute + 1) * MINUTE_MS;
        return {
          windowStartMs,
          src: ADDRESSES[src]!,
          dst: ADDRESSES[dst]!,
          srcPort: batches * 100 + nth,
          dstPort: [22, 53, 443][nth % 3]!,
          protocol: [6, 17][nth % 2]!,
          tcpFlags: 0,
          bytes: BigInt(bytes) << 40n,
          packets: BigInt(nth + 1),
          firstSeenMs: windowStartMs,
          lastSeenMs: windowStartMs + 1000,
          exporter: "192.0.2.250",
          version: 9,
        };
      });
      return async ({ server }) => {
        await server.store.flows.append(flowRowsOf(rows), batch);
        await server.store.flows.append(flowRowsOf(rows), batch);
      };
    });
  /** Waits for detection, which sees the marker last, and names the alerts. */
  const detect: Operation = async (side) => {
    const n = MARKERS + side.markers++;
    const body = {
      type: "marker",
      source: "custom",
      timestamp: formatTime(START + 20_000 + side.markers),
      data: { n },
    };
    const { id: marker } = (await side.ask("POST", "/v1/events", body)).body.data;
    side.names.set(marker, `event ${n}`);
    const marked = async () => (await side.ask("GET", `/v1/alerts?event_id=${marker}`)).body.data;
    await expect.poll(marked, { interval: 50 }).toHaveLength(1);
    const alerts: any[] = [];
    for (let page = 1, total = 1; alerts.length < total; page++) {
      const { body: listed } = await side.ask("GET", `/v1/alerts?per_page=100&page=${page}`);
      alerts.push(...listed.data);
      total = listed.pagination.total;
    }
    for (const { id, rule_name: rule, first_event_at: at } of alerts) side.names.set(id, `alert ${rule} ${at}`);
    return unordered(rounded(parseExact(side.named(JSON.stringify(alerts)))));
  };
  /** Detection runs beside the operations: who asks about alerts waits for it first. */
  const detected =
    (operate: Operation): Operation =>
    async (side) => [await detect(side), await operate(side)];
  const work = fc
    .tuple(
      fc.nat(1000),
      fc.constantFrom<readonly [string, string, object]>(
        ["POST", "acknowledge", { assignee: "anna@example.com" }],
        ["POST", "resolve", { resolution: "false_positive", comment: "a test" }],
        ["POST", "reopen", {}],
        ["POST", "comments", { text: "naïve café" }],
        ["POST", "assign", { assignee: null }],
        ["PUT", "tags", { tags: ["vip"] }],
      ),
    )
    .map(([nth, [method, action, body]]) =>
      detected(async (side) => {
        const alerts = [...side.names.values()].filter((name) => name.startsWith("alert")).sort();
        if (alerts.length === 0) return undefined;
        const id = side.idOf(alerts[nth % alerts.length]!);
        return [
          unordered(await side.answer(method, `/v1/alerts/${id}/${action}`, body)),
          unordered(await side.answer("GET", `/v1/alerts/${id}`)),
          unordered(await side.answer("GET", `/v1/alerts/${id}/events`)),
        ];
      }),
    );
  const ask =
    (method: string, path: string, body?: unknown): Operation =>
    (side) =>
      side.answer(method, path, body);
  const questions = fc.oneof(
    fc
      .tuple(from, fc.constantFrom("", "&search=door", "&search=caf", "&type=motion", "&severity=high&search=ada"))
      .map(([since, more]) => ask("GET", `/v1/events?limit=30&from=${since}${more}`)),
    fc.tuple(query, field, fc.constantFrom("asc", "desc"), fc.nat(20)).map(([query, by, direction, limit]) =>
      ask("POST", "/v1/events/search", {
        query,
        sort: { [by]: direction, timestamp: "desc" },
        limit,
        aggs: {
          values: { terms: { field: by, aggs: { ports: { stats: { field: "raw.port" } } } } },
          days: { histogram: { field: "timestamp", interval: "1d" } },
          users: { cardinality: { field: "raw.user" } },
        },
      }),
    ),
    from.map((since) => ask("GET", `/v1/entities?search=192&from=${since}`)),
    fc.constant<Operation>(async (side) => {
      const { body } = await side.ask("GET", "/v1/events/fields");
      // Ids have another order.
      return body.data.fields.filter(({ name }: { name: string }) => name !== "id");
    }),
    fc
      .constantFrom("", "&severity=high", "&search=marker", "&status=open")
      .map((more) => detected(async (side) => unordered(await side.answer("GET", `/v1/alerts?limit=100${more}`)))),
    fc.constant(
      detected(async (side) =>
        unordered(
          await side.answer("POST", "/v1/alerts/search", {
            limit: 100,
            aggs: { rules: { terms: { field: "rule.name" } }, states: { terms: { field: "status" } } },
          }),
        ),
      ),
    ),
    fc.constant(detected(ask("GET", "/v1/alerts/stats"))),
    fc
      .constantFrom("", "&port=443", "&protocol=17")
      .map((more) => ask("GET", `/api/v1/flows?limit=500&sort=bytes${more}`)),
    fc
      .constantFrom("src", "dst", "pair", "port")
      .map((by) => ask("GET", `/api/v1/flows/top-talkers?dimension=${by}&limit=5`)),
    fc.constant(ask("GET", "/api/v1/flows/protocols")),
    fc.constant(ask("GET", "/api/v1/flows/timeseries")),
  );
  const any = fc.oneof(
    { weight: 4, arbitrary: submit },
    { weight: 2, arbitrary: attack },
    { weight: 1, arbitrary: amend },
    { weight: 2, arbitrary: flows },
    { weight: 4, arbitrary: work },
    { weight: 10, arbitrary: questions },
  );
  const drawn = fc.sample(any, { seed: SEED, numRuns: OPERATIONS });
  const begin = fc.sample(submit, { seed: SEED, numRuns: 3 });
  const end = fc.sample(questions, { seed: SEED, numRuns: 10 });
  return [...begin, ...drawn, detect, ...end];
}

await withEventEngines("services with a data folder and with PostgreSQL and OpenSearch", () => {
  let sides: readonly Side[];
  beforeAll(async () => {
    // A clock that stands still: detection runs beside the operations, and would see another time on each side.
    const options = { now: () => START, settings: { rateLimits: false } };
    const servers = [
      await openTestServer({ ...options, usesCluster: false }),
      await openTestServer({ ...options, usesCluster: true }),
    ];
    sides = servers.map((server) => new Side(server));
    for (const side of sides) {
      const rules = [
        {
          name: "same.marker",
          conditions: [{ field: "type", equals: "marker" }],
          dedup: { period: "1h", by: ["type"] },
        },
        {
          name: "same.motion",
          conditions: [{ field: "type", equals: "motion" }],
          dedup: { period: "1h", by: ["raw.user"] },
        },
        {
          name: "same.brute",
          severity: "high",
          conditions: [{ field: "type", equals: "brute" }],
          window: "10m",
          threshold: { count: 3, group_by: "raw.user" },
        },
      ];
      for (const rule of rules) side.names.set((await createRule(side.server, rule)).id, rule.name);
    }
  });
  afterAll(async () => {
    for (const { server } of sides ?? []) await server.close();
  });

  test(
    "give the same answers to the same operations",
    async () => {
      const [embedded, cluster] = sides;
      for (const [nth, operate] of operations().entries()) {
        const wanted = await operate(embedded!);
        expect(await operate(cluster!), `operation ${nth}, seed ${SEED}`).toEqual(wanted);
      }
      expect([...cluster!.names.values()].filter((name) => name.startsWith("alert")).length).toBeGreaterThan(3);
    },
    OPERATIONS * 20_000,
  );
});
