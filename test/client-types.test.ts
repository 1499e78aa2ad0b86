import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { startTocsin } from "./tocsin.ts";

test("the printed types of the API are those of its document", async () => {
  const folder = mkdtempSync(join(tmpdir(), "tocsin-types-"));
  // A process of its own: this one may have read rules of another platform, which the document would name.
  const server = await startTocsin(join(folder, "data"));
  try {
    const text = await (await fetch(`${server.address}/openapi.json`)).text();
    const types = readFileSync(new URL("../clients/typescript/schema.d.ts", import.meta.url), "utf8");
    const printed = /^\/\/ Printed by .* SHA-256 of \/openapi\.json: ([0-9a-f]{64})$/m.exec(types)?.[1];
    const hash = createHash("sha256").update(text).digest("hex");
    expect(printed, "the API has changed: run npm run client-types and commit the result").toBe(hash);
  } finally {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
});
