import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { limitedFetch, mayPrefetch } from "./limits.ts";

// A service that says what is left of a key's limit.

let remaining = 100;
const service = createServer((_, answer) => {
  answer.writeHead(200, { "X-RateLimit-Limit": "100", "X-RateLimit-Remaining": String(remaining) }).end();
});
beforeAll(() => new Promise<void>((resolve) => service.listen(0, "127.0.0.1", resolve)));
afterAll(() => service.close());

async function askWith(left: number): Promise<void> {
  remaining = left;
  await limitedFetch(new Request(`http://127.0.0.1:${(service.address() as AddressInfo).port}/`));
}

test("nothing is fetched unasked once less than a fifth of the limit is left", async () => {
  expect(mayPrefetch()).toBe(true);
  for (const [left, expected] of [
    [100, true],
    [20, true],
    [19, false],
    [0, false],
    [60, true],
  ] as const) {
    await askWith(left);
    expect(mayPrefetch(), `${left} of 100 left`).toBe(expected);
  }
});
