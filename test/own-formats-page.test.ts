import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { makeFolder } from "./tocsin.ts";

// The example of docs/devices/own-formats.md, run as pasted.

const root = fileURLToPath(new URL("../", import.meta.url));

test("the example of the page runs as pasted and prints what the page says", () => {
  const page = readFileSync(join(root, "docs/devices/own-formats.md"), "utf8");
  const script = /<!-- example -->\n\n```sh\n([^]*?)```/.exec(page)![1]!;
  const printed = /```text\n([^]*?)```/.exec(page)![1]!;
  const folder = makeFolder();
  try {
    const bin = join(folder, "bin");
    mkdirSync(bin);
    writeFileSync(join(bin, "npx"), `#!/bin/sh\nshift\nexec "${process.execPath}" "${root}bin/tocsin.mjs" "$@"\n`);
    chmodSync(join(bin, "npx"), 0o755);
    const output = execFileSync("sh", ["-c", `set -e\n${script}`], {
      cwd: folder,
      env: { ...process.env, PATH: `${bin}:${process.env["PATH"]}`, TOCSIN_RETENTION_EVENTS_DAYS: "3650" },
      encoding: "utf8",
    });
    expect(output).toBe(`1 format: 0 faults, 0 hints.\n4 tests of 1 format passed, 0 failed.\n${printed}`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
