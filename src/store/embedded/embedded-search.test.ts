import { storeContract } from "../testing/contract.ts";
import { amendContract } from "../testing/contract-amend.ts";
import { fieldsContract } from "../testing/contract-fields.ts";
import { reputationsContract } from "../testing/contract-reputations.ts";
import { searchContract } from "../testing/contract-search.ts";
import { openUnderTest } from "./embedded-store.fixture.ts";

storeContract("the embedded store", openUnderTest, searchContract, amendContract, reputationsContract, fieldsContract);
