import { expect } from "vitest";

let created = 0;
/** The input of a rule, with a unique name. */
export const rule = (more: object = {}) => ({
  name: `test.rule_${++created}`,
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

/** Creates a rule and returns it. */
export const createRule = async (server: Server, more: object = {}) => {
  const response = await server.call("POST", "/v1/rules", { body: rule(more) });
  expect(response.status, response.text).toBe(201);
  return response.body.data;
};

/** The fields that an error response names. */
export const faults = (response: { body: any }) =>
  response.body.error.details.map(({ field }: { field: string }) => field);
