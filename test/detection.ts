import { setTimeout as sleep } from "node:timers/promises";
import type { TestServer } from "./api-server.ts";

// Shared by tests of detection on the real server.

const PATIENCE_MS = 100_000;

/** Polls until the assertion holds: detection runs beside the requests. */
export async function eventually<Value>(ask: () => Promise<Value>, holds: (value: Value) => void): Promise<Value> {
  const until = Date.now() + PATIENCE_MS;
  for (;;) {
    const value = await ask();
    try {
      holds(value);
      return value;
    } catch (error) {
      if (Date.now() > until) throw error;
      await sleep(20);
    }
  }
}

let made = 0;
/** An event type that no other test submits. */
export const uniqueType = () => `kind_${++made}`;

export const alertsOf = async (server: TestServer, { name }: { readonly name: string }) =>
  (await server.call("GET", `/v1/alerts?rule_name=${name}`)).body.data as any[];
