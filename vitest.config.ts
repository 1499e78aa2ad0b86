import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["src/**/*.test.ts", "test/**/*.test.ts"],
    // Real servers, real stores, real crashes: slow machines get time, and nothing asserts on it.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Stores start threads, and threads load code: from the same cache as the service.
    env: { NODE_COMPILE_CACHE: fileURLToPath(new URL("node_modules/.cache/tocsin", import.meta.url)) },
    pool: "forks",
    maxWorkers: 2,
  },
});
