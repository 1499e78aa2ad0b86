import { expect } from "vitest";

let made = 0;
/** A rule as it is sent, under a name of its own. */
export const rule = (more: object = {}) => ({
  name: `test.rule_${++made}`,
  description: "A rule",
  severity: "low",
  conditions: [{ field: "type", equals: "never_happens" }],
  actions: [{ alert: { channels: [] } }],
  ...more,
});

interface Server {
  call(
    method: string,
    path: string,
    options: { readonly body: unknown },
  ): Promise<{ status: number; text: string; body: any }>;
}

/** Has it made, and gives it as the service does. */
export const createRule = async (server: Server, more: object = {}) => {
  const answer = await server.call("POST", "/v1/rules", { body: rule(more) });
  expect(answer.status, answer.text).toBe(201);
  return answer.body.data;
};

/** The fields that a refusal names. */
export const faults = (answer: { body: any }) => answer.body.error.details.map(({ field }: { field: string }) => field);
