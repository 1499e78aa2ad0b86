import { storeContract } from "../testing/contract.ts";
import { entitiesContract } from "../testing/contract-entities.ts";
import { openWithEvents, withEventEngines } from "./opensearch-events.fixture.ts";

await withEventEngines("entities of events in OpenSearch", (url) => {
  storeContract("a store with events in OpenSearch", openWithEvents(url, 2), entitiesContract);
});
