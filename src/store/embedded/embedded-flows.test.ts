import { storeContract } from "../testing/contract.ts";
import { flowsContract } from "../testing/contract-flows.ts";
import { openUnderTest } from "./embedded-store.fixture.ts";

storeContract("the embedded store", openUnderTest, flowsContract);
