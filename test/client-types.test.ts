import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { openTestServer } from "./api-server.ts";

test("the printed types of the API are those of its document", async () => {
  const server = await openTestServer();
  try {
    const { text } = await server.call("GET", "/openapi.json", { key: null });
    const types = readFileSync(new URL("../clients/typescript/schema.d.ts", import.meta.url), "utf8");
    const printed = /^\/\/ Printed by .* SHA-256 of \/openapi\.json: ([0-9a-f]{64})$/m.exec(types)?.[1];
    const hash = createHash("sha256").update(text).digest("hex");
    expect(printed, "the API has changed: run npm run client-types and commit the result").toBe(hash);
  } finally {
    await server.close();
  }
});
