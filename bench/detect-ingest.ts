import { withServer, type Bench, type Serving } from "./bench.ts";
import { perSecond, type Measurement } from "./figures.ts";
import { BATCH_SIZE, ingestInTurns } from "./ingest.ts";

// Cost of detection for ingest: the same load without rules and with a hundred, alternating.

const RULES = 100;
const SHARE_MIN = 0.8;

interface RuleView {
  readonly id: string;
  readonly builtin: boolean;
}

export async function detectIngest(bench: Bench): Promise<readonly Measurement[]> {
  const folder = await bench.writable();
  return withServer(folder, async (server) => {
    const rules = await prepareRules(server);
    const rates = await ingestInTurns(server, ["without", "with"], async (kind) => {
      await enable(server, rules, kind === "with");
      return () => {};
    });
    const lag = await server.get<{ data: { detection: { lag_seconds: number } } }>("/readyz");
    const ratio = rates.with / rates.without;
    return [
      {
        name: `durable batches of ${BATCH_SIZE} with ${RULES} rules`,
        result: `${perSecond(rates.with)}; detection ${lag.data.detection.lag_seconds.toFixed(1)} s behind at the end`,
        baseline: `${perSecond(rates.without)} without rules`,
        ratio,
        target: `at least ${SHARE_MIN}`,
        met: ratio >= SHARE_MIN,
        values: { ...rates, lagSeconds: lag.data.detection.lag_seconds },
      },
    ];
  });
}

/** The built-in rules, filled up to a hundred with rules of common shapes. */
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
