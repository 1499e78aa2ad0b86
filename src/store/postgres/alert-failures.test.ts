import pino from "pino";
import { Registry } from "prom-client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startPostgres, type PostgresServer } from "../../../test/cluster/postgres.ts";
import { describeWithPostgres } from "../../../test/cluster/test-database.ts";
import { idMaker } from "../../lib/id.ts";
import { OpenedParts } from "../../lib/opened-parts.ts";
import { SYSTEM, type Alert } from "../../model/alert.ts";
import type { AlertChanges } from "../ports/alert-store.ts";
import type { CasePart } from "../ports/store.ts";
import { newAlert, nextAlert, summaryOf } from "../testing/new-alert.ts";
import { openAllPostgresCases } from "./postgres-cases.ts";
import { PostgresDatabase } from "./postgres-database.ts";
import { postgresSettings } from "./postgres-store.fixture.ts";

// A server of its own that fails in the middle of commits: nothing is half written, and the next call works.

const log = pino({ level: "silent" });
const newNotificationId = idMaker("ntf_");
const newEntryId = idMaker("tln_");

describeWithPostgres("commits of alerts to a PostgreSQL that fails", () => {
  const opened = new OpenedParts();
  let server: PostgresServer;
  let cases: CasePart;
  let database: PostgresDatabase;
  let alert: Alert;

  beforeAll(async () => {
    server = await startPostgres({ isDurable: true });
    opened.add(() => server.end());
    const settings = postgresSettings(server.url("postgres"), { connectSeconds: 5 });
    cases = await openAllPostgresCases({ settings, registry: new Registry(), log }, opened);
    database = new PostgresDatabase({ settings, registry: new Registry(), log });
    opened.add(() => database.close());
    alert = newAlert();
    await cases.alerts.commit({ alerts: [alert], timeline: [], detected: { upTo: "evt_0", matches: [], seen: [] } });
  });
  afterAll(() => opened.close());

  /** A change of everything that a commit may contain. */
  const changesOf = (title: string) =>
    ({
      alerts: [nextAlert(alert, { title }), newAlert({ title })],
      timeline: [{ alertId: alert.id, entry: { id: newEntryId(), at: 1, actor: SYSTEM, kind: "reopened" } }],
      notifications: [
        { id: newNotificationId(), alertId: alert.id, channel: "slack", reason: "created", createdAt: 1 },
      ],
      detected: {
        upTo: `evt_${title}`,
        matches: [{ ruleId: "rule_m", timesMs: [Date.now()] }],
        seen: [{ ruleId: "rule_s", group: title, atMs: 1, last: null }],
      },
    }) satisfies AlertChanges;
  const stateOf = async ({ alerts, notifications }: ReturnType<typeof changesOf>) => ({
    alerts: await cases.alerts.getMany(alerts.map(({ id }) => id)),
    timeline: (await cases.alerts.withTimeline(alert.id))!.timeline.length,
    notification: (await cases.notifications.get(notifications[0]!.id))?.status,
    position: await cases.detection.position(),
    matches: (await cases.rules.stats(["rule_m"], Date.now()))[0]!.matches7d,
    seen: (await cases.detection.seen()).length,
    total: (await cases.alerts.list({}, { mode: "page", page: 1, size: 1 }, "created_at", true)).total,
    last: await cases.alerts.lastChange(),
  });
  /** The commit is refused with this reason and leaves no trace; the next one succeeds. */
  const expectWhole = async (
    title: string,
    reason: string,
    fail: () => Promise<void>,
    repair: () => Promise<unknown>,
  ) => {
    const changes = changesOf(title);
    const before = await stateOf(changes);
    await fail();
    const refused = await cases.alerts.commit(changes).catch((error: unknown) => error);
    expect(refused).toMatchObject({ name: "StoreUnavailable", reason, retryAfterSeconds: expect.any(Number) });
    await repair();
    await expect.poll(() => stateOf(changes).catch(() => undefined), { timeout: 20_000 }).toEqual(before);
    expect(await cases.alerts.commit(changes)).toEqual([]);
    const after = await stateOf(changes);
    expect(after).toEqual({
      alerts: changes.alerts.map((each) => summaryOf(each as Alert)),
      timeline: before.timeline + 1,
      notification: "waiting",
      position: `evt_${title}`,
      matches: before.matches + 1,
      seen: before.seen + 1,
      total: before.total + 1,
      last: before.last + 2,
    });
    alert = changes.alerts[0] as Alert;
  };
  /** Has the server do this when a commit reaches the progress of detection, which it writes last. */
  const atTheEnd = (statement: string) =>
    database.transact(async (transaction) => {
      await transaction.query(
        `CREATE OR REPLACE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${statement}; RETURN NEW; END $$`,
      );
      await transaction.query("CREATE TRIGGER fail AFTER INSERT ON rule_seen FOR EACH ROW EXECUTE FUNCTION fail()");
    });
  const withoutTrigger = () => database.run("DROP TRIGGER fail ON rule_seen");

  test("a connection that is lost in the middle of a commit", async () => {
    await expectWhole(
      "cut",
      "unreachable",
      async () => void (await atTheEnd("PERFORM pg_terminate_backend(pg_backend_pid())")),
      withoutTrigger,
    );
  });

  test("a disk that is full in the middle of a commit", async () => {
    await expectWhole(
      "full",
      "disk_full",
      async () => void (await atTheEnd("RAISE EXCEPTION 'no space left' USING ERRCODE = '53100'")),
      withoutTrigger,
    );
  });

  test("a server that accepts no writes", async () => {
    const setReadOnly = async (value: string) => {
      await database.run(`ALTER DATABASE postgres SET default_transaction_read_only = ${value}`);
    };
    await expectWhole(
      "readonly",
      "unreachable",
      async () => {
        await setReadOnly("on");
        // Only new sessions have the setting.
        await database.query(
          "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = 'postgres'",
        );
      },
      () => setReadOnly("off"),
    );
  });

  test("a server that is killed, and started again", async () => {
    await expectWhole(
      "killed",
      "unreachable",
      () => server.kill(),
      () => server.start(),
    );
  });

  test("a conflict that keeps coming back, such as a deadlock, is tried again and then refused", async () => {
    await expectWhole(
      "deadlock",
      "failed",
      async () => void (await atTheEnd("RAISE EXCEPTION 'deadlock' USING ERRCODE = '40P01'")),
      withoutTrigger,
    );
  });
});

