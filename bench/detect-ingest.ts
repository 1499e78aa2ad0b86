import { withServer, type Bench, type Serving } from "./bench.ts";
import { perSecond, type Answer } from "./figures.ts";
import { BATCH_SIZE, CONNECTIONS } from "./ingest.ts";
import { startLoad } from "./load.ts";

// What detection takes from ingest: the same load with no rule in force and with a hundred, in turns.

const RULES = 100;
const ROUNDS = 3;
const WARM_UP_MS = 2000;
const DURATION_MS = 10_000;
const SHARE_MIN = 0.8;

interface RuleView {
  readonly id: string;
  readonly builtin: boolean;
}

export async function detectIngest(bench: Bench): Promise<readonly Answer[]> {
  const folder = await bench.writable();
  return withServer(folder, async (server) => {
    const rules = await prepareRules(server);
    const rates: Record<"with" | "without", number[]> = { with: [], without: [] };
    for (let round = 0; round < ROUNDS; round++) {
      for (const kind of ["without", "with"] as const) {
        await enable(server, rules, kind === "with");
        const { report } = startLoad({
          port: server.port,
          key: server.key,
          connections: CONNECTIONS,
          warmUpMs: WARM_UP_MS,
          durationMs: DURATION_MS,
          work: { kind: "batch", size: BATCH_SIZE },
        });
        rates[kind].push((await report).eventsPerSecond);
      }
    }
    const [without, withRules] = [median(rates.without), median(rates.with)];
    const lag = await server.get<{ data: { detection: { lag_seconds: number } } }>("/readyz");
    const ratio = withRules / without;
    return [
      {
        question: `durable batches of ${BATCH_SIZE} with ${RULES} rules in force`,
        figure: `${perSecond(withRules)}; detection ${lag.data.detection.lag_seconds.toFixed(1)} s behind at the end`,
        baseline: `${perSecond(without)} with no rule`,
        ratio,
        reach: `at least ${SHARE_MIN}`,
        met: ratio >= SHARE_MIN,
        values: { with: withRules, without, lagSeconds: lag.data.detection.lag_seconds },
      },
    ];
  });
}

/** The rules of the house, and as many others of the usual shapes as make a hundred. */
export async function prepareRules(server: Serving): Promise<readonly RuleView[]> {
  const { data: builtins } = await server.get<{ data: RuleView[] }>("/v1/rules?per_page=100");
  const made = Array.from({ length: Math.max(0, RULES - builtins.length) }, (_, n) => ({
    name: `bench.rule_${n}`,
    description: `Rule ${n} of the measurement`,
    severity: "low",
    conditions: [
      [{ field: "raw.message", contains: `never-${n}`, ignore_case: true }],
      [
        { field: "type", in: ["login_failure", "access_denied"] },
        { field: "raw.user", starts_with: `u${n}` },
      ],
      [{ field: "raw.src_ip", cidr: `203.0.${n}.0/24` }, { not: { field: "severity", equals: "info" } }],
      [{ field: "raw.message", regex: `login_failure .*attempt-${n}[0-9]+` }],
    ][n % 4],
    ...(n % 4 === 1 ? { window: "5m", threshold: { count: 5, group_by: "raw.src_ip" } } : {}),
    actions: [{ alert: { channels: [] } }],
  }));
  for (const rule of made) await server.post("/v1/rules", rule);
  const { data } = await server.get<{ data: RuleView[] }>("/v1/rules?per_page=100");
  return data.slice(0, RULES);
}

async function enable(server: Serving, rules: readonly RuleView[], enabled: boolean): Promise<void> {
  for (const { id } of rules) await server.patch(`/v1/rules/${id}`, { enabled });
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!;
}
