import type { SavedView, Screen } from "../../model/view.ts";
import type { ViewFilter, ViewLimits, ViewPage, ViewRefusal, ViewStore } from "../ports/view-store.ts";
import type { PostgresDatabase, PostgresQueries } from "./postgres-database.ts";

export const POSTGRES_VIEWS_SCHEMA = `
CREATE TABLE views(id text COLLATE "C" PRIMARY KEY, owner text COLLATE "C" NOT NULL, screen text COLLATE "C" NOT NULL,
  shared bool NOT NULL, position int8 NOT NULL, document text NOT NULL);
CREATE INDEX views_of_owner ON views(owner, screen, position);
CREATE INDEX views_shared ON views(screen, id) WHERE shared;
`;

interface StoredViewRow {
  /** All fields but the position, which changes with that of other views. */
  readonly document: string;
  readonly position: number;
}

const VISIBLE = "(owner = $1 OR shared) AND ($2::text IS NULL OR screen = $2)";

export class PostgresViews implements ViewStore {
  readonly #database: PostgresDatabase;

  constructor(database: PostgresDatabase) {
    this.#database = database;
  }

  async list({ keyId, screen = undefined }: ViewFilter, page: number, size: number): Promise<ViewPage> {
    const only = screen ?? null;
    return this.#database.transact(
      async (transaction) => {
        const [count] = await transaction.query<{ total: number }>(
          `SELECT count(*) AS total FROM views WHERE ${VISIBLE}`,
          [keyId, only],
        );
        const rows = await transaction.query<StoredViewRow>(
          `SELECT document, position FROM views WHERE ${VISIBLE}
           ORDER BY owner <> $1, screen, CASE WHEN owner = $1 THEN position ELSE 0 END, id LIMIT $3 OFFSET $4`,
          [keyId, only, size, (page - 1) * size],
        );
        return { total: count!.total, views: rows.map(toView) };
      },
      { isolation: "REPEATABLE READ" },
    );
  }

  get(id: string): Promise<SavedView | undefined> {
    return readView(this.#database, id);
  }

  add(view: SavedView, { perKeyMax, sharedMax }: ViewLimits): Promise<SavedView | ViewRefusal> {
    return this.#change(async (transaction) => {
      if ((await countViews(transaction, "owner = $1", view.owner)) >= perKeyMax) return "key_full";
      if (view.shared && (await countViews(transaction, "shared = $1", true)) >= sharedMax) return "shared_full";
      return placeView(transaction, view);
    });
  }

  put(view: SavedView, { sharedMax }: ViewLimits): Promise<SavedView | ViewRefusal> {
    return this.#change(async (transaction) => {
      const known = await readView(transaction, view.id);
      if (known?.revision !== view.revision - 1) return "changed";
      const isNewlyShared = view.shared && !known.shared;
      if (isNewlyShared && (await countViews(transaction, "shared = $1", true)) >= sharedMax) return "shared_full";
      return placeView(transaction, { ...view, owner: known.owner, screen: known.screen });
    });
  }

  arrange(owner: string, screen: Screen, ids: readonly string[]): Promise<boolean> {
    return this.#change(async (transaction) => {
      const before = await idsOf(transaction, owner, screen);
      const known = new Set(before);
      if (!ids.every((id) => known.has(id))) return false;
      const first = new Set(ids);
      await numberViews(transaction, [...first, ...before.filter((id) => !first.has(id))]);
      return true;
    });
  }

  remove(id: string): Promise<boolean> {
    return this.#change(async (transaction) => {
      const view = await readView(transaction, id);
      if (!view) return false;
      await transaction.run("DELETE FROM views WHERE id = $1", [id]);
      await numberViews(transaction, await idsOf(transaction, view.owner, view.screen));
      return true;
    });
  }

  removeUnshared(owners: readonly string[]): Promise<number> {
    return this.#change(async (transaction) => {
      const removed = await transaction.run("DELETE FROM views WHERE owner = ANY($1) AND NOT shared", [owners]);
      await transaction.run(
        `UPDATE views SET position = numbered.number - 1
         FROM (SELECT id, row_number() OVER (PARTITION BY owner, screen ORDER BY position, id) AS number
               FROM views WHERE owner = ANY($1)) AS numbered
         WHERE views.id = numbered.id AND views.position <> numbered.number - 1`,
        [owners],
      );
      return removed;
    });
  }

  /** One change at a time: limits and positions concern other rows. Reading goes on meanwhile. */
  #change<Value>(work: (transaction: PostgresQueries) => Promise<Value>): Promise<Value> {
    return this.#database.transact(async (transaction) => {
      await transaction.run("LOCK TABLE views IN SHARE ROW EXCLUSIVE MODE");
      return work(transaction);
    });
  }
}

async function readView(queries: PostgresQueries, id: string): Promise<SavedView | undefined> {
  const [row] = await queries.query<StoredViewRow>("SELECT document, position FROM views WHERE id = $1", [id]);
  return row && toView(row);
}

/** Writes the view and moves the owner's others out of its way. */
async function placeView(transaction: PostgresQueries, { position, ...rest }: SavedView): Promise<SavedView> {
  const { id, owner, screen, shared } = rest;
  const others = (await idsOf(transaction, owner, screen)).filter((other) => other !== id);
  const at = Math.min(position, others.length);
  await transaction.run(
    `INSERT INTO views(id, owner, screen, shared, position, document) VALUES ($1, $2, $3, $4, $5, $6)
     ON CONFLICT (id) DO UPDATE SET owner = $2, screen = $3, shared = $4, position = $5, document = $6`,
    [id, owner, screen, shared, at, JSON.stringify(rest)],
  );
  await numberViews(transaction, others.toSpliced(at, 0, id));
  return { ...rest, position: at };
}

async function idsOf(transaction: PostgresQueries, owner: string, screen: Screen): Promise<string[]> {
  const rows = await transaction.query<{ id: string }>(
    "SELECT id FROM views WHERE owner = $1 AND screen = $2 ORDER BY position, id",
    [owner, screen],
  );
  return rows.map(({ id }) => id);
}

/** Numbers the views from 0 in this order. */
async function numberViews(transaction: PostgresQueries, ids: readonly string[]): Promise<void> {
  await transaction.run(
    `UPDATE views SET position = given.number - 1 FROM unnest($1::text[]) WITH ORDINALITY AS given(id, number)
     WHERE views.id = given.id AND views.position <> given.number - 1`,
    [ids],
  );
}

async function countViews(
  transaction: PostgresQueries,
  where: "owner = $1" | "shared = $1",
  value: string | boolean,
): Promise<number> {
  const [row] = await transaction.query<{ count: number }>(`SELECT count(*) AS count FROM views WHERE ${where}`, [
    value,
  ]);
  return row!.count;
}

function toView({ document, position }: StoredViewRow): SavedView {
  return { ...(JSON.parse(document) as SavedView), position };
}
