import { timed, withServer, type Bench } from "./bench.ts";
import { ms, spreadOf, type Measurement } from "./figures.ts";

// Simulations of several kinds of rules on the whole week through HTTP. A rule whose conditions the columns can evaluate
// must cost in proportion to its matches, not to the week.

const ROUNDS = 3;
const MS_MAX = 5000;
/** Few matches, in dedicated columns. */
const SELECTIVE_MS_MAX = 1000;
const SELECTIVE: ReadonlySet<string> = new Set([
  "a threshold on failed logins",
  "a sequence of failed logins and one that is not",
]);

const common = { severity: "high", description: "A rule that is tried", actions: [{ alert: { channels: [] } }] };

const RULES = {
  "a threshold on a common event": {
    conditions: [{ field: "type", equals: "dns_query" }],
    window: "5m",
    threshold: { count: 100, group_by: "raw.src_ip" },
  },
  "a threshold on every event with an address": {
    conditions: [{ field: "raw.src_ip", exists: true }],
    window: "1m",
    threshold: { count: 50, group_by: "raw.src_ip" },
  },
  "a threshold on failed logins": {
    conditions: [{ field: "type", equals: "login_failure" }],
    window: "5m",
    threshold: { count: 5, group_by: "raw.src_ip" },
  },
  "a sequence of failed logins and one that is not": {
    conditions: [],
    sequence: [
      { name: "failed", conditions: [{ field: "type", equals: "login_failure" }], count: 3 },
      { name: "in", conditions: [{ field: "type", equals: "admin_login" }] },
    ],
    window: "10m",
    group_by: "raw.src_ip",
  },
  "a keyword in any field": { conditions: [{ keyword: "log4j" }] },
} satisfies Record<string, object>;

interface Simulated {
  data: { matches: number; alerts: number };
}

export async function simulate({ dataset }: Bench): Promise<readonly Measurement[]> {
  const time_range = { from: new Date(dataset.fromMs).toISOString(), to: new Date(dataset.toMs).toISOString() };
  return withServer(dataset.folder, async (server) => {
    const measurements: Measurement[] = [];
    for (const [name, rule] of Object.entries(RULES)) {
      process.stderr.write(`  ${name}\n`);
      const body = { rule: { name: "bench.simulated", ...common, ...rule }, time_range };
      const took: number[] = [];
      let found: Simulated["data"] | undefined;
      for (let round = 0; round < ROUNDS; round++) {
        const { ms: spent, value } = await timed(() => server.post<Simulated>("/v1/rules/simulate", body));
        took.push(spent);
        found = value.data;
      }
      const { p50, max } = spreadOf(took);
      const msMax = SELECTIVE.has(name) ? SELECTIVE_MS_MAX : MS_MAX;
      measurements.push({
        name: `simulate ${name} over 7 days`,
        result: `p50 ${ms(p50)}; slowest ${ms(max)}; ${found!.matches.toLocaleString("en")} matches, ${found!.alerts.toLocaleString("en")} alerts`,
        target: `at most ${msMax / 1000} s`,
        met: max <= msMax,
        values: { p50, max, matches: found!.matches, alerts: found!.alerts },
      });
    }
    return measurements;
  });
}
