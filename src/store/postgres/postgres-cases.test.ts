import { describeWithPostgres } from "../../../test/cluster/test-database.ts";
import { storeContract } from "../testing/contract.ts";
import { analysisContract } from "../testing/contract-analysis.ts";
import { keysContract } from "../testing/contract-keys.ts";
import { leasesContract } from "../testing/contract-leases.ts";
import { managedListsContract } from "../testing/contract-lists.ts";
import { reputationsContract } from "../testing/contract-reputations.ts";
import { sessionsContract } from "../testing/contract-sessions.ts";
import { viewsContract } from "../testing/contract-views.ts";
import { openWithPostgres } from "./postgres-store.fixture.ts";

describeWithPostgres("cases in PostgreSQL", () => {
  storeContract(
    "a store with PostgreSQL",
    openWithPostgres,
    keysContract,
    sessionsContract,
    viewsContract,
    managedListsContract,
    analysisContract,
    reputationsContract,
    leasesContract,
  );
});
