import { defineConfig } from "vitest/config";
import config from "./vitest.config.ts";

/** The tests of test/long, which `npm test` leaves out. */
export default defineConfig({ test: { ...config.test, include: ["test/long/**/*.test.ts"], exclude: [] } });
