import type { ListEntry, WatchList } from "../../model/watch-list.ts";
import type { ListStore, StoredList } from "../ports/list-store.ts";
import type { PostgresDatabase } from "./postgres-database.ts";

export const POSTGRES_LISTS_SCHEMA = `
CREATE TABLE lists(name text COLLATE "C" PRIMARY KEY, document text NOT NULL);
CREATE TABLE list_entries(list text COLLATE "C" NOT NULL REFERENCES lists ON DELETE CASCADE, value text COLLATE "C" NOT NULL,
  document text NOT NULL, PRIMARY KEY(list, value));
`;

interface DocumentRow {
  readonly name: string;
  readonly document: string;
}

export function postgresLists(database: PostgresDatabase): ListStore {
  return {
    all: () =>
      database.transact(
        async (transaction) => {
          const lists = await transaction.query<DocumentRow>("SELECT name, document FROM lists ORDER BY name");
          const entries = await transaction.query<DocumentRow>(
            "SELECT list AS name, document FROM list_entries ORDER BY list, value",
          );
          const byList = Map.groupBy(entries, ({ name }) => name);
          return lists.map(({ name, document }): StoredList => ({
            list: JSON.parse(document) as WatchList,
            entries: (byList.get(name) ?? []).map((row) => JSON.parse(row.document) as ListEntry),
          }));
        },
        { isolation: "REPEATABLE READ" },
      ),
    put: (list, { isReplacement = false, set = [], removed = [] }) =>
      database.transact(async (transaction) => {
        // Locks the list until the end, so that changes of one list follow each other.
        await transaction.run(
          "INSERT INTO lists(name, document) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET document = $2",
          [list.name, JSON.stringify(list)],
        );
        if (isReplacement) await transaction.run("DELETE FROM list_entries WHERE list = $1", [list.name]);
        await transaction.run("DELETE FROM list_entries WHERE list = $1 AND value = ANY($2)", [list.name, removed]);
        // Of two entries with one value the later one counts.
        const byValue = new Map(set.map((entry) => [entry.value, JSON.stringify(entry)]));
        await transaction.run(
          `INSERT INTO list_entries(list, value, document) SELECT $1, * FROM unnest($2::text[], $3::text[])
           ON CONFLICT (list, value) DO UPDATE SET document = excluded.document`,
          [list.name, [...byValue.keys()], [...byValue.values()]],
        );
      }),
    remove: async (name) => {
      await database.run("DELETE FROM lists WHERE name = $1", [name]);
    },
  };
}
