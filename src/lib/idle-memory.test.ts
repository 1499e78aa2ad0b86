import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";

// The flags of main.mjs with shorter delays.
const FLAGS = ["--memory-reducer-delay-ms=500", "--gc-memory-reducer-start-delay-ms=0"];

// A heap with 64 MB of garbage. The program ends when most of it has been released, and otherwise waits until the test times
// out. It checks rarely, because checking allocates.
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
