import { setTimeout as sleep } from "node:timers/promises";
import { callApi, type ApiAnswer } from "./chaos-load.ts";

// What a service has stored and found, read through its API.

const PAGE_EVENTS = 1000;
const PAGE_ALERTS = 100;
const LOOK_MS = 1000;
/** No new alerts for so long: another node may have just taken over, and begins with what is stored. */
const QUIET_MS = 15_000;
const ATTEMPTS_MAX = 30;
const QUERY = { bool: { must: [{ field: "type", starts_with: "chaos_" }] } };

export interface Findings {
  /** Ids of stored events by their number in the input; several if an event is there twice. */
  readonly events: ReadonlyMap<number, readonly string[]>;
  /** Counts by type, as the service counts them. */
  readonly types: Readonly<Record<string, number>>;
  readonly total: number;
  /** The numbers of events of the alerts, by title; several if there are several alerts. */
  readonly alerts: ReadonlyMap<string, readonly number[]>;
}

/** Repeats a question that is refused, or gets no answer on a busy machine. */
async function ask(url: string, key: string, method: string, path: string, body?: object): Promise<any> {
  for (let attempt = 1; ; attempt++) {
    const answer = await callApi(url, key, method, path, body ? { body: JSON.stringify(body) } : {}).catch(
      (error: Error): ApiAnswer => ({ status: 0, body: error.message }),
    );
    if (answer.status === 200) return answer.body;
    if (attempt === ATTEMPTS_MAX) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    await sleep(LOOK_MS);
  }
}

/** Waits until rules have evaluated every event. */
export async function awaitDetection(url: string, key: string, untilMs: number): Promise<void> {
  let [last, since] = ["", Date.now()];
  while (Date.now() < untilMs) {
    const { detection } = (await ask(url, key, "GET", "/readyz")).data;
    const { pagination } = await ask(url, key, "GET", "/v1/alerts?per_page=1");
    const now = `${detection.lag_seconds} ${pagination.total}`;
    if (now !== last) [last, since] = [now, Date.now()];
    if (detection.lag_seconds === 0 && Date.now() - since > QUIET_MS) return;
    await sleep(LOOK_MS);
  }
  throw new Error("detection has not caught up");
}

export async function readFindings(url: string, key: string): Promise<Findings> {
  const events = new Map<number, string[]>();
  let after: string | null | undefined;
  do {
    const page = await ask(url, key, "POST", "/v1/events/search", {
      query: QUERY,
      limit: PAGE_EVENTS,
      ...(after && { after }),
    });
    for (const { id, raw } of page.data.results as { id: string; raw: { n: number } }[])
      events.set(raw.n, [...(events.get(raw.n) ?? []), id]);
    after = page.data.next_cursor;
  } while (after);
  const { data: counted } = await ask(url, key, "POST", "/v1/events/search", {
    query: QUERY,
    limit: 0,
    aggs: { types: { terms: { field: "type", size: 10 } } },
  });
  const alerts = new Map<string, number[]>();
  let alertAfter: string | null | undefined;
  do {
    const query = `rule_name=chaos.single,chaos.group,chaos.sequence&limit=${PAGE_ALERTS}`;
    const page = await ask(url, key, "GET", `/v1/alerts?${query}${alertAfter ? `&after=${alertAfter}` : ""}`);
    for (const { title, event_count: count } of page.data as { title: string; event_count: number }[])
      alerts.set(title, [...(alerts.get(title) ?? []), count]);
    alertAfter = page.pagination?.next_cursor;
  } while (alertAfter);
  const buckets = counted.aggregations.types.buckets as { key: string; count: number }[];
  const types = Object.fromEntries(buckets.map(({ key, count }) => [key, count]).toSorted());
  return { events, alerts, types, total: counted.total };
}

/** Differences in words; empty if the cluster lost and doubled nothing and agrees with the single node. */
export function compareFindings(
  acknowledged: ReadonlyMap<number, string>,
  cluster: Findings,
  single: Findings,
): string[] {
  const faults: string[] = [];
  const tell = (count: number, what: string, example: unknown) => {
    if (count > 0) faults.push(`${count} ${what}, such as ${JSON.stringify(example)}`);
  };
  const lost = [...acknowledged].filter(([n, id]) => !cluster.events.get(n)?.includes(id));
  tell(lost.length, "acknowledged events are lost", lost[0]);
  const doubled = [...cluster.events].filter(([, ids]) => ids.length > 1);
  tell(doubled.length, "events are stored more than once", doubled[0]);
  const differing = [...new Set([...cluster.events.keys(), ...single.events.keys()])].filter(
    (n) => cluster.events.has(n) !== single.events.has(n),
  );
  tell(differing.length, "events are only in one of the two stores", differing[0]);
  for (const what of ["types", "total"] as const) {
    const [ours, theirs] = [cluster[what], single[what]].map((value) => JSON.stringify(value));
    if (ours !== theirs) faults.push(`${what}: ${ours} in the cluster, ${theirs} in a single node`);
  }
  const repeated = [...cluster.alerts].filter(([, counts]) => counts.length > 1);
  tell(repeated.length, "alerts were raised more than once", repeated[0]);
  const titles = new Set([...cluster.alerts.keys(), ...single.alerts.keys()]);
  const unlike = [...titles]
    .map((title) => [title, cluster.alerts.get(title), single.alerts.get(title)])
    .filter(([, ours, theirs]) => JSON.stringify(ours) !== JSON.stringify(theirs));
  tell(unlike.length, "alerts differ (title, events in the cluster, events in a single node)", unlike[0]);
  return faults;
}
