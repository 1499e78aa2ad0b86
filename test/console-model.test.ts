import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { ENTITY_FIELDS, ENTITY_KINDS } from "../src/model/entity.ts";

// The console imports nothing of the service, so that this table exists twice.

test("the console knows the entities of the service, and the fields that name them", async () => {
  // By a computed path: the types of the console are checked with its own settings.
  const shown: unknown = await import(
    fileURLToPath(new URL("../console/components/entities/entity.ts", import.meta.url))
  );
  expect(shown).toMatchObject({ ENTITY_KINDS, ENTITY_FIELDS });
});
