import type { DatabaseSync } from "node:sqlite";
import type { SavedView, Screen } from "../../../model/view.ts";
import type { ViewFilter, ViewLimits, ViewPage, ViewRefusal } from "../../ports/view-store.ts";
import { Statements } from "./prepared-statements.ts";

export const VIEWS_SCHEMA = `
CREATE TABLE views(id TEXT PRIMARY KEY, owner TEXT NOT NULL, screen TEXT NOT NULL, shared INTEGER NOT NULL, position INTEGER NOT NULL, document TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE INDEX views_of_owner ON views(owner, screen, position);
CREATE INDEX views_shared ON views(screen, id) WHERE shared = 1;
`;

interface ViewRow {
  /** All fields but the position, which changes with that of other views. */
  document: string;
  position: number;
}

const VISIBLE = "(owner = ?1 OR shared = 1) AND (?2 IS NULL OR screen = ?2)";

export class ViewTables {
  readonly #sql: Statements;

  constructor(db: DatabaseSync) {
    this.#sql = new Statements(db);
  }

  list({ keyId, screen = undefined }: ViewFilter, page: number, size: number): ViewPage {
    const only = screen ?? null;
    const { total } = this.#sql.read(`SELECT count(*) AS total FROM views WHERE ${VISIBLE}`).get(keyId, only) as {
      total: number;
    };
    const rows = this.#sql
      .read(
        `SELECT document, position FROM views WHERE ${VISIBLE}
         ORDER BY owner <> ?1, screen, iif(owner = ?1, position, 0), id LIMIT ?3 OFFSET ?4`,
      )
      .all(keyId, only, size, (page - 1) * size) as unknown as ViewRow[];
    return { total, views: rows.map(toView) };
  }

  get(id: string): SavedView | undefined {
    const row = this.#sql.read("SELECT document, position FROM views WHERE id = ?").get(id) as ViewRow | undefined;
    return row && toView(row);
  }

  /** Must run in a transaction. */
  add(view: SavedView, { perKeyMax, sharedMax }: ViewLimits): SavedView | ViewRefusal {
    if (this.#count("owner = ?", view.owner) >= perKeyMax) return "key_full";
    if (view.shared && this.#sharedCount() >= sharedMax) return "shared_full";
    return this.#place(view);
  }

  /** Must run in a transaction. */
  put(view: SavedView, { sharedMax }: ViewLimits): SavedView | ViewRefusal {
    const known = this.get(view.id);
    if (known?.revision !== view.revision - 1) return "changed";
    if (view.shared && !known.shared && this.#sharedCount() >= sharedMax) return "shared_full";
    return this.#place({ ...view, owner: known.owner, screen: known.screen });
  }

  /** Must run in a transaction. */
  arrange(owner: string, screen: Screen, ids: readonly string[]): boolean {
    const before = this.#idsOf(owner, screen);
    const known = new Set(before);
    if (!ids.every((id) => known.has(id))) return false;
    const first = new Set(ids);
    this.#number([...first, ...before.filter((id) => !first.has(id))]);
    return true;
  }

  /** Must run in a transaction. */
  remove(id: string): boolean {
    const view = this.get(id);
    if (!view) return false;
    this.#sql.run("DELETE FROM views WHERE id = ?", id);
    this.#number(this.#idsOf(view.owner, view.screen));
    return true;
  }

  /** Must run in a transaction. */
  removeUnshared(owners: readonly string[]): number {
    const remove = this.#sql.read("DELETE FROM views WHERE owner = ? AND shared = 0");
    let removed = 0;
    for (const owner of owners) {
      const { changes } = remove.run(owner);
      removed += Number(changes);
      if (changes === 0) continue;
      const screens = this.#sql.read("SELECT DISTINCT screen FROM views WHERE owner = ?").all(owner);
      for (const { screen } of screens as { screen: Screen }[]) this.#number(this.#idsOf(owner, screen));
    }
    return removed;
  }

  /** Writes the view and moves the owner's others out of its way. */
  #place({ position, ...rest }: SavedView): SavedView {
    const { id, owner, screen, shared } = rest;
    const others = this.#idsOf(owner, screen).filter((other) => other !== id);
    const at = Math.min(position, others.length);
    this.#sql.run(
      "INSERT OR REPLACE INTO views(id, owner, screen, shared, position, document) VALUES (?, ?, ?, ?, ?, ?)",
      id,
      owner,
      screen,
      shared ? 1 : 0,
      at,
      JSON.stringify(rest),
    );
    this.#number(others.toSpliced(at, 0, id));
    return { ...rest, position: at };
  }

  #idsOf(owner: string, screen: Screen): string[] {
    const rows = this.#sql
      .read("SELECT id FROM views WHERE owner = ? AND screen = ? ORDER BY position, id")
      .all(owner, screen);
    return (rows as { id: string }[]).map(({ id }) => id);
  }

  #number(ids: readonly string[]): void {
    for (const [position, id] of ids.entries()) {
      this.#sql.run("UPDATE views SET position = ?1 WHERE id = ?2 AND position <> ?1", position, id);
    }
  }

  #sharedCount(): number {
    return this.#count("shared = ?", 1);
  }

  #count(where: "owner = ?" | "shared = ?", value: string | number): number {
    return (this.#sql.read(`SELECT count(*) AS count FROM views WHERE ${where}`).get(value) as { count: number }).count;
  }
}

function toView({ document, position }: ViewRow): SavedView {
  return { ...(JSON.parse(document) as SavedView), position };
}
