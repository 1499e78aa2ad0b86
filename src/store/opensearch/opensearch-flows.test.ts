import { storeContract } from "../testing/contract.ts";
import { flowsContract } from "../testing/contract-flows.ts";
import { openWithFlows, withOpenSearch } from "./opensearch-store.fixture.ts";

await withOpenSearch("flows in OpenSearch", (url) => {
  storeContract("a store with flows in OpenSearch", openWithFlows(url, 1), flowsContract);
});
