import type { FastifyRequest } from "fastify";
import { z } from "zod";
import type { Rulebook } from "../detection/rules/rulebook.ts";
import type { RuleTestsApi } from "../detection/rules/rule-tests-thread.ts";
import { toSimulatedRule } from "../detection/simulation/simulation.ts";
import { Thread } from "../lib/thread.ts";
import type { ApiKey } from "../model/key.ts";
import type { Rule } from "../model/rule.ts";
import { simulatedRuleSchema } from "../model/rule-schema.ts";
import type { RuleTest } from "../model/rule-test.ts";
import { abortOnDisconnect } from "./client-disconnect.ts";
import { withDeadline } from "./deadline.ts";
import { endpoint, type Endpoint } from "./endpoint.ts";
import { KeySlots } from "./key-slots.ts";
import { invalid } from "./problems.ts";
import { data } from "./response.ts";
import { RULE_INPUT_EXAMPLE } from "./rule-example.ts";

const RUNS_MAX = 2;
const RUNS_PER_KEY_MAX = 1;
const RETRY_SECONDS = 5;
const RUN_MS_MAX = 10_000;
/** The heap of the thread that runs the tests; rules remember the events of their windows. */
const THREAD_HEAP_MB = 256;

/** The tests of a rule, wherever it keeps them. */
export type TestsOf = (rule: Rule) => Promise<readonly RuleTest[]>;

export interface RuleTestEndpointOptions {
  readonly rulebook: Rulebook;
  readonly testsOf: TestsOf;
  readonly sources: readonly string[];
  readonly now: () => number;
}

const resultSchema = z
  .object({
    passed: z.int().describe("tests that pass"),
    failed: z.int(),
    tests: z
      .array(
        z.object({
          name: z.string(),
          passed: z.boolean(),
          expected: z.string().describe("the expected alerts in words"),
          actual: z.string().describe("the raised alerts in words"),
        }),
      )
      .describe("in the order of the rule"),
  })
  .meta({ id: "RuleTestResult" });

const RULE_EXAMPLE = {
  ...RULE_INPUT_EXAMPLE,
  tests: [
    ...RULE_INPUT_EXAMPLE.tests,
    {
      name: "four within a minute",
      events: [{ type: "login_failure", raw: { src_ip: "192.0.2.17" }, repeat: 4, every: "10s" }],
      alerts: 0,
    },
  ],
};
const RESULT_EXAMPLE = {
  passed: 2,
  failed: 0,
  tests: [
    {
      name: "five within a minute",
      passed: true,
      expected: "1 alert",
      actual: '1 alert, titled "Failed logins from 192.0.2.17"',
    },
    { name: "four within a minute", passed: true, expected: "no alerts", actual: "no alerts" },
  ],
};

export function ruleTestEndpoints({ rulebook, testsOf, sources, now }: RuleTestEndpointOptions): Endpoint[] {
  const slots = new KeySlots({
    what: "runs of tests",
    max: RUNS_MAX,
    perKeyMax: RUNS_PER_KEY_MAX,
    retrySeconds: RETRY_SECONDS,
  });
  const limits =
    "Runs in the engine of live detection, in empty memory and with the exceptions that are in force; nothing is stored. " +
    `At most ${RUNS_MAX} runs are in flight (503 past that), ${RUNS_PER_KEY_MAX} per key (429 past that), each for at most ` +
    `${RUN_MS_MAX / 1000} s (400 past that).`;
  const responses = {
    200: { description: "the outcome of each test", data: resultSchema, example: RESULT_EXAMPLE },
  };
  const run = (
    { key, request, field }: { readonly key: ApiKey; readonly request: FastifyRequest; readonly field: string },
    rule: Rule,
    tests: readonly RuleTest[],
  ) =>
    slots.hold(key, async () => {
      const outcomes = await abortOnDisconnect(request.raw.socket, (signal) =>
        runInThread(withExceptionsAt(rule, now()), tests, { signal, field }),
      );
      const results = outcomes.map(({ expected, actual, faults }, i) => ({
        name: tests[i]!.name,
        passed: faults.length === 0,
        expected,
        actual,
      }));
      const passed = results.filter((result) => result.passed).length;
      return data({ passed, failed: results.length - passed, tests: results });
    });
  return [
    endpoint({
      method: "POST",
      path: "/v1/rules/test",
      operationId: "testRuleDraft",
      tag: "Rules",
      summary: "Run the tests of a rule that is not stored",
      description: `Takes a rule with its \`tests\`; the name may be that of an existing rule. ${limits}`,
      scopes: ["rules:read"],
      body: z.strictObject({ rule: simulatedRuleSchema(sources) }).meta({ id: "RuleTestRequest" }),
      example: { rule: RULE_EXAMPLE },
      responses,
      handle: ({ body: { rule }, key, request }) =>
        run({ key, request, field: "rule.tests" }, toSimulatedRule(rule, now()), rule.tests),
    }),
    endpoint({
      method: "POST",
      path: "/v1/rules/:id/test",
      operationId: "testRule",
      tag: "Rules",
      summary: "Run the tests of a rule",
      description: `Built-in rules have tests too. A rule without tests answers with an empty list. ${limits}`,
      scopes: ["rules:read"],
      params: z.object({ id: z.string() }),
      responses,
      problems: ["not_found"],
      handle: async ({ params, key, request }) => {
        const rule = rulebook.get(params.id);
        return run({ key, request, field: "id" }, rule, await testsOf(rule));
      },
    }),
  ];
}

/** The rule with the exceptions that are in force now, for all events: the times of tests are not those of today. */
function withExceptionsAt(rule: Rule, nowMs: number): Rule {
  const exceptions = rule.exceptions
    .filter(({ expiresAt }) => expiresAt === null || expiresAt > nowMs)
    .map((exception) => ({ ...exception, expiresAt: null, activeAfter: null }));
  return { ...rule, tests: undefined, exceptions };
}

interface RunOptions {
  readonly signal: AbortSignal;
  /** The field of the request that a refusal names. */
  readonly field: string;
  readonly msMax?: number;
}

export async function runInThread(
  rule: Rule,
  tests: readonly RuleTest[],
  { signal, field, msMax = RUN_MS_MAX }: RunOptions,
): ReturnType<Thread<RuleTestsApi>["call"]> {
  if (tests.length === 0) return [];
  signal.throwIfAborted();
  const refuse = (message: string) => invalid([{ field, message }]);
  const late = () => refuse(`the tests take more than ${msMax / 1000} s; use fewer events`);
  // If the thread dies, the pending call rejects.
  const thread = new Thread<RuleTestsApi>(
    new URL("../detection/rules/rule-tests-thread.ts", import.meta.url),
    {},
    () => undefined,
    { maxOldGenerationSizeMb: THREAD_HEAP_MB },
  );
  try {
    return await withDeadline({ msMax, signal, late }, thread.call("run", rule, tests));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ERR_WORKER_OUT_OF_MEMORY") throw error;
    throw refuse(`the tests take more than ${THREAD_HEAP_MB} MB of memory; use fewer or smaller events`);
  } finally {
    await thread.end();
  }
}
