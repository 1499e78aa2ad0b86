import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";

// Those of main.mjs, in less time.
const FLAGS = ["--memory-reducer-delay-ms=500", "--gc-memory-reducer-start-delay-ms=0"];

// A heap that has had 64 MB of garbage; it ends when most of that has been given back, which it may wait for until the test is
// given up. Its questions are far apart: asking is allocating.
const PROGRAM = `
  import { getHeapStatistics } from "node:v8";
  import { setTimeout as sleep } from "node:timers/promises";
  import { releaseIdleMemory } from ${JSON.stringify(new URL("./idle-memory.ts", import.meta.url).href)};
  let garbage = [];
  for (let part = 0; part < 4000; part++) garbage.push(new Array(2000).fill(part));
  const full = getHeapStatistics().total_physical_size;
  garbage = undefined;
  releaseIdleMemory();
  do await sleep(2000);
  while (getHeapStatistics().total_physical_size > full / 2);
`;

test("an idle process releases the memory of its last work", async () => {
  const run = promisify(execFile)(process.execPath, [...FLAGS, "--input-type=module", "--eval", PROGRAM], {
    timeout: 200_000,
  });
  await expect(run).resolves.toMatchObject({ stderr: "" });
});
