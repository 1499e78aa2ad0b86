import type { AddressInfo } from "node:net";
import type { FastifyInstance } from "fastify";
import type { Logger } from "pino";
import { collectDefaultMetrics, Registry } from "prom-client";
import { openAlerts, type AlertsOptions } from "./alerts/alerts.ts";
import { startEntityBackfill } from "./alerts/entity-backfill.ts";
import { isOverflow } from "./alerts/unresolved-limit.ts";
import { Analyst } from "./analysis/analyst.ts";
import { openServer, type ConnectionTimeouts } from "./api/server.ts";
import { clientAddress } from "./config/config.ts";
import { openSearchOf, postgresOf, type Settings } from "./config/settings.ts";
import { openConsole } from "./console/serve.ts";
import { crossCheckWarnings } from "./config/cross-checks.ts";
import { loadBuiltinRules } from "./detection/rules/builtin.ts";
import { detectionLagMs, openDetector } from "./detection/detector.ts";
import { openRulebook } from "./detection/rules/rulebook.ts";
import { settledPlace } from "./detection/settled-place.ts";
import { openEnrichment } from "./enrichment/enrichment.ts";
import { Hostnames } from "./enrichment/hostnames.ts";
import { openExportRunner } from "./exports/export-runner.ts";
import { SharedExports } from "./exports/shared-exports.ts";
import { openLineReceiver, type LineReceiverSettings } from "./collectors/lines/line-receiver.ts";
import { openTaughtFormats } from "./collectors/formats/described/taught-formats.ts";
import { PostCollector } from "./collectors/http/post-collector.ts";
import { openFlowPipeline, refuseNewerFlowFiles, type FlowPipelineSettings } from "./flows/flow-pipeline.ts";
import { enableExactJson } from "./lib/exact-json.ts";
import { registerThreadMetrics } from "./lib/memory-metrics.ts";
import { openIntake, type Intake } from "./intake/intake.ts";
import { ChannelTests } from "./notify/channel-tests.ts";
import { requiredSettings } from "./notify/channels.ts";
import { openChannels } from "./notify/open-channels.ts";
import { alertLinks, openNotifier, type ChannelHealths, type Notifier } from "./notify/notifier.ts";
import type { Alert, AlertSummary } from "./model/alert.ts";
import type { Channel } from "./model/rule.ts";
import { SEVERITIES, type Severity } from "./model/event.ts";
import type { Finding } from "./model/finding.ts";
import { isClockPlausible, startRetention } from "./retention.ts";
import { Roles, type Role } from "./roles.ts";
import { openStore } from "./store/open-store.ts";
import type { Store } from "./store/ports/store.ts";
import { convertToParquet } from "./store/duckdb/parquet/convert-to-parquet.ts";
import { exportsFolder, parquetScratch } from "./store/files/layout.ts";

// The wiring of the service: opens every part in the order of the data flow and closes them in reverse. Parts are
// connected nowhere else. What only one of several nodes does is a role (see roles.ts).

const HOUR_MS = 3_600_000;
/** Time for requests in flight to finish once the service stops. */
const DRAIN_MS_MAX = 5000;

export interface App {
  /** The URL for clients on this machine. */
  readonly address: string;
  readonly port: number;
  readonly store: Store;
  readonly intake: Intake;
  /** Stops accepting requests, finishes acknowledged work and releases everything. */
  close(): Promise<void>;
}

export interface AppOptions {
  readonly now?: () => number;
  /** Wraps the store, for tests of a failing store. */
  readonly around?: (store: Store) => Store;
  /** For tests that cannot wait, or hold ten thousand connections. */
  readonly connections?: Partial<ConnectionTimeouts>;
  /** The folder of the built console, for tests. */
  readonly consoleFolder?: string;
}

/** Gauges that prom-client names like counters, which linters reject. Each is the sum of the gauge without the suffix. */
const MISNAMED_GAUGES = [
  "nodejs_active_handles_total",
  "nodejs_active_requests_total",
  "nodejs_active_resources_total",
];

