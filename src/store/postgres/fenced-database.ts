import type { Fence } from "../ports/lease-store.ts";
import type { PostgresQueries, PostgresTransactions } from "./postgres-database.ts";
import { requireEpoch } from "./postgres-leases.ts";

/**
 * The database for whoever works under a lease: what is written after the lease is over is refused with LeaseLost. The lease
 * is checked last, and held to the end of the transaction. Single queries are not checked: they only read.
 */
export function fencedDatabase(database: PostgresTransactions, fence: Fence): PostgresTransactions {
  const transact: PostgresTransactions["transact"] = (work, options) =>
    database.transact((transaction) => underFence(transaction, fence, work), options);
  return {
    query: (text, values) => database.query(text, values),
    run: (text, values) => transact((transaction) => transaction.run(text, values)),
    transact,
  };
}

async function underFence<Value>(
  transaction: PostgresQueries,
  fence: Fence,
  work: (transaction: PostgresQueries) => Promise<Value>,
): Promise<Value> {
  const value = await work(transaction);
  await requireEpoch(transaction, fence);
  return value;
}
