import { storeContract } from "../testing/contract.ts";
import { queriesContract } from "../testing/contract-queries.ts";
import { openWithEvents, withEventEngines } from "./opensearch-events.fixture.ts";

// The sample lies on two days, so that there are two shards anyway.
await withEventEngines("queries of events in OpenSearch", (url) => {
  storeContract("a store with events in OpenSearch", openWithEvents(url, 1), queriesContract);
});