export async function startApp(settings: Settings, log: Logger, options: AppOptions = {}): Promise<App> {
  const { now = Date.now, around = (store: Store) => store, connections, consoleFolder } = options;
  enableExactJson();
  const opened: OpenedPart[] = [];
  const opens = <Opened extends { close(): unknown }>(name: string, part: Opened): Opened => {
    opened.push({ name, close: () => part.close() });
    return part;
  };
  const close = () => closeInReverse(opened, log);

  return closeOnFailure(close, async () => {
    const registry = new Registry();
    collectDefaultMetrics({ register: registry });
    for (const name of MISNAMED_GAUGES) registry.removeSingleMetric(name);
    registerThreadMetrics(registry);
    const { dataDir, platform, indexPrefix, retention, timezone } = settings;
    const retentionDays = retention.eventsDays;

    refuseNewerFlowFiles(dataDir);
    const storeOptions = {
      dataDir,
      platform,
      indexPrefix,
      postgres: postgresOf(settings),
      opensearch: openSearchOf(settings),
      registry,
      log,
      now,
    };
    const store = around(opens("store", await openStore(storeOptions)));
    const roles = new Roles({ store, registry, log });
    const retaining = opens(
      "retention",
      await roles.take({
        name: "retention",
        open: (term) => startRetention({ ...term, settings: retention, log, now }),
        status: ({ status }) => status,
      }),
    );
    const retentionStatus = async () => (await retaining.status()) ?? { isPaused: false, messages: [] };
    const enrichment = opens(
      "enrichment",
      await openEnrichment({
        settings: settings.enrichment,
        dataDir,
        listStore: store.lists,
        reputationStore: store.reputations,
        events: store.events,
        annotate: (alertId, report) => alerts.addReputation(alertId, report),
        registry,
        log,
        now,
      }),
    );
    const intake = opens("intake", openIntake({ store, enricher: enrichment, registry, retentionDays, now }));
    const exportFiles = settings.exports.folder ?? exportsFolder(dataDir);
    const exporting = opens(
      "export runner",
      await roles.take({
        name: "exports",
        open: ({ fence, ...term }) =>
          openExportRunner({
            ...term,
            folder: exportFiles,
            convertToParquet: (task, signal) => convertToParquet(task, parquetScratch(dataDir), signal),
            log,
            now,
            mayExpire: async () => retaining.part?.isClockTrusted() ?? isClockPlausible(store, now()),
            tag: fence && `e${fence.epoch}`,
          }),
        status: () => ({}),
      }),
    );
    const exports = store.shared
      ? new SharedExports({ exports: store.exports, folder: exportFiles, log, now })
      : exporting.part!;

    const channels = openChannels(settings.notifications);
    const links = { base: settings.notifications.consoleUrl ?? "" };
    const channelTests = opens("channel tests", new ChannelTests({ channels, urlOf: () => links.base, log, now }));
    const notificationPolicy = {
      channels: [...channels.keys()],
      onResolve: settings.notifications.onResolve,
      followers: [...channels].filter(([, { followsAlerts }]) => followsAlerts).map(([name]) => name),
    };
    const channelsOf = (severity: Severity) => (isToldOf(severity, settings) ? notificationPolicy.channels : []);
    const builtins = loadBuiltinRules({ platform, timezone, channelsOf });
    const place = store.shared && (() => settledPlace(store));
    const rulebook = opens("rulebook", await openRulebook({ store: store.rules, builtins, now, log, place }));
    const addException: AlertsOptions["addException"] = async (ruleId, exception, author) => {
      const { id, reason } = await rulebook.addException(ruleId, exception, author);
      return { id, reason, revert: () => rulebook.revertException(ruleId, id) };
    };
    const hear = ({ id, severity }: AlertSummary) => {
      if (!store.analysis.requests) return analyst.enqueue({ id, severity });
      store.analysis.requests.send({ id, severity }).catch((error: unknown) => {
        log.warn({ err: error, alert: id }, "the node that analyses alerts was not told of one");
      });
    };
    const onCreated = (alert: Alert, { eventId }: Finding) => {
      const events = alert.relatedEvents.map(({ id }) => id);
      if (!isOverflow(alert)) enrichment.alertMade(alert, eventId, events);
      hear(alert);
    };
    const lastId = await store.alerts.lastId();
    const alerts = openAlerts({
      store,
      now,
      notificationPolicy,
      addException,
      onCreated,
      onRaised: hear,
      registry,
      lastId,
    });
    const { eventEntities } = alerts;
    opens(
      "entity backfill",
      await roles.take({
        name: "backfill",
        open: async (term) => startEntityBackfill({ alerts: term.store.alerts, eventEntities, log }),
        status: () => ({}),
      }),
    );
    const annotate: typeof alerts.annotate = (...annotation) => alerts.annotate(...annotation);
    const { analysis } = settings;
    const analyst = opens("analyst", new Analyst({ settings: analysis, store, annotate, registry, log, now }));
    opens(
      "automatic analysis",
      await roles.take({
        name: "analyst",
        open: async ({ fence }) => {
          await analyst.begin((id, find) => alerts.annotate(id, find, fence));
          const unlisten = store.analysis.requests?.listen((alert) => analyst.hear(alert));
          return {
            close: () => {
              unlisten?.();
              return analyst.end();
            },
          };
        },
        status: () => ({}),
      }),
    );
    const report: Intake["storeInternal"] = (reports) => intake.storeInternal(reports);
    const detecting = opens(
      "detector",
      await roles.take({
        name: "detector",
        open: ({ store: { events, detection: progress }, fence, registry: metrics }) => {
          const raise: typeof alerts.raise = (findings, detected) => alerts.raise(findings, detected, fence);
          return openDetector({ events, progress, rulebook, raise, report, registry: metrics, log, now });
        },
        status: ({ isReady, lagMs }) => ({ isReady, lagMs }),
      }),
    );
    const detection = {
      status: async () => (await detecting.status()) ?? { isReady: false, lagMs: await detectionLagMs(store, now()) },
      flush: async () => detecting.part?.flush(),
    };

    const hostnames = opens("hostnames", new Hostnames({ ...settings.hostnames, registry }));
    const flows = opens(
      "flows",
      await openFlowPipeline({
        settings: flowsSettings(settings),
        dataDir,
        platform,
        registry,
        log,
        deliver: (rows, batchId) => store.flows.append(rows, batchId),
        raise: (summaries) => intake.storeInternal(summaries),
      }),
    );
    const { formatsDir } = settings.collectors;
    const lineFormats = opens("line formats", await openTaughtFormats({ folder: formatsDir, registry, log, now }));
    const lineReceiver = opens(
      "line receiver",
      await openLineReceiver({
        settings: lineReceiverSettings(settings),
        dataDir,
        platform,
        timezone,
        formats: lineFormats.formats.descriptions,
        registry,
        log,
        collect: (...drafts) => intake.collect(...drafts),
        addFlows: (...records) => flows.add(...records),
      }),
    );
    lineFormats.listen(({ descriptions }) => lineReceiver.useFormats(descriptions));
    const posts = new PostCollector({
      platform,
      timezone,
      formats: () => lineFormats.formats,
      keepsUnparsed: settings.collectors.unparsed,
      lineBytesMax: settings.collectors.lineBytesMax,
      itemBytesMax: settings.bodyLimits.submitBytes,
      accessSecret: settings.collectors.accessSecret,
      flowsLateMs: settings.flows.lateSeconds * 1000,
      registry,
      collect: (...drafts) => intake.collect(...drafts),
      addFlows: (...records) => flows.add(...records),
      now,
    });
    const collectorStatus = async () => ({
      flows: await flows.status(),
      lines: await lineReceiver.status(),
      posts: posts.status(),
      taught: lineFormats.status,
    });

    const parts = {
      store,
      intake,
      exports,
      alerts,
      rulebook,
      detection,
      hostnames,
      collectorStatus,
      posts,
      enrichment,
      retention: { status: retentionStatus },
      roles,
    };
    const analyse: typeof analyst.analyse = (id, actor) => analyst.analyse(id, actor);
    const { channels: channelNames } = notificationPolicy;
    const consolePages = await openConsole({ folder: consoleFolder, log });
    let notifying: Role<Notifier, ChannelHealths> | undefined;
    const channelStatus = {
      requiredSettings,
      healthOf: async (channel: Channel) => (await notifying?.status())?.[channel],
      lastTest: (channel: Channel) => channelTests.last(channel),
      test: (channel: Channel, by: string) => channelTests.send(channel, by),
    };
    const server = await openServer({
      settings,
      ...parts,
      consolePages,
      channels: channelNames,
      channelStatus,
      analyse,
      registry,
      log,
      now,
      connections,
    });
    opens("server", { close: () => drain(server) });

    await server.listen({ host: settings.host, port: settings.port });
    const { port } = server.server.address() as AddressInfo;
    const address = clientAddress(settings.host, port);
    // Last, because messages contain the address of the service.
    const { perMinuteMax, retryHours } = settings.notifications;
    links.base ||= address;
    for (const { path, message } of crossCheckWarnings(settings)) log.warn(`${path}: ${message}`);
    const { isBuilt: hasConsole } = consolePages;
    const linksTo = (id: string) => alertLinks(links.base, id, { hasConsole });
    const retryMs = retryHours * HOUR_MS;
    notifying = opens(
      "notifier",
      await roles.take({
        name: "notifier",
        open: (term) => openNotifier({ ...term, channels, perMinuteMax, retryMs, linksTo, log, now }),
        status: (notifier): ChannelHealths => notifier.healths,
      }),
    );
    return { address, port, store, intake, close };
  });
}

