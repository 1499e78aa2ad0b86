import { randomUUID } from "node:crypto";
import type { ListEntry, WatchList } from "../../model/watch-list.ts";
import type { ListStore, StoredList } from "../ports/list-store.ts";
import type { PostgresDatabase, PostgresQueries } from "./postgres-database.ts";
import type { PostgresListener } from "./postgres-listener.ts";

export const POSTGRES_LISTS_SCHEMA = `
CREATE TABLE lists(name text COLLATE "C" PRIMARY KEY, document text NOT NULL);
CREATE TABLE list_entries(list text COLLATE "C" NOT NULL REFERENCES lists ON DELETE CASCADE, value text COLLATE "C" NOT NULL,
  document text NOT NULL, PRIMARY KEY(list, value));
`;

interface DocumentRow {
  readonly name: string;
  readonly document: string;
}

const CHANNEL = "tocsin_lists";

export function postgresLists(database: PostgresDatabase, listener: PostgresListener): ListStore {
  /** Precedes the name in notices of this process. */
  const self = `${randomUUID()}/`;
  const announce = async (transaction: PostgresQueries, name: string) => {
    await transaction.query("SELECT pg_notify($1, $2)", [CHANNEL, `${self}${name}`]);
  };
  const read = (where: (column: string) => string, values: readonly string[]) =>
    database.transact(
      async (transaction) => {
        const lists = await transaction.query<DocumentRow>(
          `SELECT name, document FROM lists ${where("name")} ORDER BY name`,
          values,
        );
        const entries = await transaction.query<DocumentRow>(
          `SELECT list AS name, document FROM list_entries ${where("list")} ORDER BY list, value`,
          values,
        );
        const byList = Map.groupBy(entries, ({ name }) => name);
        return lists.map(({ name, document }): StoredList => ({
          list: JSON.parse(document) as WatchList,
          entries: (byList.get(name) ?? []).map((row) => JSON.parse(row.document) as ListEntry),
        }));
      },
      { isolation: "REPEATABLE READ" },
    );
  return {
    shared: {
      get: async (name) => (await read((column) => `WHERE ${column} = $1`, [name]))[0],
      onChange: (heard) => {
        const removals = [
          listener.on(CHANNEL, (notice) => {
            if (!notice.startsWith(self)) heard(notice.slice(notice.indexOf("/") + 1));
          }),
          listener.onReturn(() => heard(undefined)),
        ];
        return () => {
          for (const remove of removals) remove();
        };
      },
    },
    all: () => read(() => "", []),
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
        await announce(transaction, list.name);
      }),
    remove: (name) =>
      database.transact(async (transaction) => {
        await transaction.run("DELETE FROM lists WHERE name = $1", [name]);
        await announce(transaction, name);
      }),
  };
}
