import { storeContract } from "../testing/contract.ts";
import { alertSearchContract } from "../testing/contract-alert-search.ts";
import { openUnderTest } from "./embedded-store.fixture.ts";

storeContract("the embedded store", openUnderTest, alertSearchContract);