describeWithPostgres("a failover that loses commits", () => {
  test("leaves no trace of them in the index of a node, although others have their numbers now", async () => {
    const opened = new OpenedParts();
    try {
      const primary = await startPostgres({ isDurable: true });
      opened.add(() => primary.end());
      const standby = await startPostgres({ standbyOf: primary });
      opened.add(() => standby.end());
      const url = `postgres://tocsin@127.0.0.1:${primary.port},127.0.0.1:${standby.port}/postgres`;
      const settings = postgresSettings(url, { connectSeconds: 5 });
      const { alerts } = await openAllPostgresCases({ settings, registry: new Registry(), log }, opened);
      const [kept, lost, next] = ["alt_kept", "alt_lost", "alt_next"].map((id) => newAlert({ id }));
      const listed = async () => (await alerts.ids({}, 9)).ids.toSorted();
      const commit = (alert: Alert) => alerts.commit({ alerts: [alert], timeline: [] });
      await commit(kept!);
      const database = new PostgresDatabase({ settings, registry: new Registry(), log });
      opened.add(() => database.close());
      const behind = "SELECT 1 FROM pg_stat_replication WHERE replay_lsn = pg_current_wal_lsn()";
      await expect.poll(async () => (await database.query(behind)).length).toBe(1);
      await standby.kill();
      await commit(lost!);
      expect(await listed()).toEqual(["alt_kept", "alt_lost"]);
      await primary.kill();
      await standby.start();
      standby.promote();
      await expect.poll(() => commit(next!).catch(() => undefined), { timeout: 20_000 }).toBeDefined();
      expect(await listed()).toEqual(["alt_kept", "alt_next"]);
    } finally {
      await opened.close();
    }
  });
});
