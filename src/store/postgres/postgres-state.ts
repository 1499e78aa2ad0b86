import { parseExact } from "../../lib/exact-json.ts";
import type { JsonObject } from "../../model/event.ts";
import type { ExportJob } from "../../model/export.ts";
import type { AnalysisRequest, AnalysisStore } from "../ports/analysis-store.ts";
import type { ExportStore } from "../ports/export-store.ts";
import type { PlatformWordStore } from "../ports/platform-word-store.ts";
import type { ReputationStore } from "../ports/reputation-store.ts";
import type { RetentionNotes, RetentionStore } from "../ports/retention-store.ts";
import type { PostgresDatabase, PostgresTransactions } from "./postgres-database.ts";
import type { PostgresListener } from "./postgres-listener.ts";
import type { NoticedListeners } from "./postgres-notices.ts";

// Small tables: exports, reputations, the token budget of analysis, notes of retention.

export const POSTGRES_STATE_SCHEMA = `
CREATE TABLE exports(id text COLLATE "C" PRIMARY KEY, job text NOT NULL);
CREATE TABLE reputations(address text COLLATE "C" PRIMARY KEY, checked_at int8 NOT NULL, report text NOT NULL);
CREATE INDEX reputations_checked_at ON reputations(checked_at);
CREATE TABLE lookups(day int8 PRIMARY KEY, count int8 NOT NULL);
CREATE TABLE tokens(month text COLLATE "C" PRIMARY KEY, used int8 NOT NULL);
CREATE TABLE facts(name text COLLATE "C" PRIMARY KEY, value int8 NOT NULL);
CREATE TABLE words(name text COLLATE "C" PRIMARY KEY, value text NOT NULL);
`;

export function postgresExports(database: PostgresTransactions, changed: NoticedListeners): ExportStore {
  const change = async (text: string, values: readonly string[]): Promise<number> => {
    const rows = await database.transact(async (transaction) => {
      await changed.announce(transaction);
      return transaction.run(text, values);
    });
    changed.notify();
    return rows;
  };
  return {
    list: async () => {
      const rows = await database.query<{ job: string }>("SELECT job FROM exports ORDER BY id");
      return rows.map(({ job }) => parseExact(job) as ExportJob);
    },
    get: async (id) => {
      const [row] = await database.query<{ job: string }>("SELECT job FROM exports WHERE id = $1", [id]);
      return row && (parseExact(row.job) as ExportJob);
    },
    put: async (job) => {
      await change("INSERT INTO exports(id, job) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET job = $2", [
        job.id,
        JSON.stringify(job),
      ]);
    },
    update: async (job) =>
      (await change("UPDATE exports SET job = $2 WHERE id = $1", [job.id, JSON.stringify(job)])) > 0,
    remove: async (id) => {
      await change("DELETE FROM exports WHERE id = $1", [id]);
    },
    onChange: (heard) => changed.add(heard),
  };
}

export function postgresReputations(database: PostgresDatabase): ReputationStore {
  return {
    shared: {
      find: async (address, sinceMs) => {
        const [row] = await database.query<{ checkedAt: number; report: string }>(
          `SELECT checked_at AS "checkedAt", report FROM reputations WHERE address = $1 AND checked_at >= $2`,
          [address, sinceMs],
        );
        return row && { address, checkedAt: row.checkedAt, report: parseExact(row.report) as JsonObject };
      },
      reserve: async (day, max) => {
        if (max < 1) return undefined;
        const [row] = await database.query<{ count: number }>(
          `INSERT INTO lookups(day, count) VALUES ($1, 1)
           ON CONFLICT (day) DO UPDATE SET count = lookups.count + 1 WHERE lookups.count < $2 RETURNING count`,
          [day, max],
        );
        return row?.count;
      },
    },
    since: async (ms, limit) => {
      const rows = await database.query<{ address: string; checkedAt: number; report: string }>(
        `SELECT address, checked_at AS "checkedAt", report FROM reputations WHERE checked_at >= $1
         ORDER BY checked_at DESC, address LIMIT $2`,
        [ms, limit],
      );
      return rows.map(({ report, ...rest }) => ({ ...rest, report: parseExact(report) as JsonObject }));
    },
    // What a power failure loses can be looked up again.
    put: async ({ address, checkedAt, report }) => {
      await database.transact(
        (transaction) =>
          transaction.run(
            `INSERT INTO reputations(address, checked_at, report) VALUES ($1, $2, $3)
             ON CONFLICT (address) DO UPDATE SET checked_at = $2, report = $3`,
            [address, checkedAt, JSON.stringify(report)],
          ),
        { isDurable: false },
      );
    },
    removeBefore: async (ms) => {
      await database.run("DELETE FROM reputations WHERE checked_at < $1", [ms]);
    },
    lookups: async (day) => {
      const [row] = await database.query<{ count: number }>("SELECT count FROM lookups WHERE day = $1", [day]);
      return row?.count ?? 0;
    },
    saveLookups: async (day, count) => {
      await database.transact(
        async (transaction) => {
          await transaction.run(
            "INSERT INTO lookups(day, count) VALUES ($1, $2) ON CONFLICT (day) DO UPDATE SET count = $2",
            [day, count],
          );
          await transaction.run("DELETE FROM lookups WHERE day < $1", [day]);
        },
        { isDurable: false },
      );
    },
  };
}