interface OpenedPart {
  readonly name: string;
  readonly close: () => unknown;
}

/** If a part fails to open, closes the earlier ones and rethrows its error. */
async function closeOnFailure<Value>(close: () => Promise<void>, open: () => Promise<Value>): Promise<Value> {
  try {
    return await open();
  } catch (error) {
    await close();
    throw error;
  }
}

/** A part that fails to close must not prevent the store from closing. */
async function closeInReverse(opened: OpenedPart[], log: Logger): Promise<void> {
  for (let part = opened.pop(); part; part = opened.pop()) {
    try {
      await part.close();
    } catch (error) {
      log.error({ err: error, part: part.name }, "part not closed cleanly");
    }
  }
}

function flowsSettings({ netflowPort, ipfixPort, sflowPort, flows }: Settings): FlowPipelineSettings {
  const { addresses, receiveBufferBytes, allowedExporters } = flows;
  const ports = { netflow: netflowPort, ipfix: ipfixPort, sflow: sflowPort };
  return {
    receiver: { ports, addresses, receiveBufferBytes, allowedExporters },
    windows: { graceMs: flows.graceSeconds * 1000, lateMaxMs: flows.lateSeconds * 1000, rowsMax: flows.tuplesMax },
    ringBytes: flows.ringBytes,
    clockSkewMaxMs: flows.clockSkewSeconds * 1000,
    journalMs: flows.journalSeconds * 1000,
    summary: flows.summaries
      ? { peersMin: flows.summaryPeers, portsMin: flows.summaryPorts, bytesMin: flows.summaryBytes }
      : null,
  };
}

function lineReceiverSettings({
  syslogPort,
  syslogTlsPort,
  evePort,
  eveFile,
  eveSocket,
  collectors,
}: Settings): LineReceiverSettings {
  const ports = { syslog: syslogPort, syslog_tls: syslogTlsPort, eve: evePort };
  return { ...collectors, ports, eveFile, eveSocket };
}

/** Decides for alerts of built-in rules, whose actions cannot be edited. */
function isToldOf(severity: Severity, { notifications: { builtinFrom } }: Settings): boolean {
  return builtinFrom !== "off" && SEVERITIES.indexOf(severity) <= SEVERITIES.indexOf(builtinFrom);
}

/** Slow clients do not keep the service running. */
async function drain(server: FastifyInstance): Promise<void> {
  const timer = setTimeout(() => server.server.closeAllConnections(), DRAIN_MS_MAX);
  await server.close();
  clearTimeout(timer);
}
