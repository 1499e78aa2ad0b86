import { defineConfig } from "vitest/config";
import config from "./vitest.config.ts";

/** The suites of the API that say most, on PostgreSQL and OpenSearch instead of the data folder: npm run test:cluster. */
export default defineConfig({
  test: {
    ...config.test,
    env: { ...config.test!.env, TOCSIN_TEST_STORE: "cluster" },
    include: [
      // Submitting, searching, counting.
      "src/api/event-endpoints.test.ts",
      "src/api/batch.test.ts",
      "src/api/event-search.test.ts",
      "src/api/event-fields.test.ts",
      "src/api/entity-endpoints.test.ts",
      "src/api/large-integers.test.ts",
      // Rules, detection from the event to the alert, and work on alerts.
      "src/api/rule-endpoints.test.ts",
      "src/detection/detector.test.ts",
      "src/api/alert-endpoints.test.ts",
      "src/api/alert-work-endpoints.test.ts",
      "src/api/alert-search-endpoint.test.ts",
      "src/api/alert-event-endpoints.test.ts",
      "src/api/clock-back.test.ts",
      // Streams, exports, flows.
      "src/api/stream-endpoint.test.ts",
      "src/api/export-endpoints.test.ts",
      "src/api/alert-export-endpoints.test.ts",
      "src/api/flow-endpoints.test.ts",
    ],
  },
});
