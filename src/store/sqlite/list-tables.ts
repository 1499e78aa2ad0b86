import type { DatabaseSync } from "node:sqlite";
import type { ListEntry, WatchList } from "../../model/watch-list.ts";
import type { EntryChanges, ListStore, StoredList } from "../ports/list-store.ts";

// The tables of lists that are managed by the API, in the state file.

export const LIST_TABLES = `
CREATE TABLE lists(name TEXT PRIMARY KEY, document TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE list_entries(list TEXT NOT NULL, value TEXT NOT NULL, document TEXT NOT NULL, PRIMARY KEY(list, value)) STRICT, WITHOUT ROWID;
`;

/** `transact` runs the work in one durable transaction. */
export function listTables(db: DatabaseSync, transact: (work: () => void) => void): ListStore {
  return {
    all: async () => {
      const lists = db.prepare("SELECT name, document FROM lists ORDER BY name").all() as unknown as Row[];
      const entries = db
        .prepare("SELECT list AS name, document FROM list_entries ORDER BY list, value")
        .all() as unknown as Row[];
      const byList = Map.groupBy(entries, ({ name }) => name);
      return lists.map(({ name, document }): StoredList => ({
        list: JSON.parse(document) as WatchList,
        entries: (byList.get(name) ?? []).map((row) => JSON.parse(row.document) as ListEntry),
      }));
    },
    put: async (list, changes) => transact(() => put(db, list, changes)),
    remove: async (name) =>
      transact(() => {
        db.prepare("DELETE FROM list_entries WHERE list = ?").run(name);
        db.prepare("DELETE FROM lists WHERE name = ?").run(name);
      }),
  };
}

interface Row {
  readonly name: string;
  readonly document: string;
}

function put(db: DatabaseSync, list: WatchList, { isReplacement = false, set = [], removed = [] }: EntryChanges): void {
  db.prepare("INSERT OR REPLACE INTO lists(name, document) VALUES (?, ?)").run(list.name, JSON.stringify(list));
  if (isReplacement) db.prepare("DELETE FROM list_entries WHERE list = ?").run(list.name);
  const remove = db.prepare("DELETE FROM list_entries WHERE list = ? AND value = ?");
  for (const value of removed) remove.run(list.name, value);
  const insert = db.prepare("INSERT OR REPLACE INTO list_entries(list, value, document) VALUES (?, ?, ?)");
  for (const entry of set) insert.run(list.name, entry.value, JSON.stringify(entry));
}
