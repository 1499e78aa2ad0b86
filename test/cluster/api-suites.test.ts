import { test } from "vitest";

test.skip("the suites of the API on PostgreSQL and OpenSearch: npm run test:cluster runs them, here they have a data folder", () => {});