export function postgresAnalysis(database: PostgresDatabase, listener: PostgresListener): AnalysisStore {
  return {
    requests: {
      send: async (request) => {
        await database.query("SELECT pg_notify('tocsin_analysis', $1)", [JSON.stringify(request)]);
      },
      listen: (heard) => {
        const removals = [
          listener.on("tocsin_analysis", (text) => heard(JSON.parse(text) as AnalysisRequest)),
          listener.onReturn(() => heard(undefined)),
        ];
        return () => {
          for (const remove of removals) remove();
        };
      },
    },
    tokensUsed: async (month) => {
      const [row] = await database.query<{ used: number }>("SELECT used FROM tokens WHERE month = $1", [month]);
      return row?.used ?? 0;
    },
    reserveTokens: async (month, tokens, max) => {
      if (tokens > max) return false;
      const rows = await database.run(
        `INSERT INTO tokens(month, used) VALUES ($1, $2)
         ON CONFLICT (month) DO UPDATE SET used = tokens.used + $2 WHERE tokens.used + $2 <= $3`,
        [month, tokens, max],
      );
      return rows > 0;
    },
    addTokens: async (month, tokens) => {
      await database.run(
        "INSERT INTO tokens(month, used) VALUES ($1, $2) ON CONFLICT (month) DO UPDATE SET used = tokens.used + $2",
        [month, tokens],
      );
    },
  };
}

export function postgresPlatformWord(database: PostgresDatabase): PlatformWordStore {
  const read = async () => {
    const [row] = await database.query<{ value: string }>("SELECT value FROM words WHERE name = 'platform'");
    return row?.value;
  };
  return {
    read,
    keep: async (word) => {
      await database.run(
        `INSERT INTO words(name, value) VALUES ('platform', $1)
         ON CONFLICT (name) DO UPDATE SET value = $1 WHERE words.value = ''`,
        [word],
      );
      return (await read())!;
    },
  };
}

export function postgresRetention(database: PostgresTransactions): Pick<RetentionStore, "notes" | "save"> {
  return {
    notes: async (): Promise<RetentionNotes> => {
      const rows = await database.query<{ name: string; value: number }>(
        "SELECT name, value FROM facts WHERE name LIKE 'retention\\_%'",
      );
      const facts = new Map(rows.map(({ name, value }) => [name, value]));
      const fact = (name: string) => facts.get(`retention_${name}`) ?? null;
      return {
        ranAt: fact("ran_at"),
        heldAt: fact("held_at"),
        confirmedAt: fact("confirmed_at"),
        before: { events: fact("events"), flows: fact("flows"), alerts: fact("alerts") },
      };
    },
    save: ({ ranAt, heldAt, confirmedAt, before }) =>
      database.transact(async (transaction) => {
        const facts = { ran_at: ranAt, held_at: heldAt, confirmed_at: confirmedAt, ...before };
        for (const [name, value] of Object.entries(facts)) {
          if (value === undefined) continue;
          const named = `retention_${name}`;
          if (value === null) await transaction.run("DELETE FROM facts WHERE name = $1", [named]);
          else {
            await transaction.run(
              "INSERT INTO facts(name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = $2",
              [named, value],
            );
          }
        }
      }),
  };
}
