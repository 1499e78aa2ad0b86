import { storeContract } from "../testing/contract.ts";
import { fieldsContract } from "../testing/contract-fields.ts";
import { openWithEvents, withEventEngines } from "./opensearch-events.fixture.ts";

await withEventEngines("fields of events in OpenSearch", (url) => {
  storeContract("a store with events in OpenSearch", openWithEvents(url, 2), fieldsContract);
});
