import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { SlowestFirst } from "./test/slowest-first.ts";

export default defineConfig({
  test: {
    include: ["src/**/*.test.ts", "test/**/*.test.ts", "console/**/*.test.ts"],
    // Minutes of crashes and of other people's exporters: npm run test:long.
    exclude: ["test/long/**"],
    // Real servers, real stores, real crashes: slow machines get time, and nothing asserts on it.
    testTimeout: 240_000,
    hookTimeout: 240_000,
    expect: { poll: { timeout: 100_000 } },
    // Stores start threads, and threads load code: from the same cache as the service.
    env: { NODE_COMPILE_CACHE: fileURLToPath(new URL("node_modules/.cache/tocsin", import.meta.url)) },
    // Tests of a single part start no process that would enable it.
    setupFiles: ["test/exact-json.ts"],
    // Engines that are started for the files that need them.
    globalSetup: ["test/cluster/shared-servers.ts", "test/cluster/opensearch-setup.ts"],
    // Node loads the code as it does for the service. Vite would wrap every imported name, which slows the main thread of a
    // server down, and nothing here needs its transforms.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    pool: "forks",
    // A process runs many files: importing one has no side effects, so what a process has loaded serves the next file. A
    // process for each file spends most of a second on loading.
    isolate: false,
    // Each start of a store is half a dozen threads that load code: a quarter of that time was spent on clearing up behind
    // the loading, again and again in a young generation of one megabyte, with helpers that two cores have no room for.
    execArgv: ["--min-semi-space-size=16", "--single-threaded-gc"],
    // Many wait for processes that start or end: one more than most machines that test have cores.
    maxWorkers: 3,
    sequence: { sequencer: SlowestFirst },
  },
});
