import type { AddressInfo } from "node:net";
import type { FastifyInstance } from "fastify";
import type { Logger } from "pino";
import { collectDefaultMetrics, Registry } from "prom-client";
import { openAlerts, type AlertsOptions } from "./alerts/alerts.ts";
import { isBeyond } from "./alerts/room.ts";
import { Analyst } from "./analysis/analyst.ts";
import { createServer, type ConnectionLimits } from "./api/server.ts";
import { clientAddress, type Settings } from "./config/config.ts";
import { warningsTogether } from "./config/together.ts";
import { loadBuiltinRules } from "./detection/builtin.ts";
import { Detector } from "./detection/detector.ts";
import { Rulebook } from "./detection/rulebook.ts";
import { Enrichment } from "./enrichment/enrichment.ts";
import { Hostnames } from "./enrichment/hostnames.ts";
import { openExporter } from "./exports/exporter.ts";
import { openInlet, type InletSettings } from "./collectors/inlet/inlet.ts";
import { Posts } from "./collectors/posts.ts";
import { openFlows, refuseNewerFlows, type FlowsSettings } from "./flows/flows.ts";
import { registerThreadMetrics } from "./lib/memory-metrics.ts";
import { openIntake, type Intake } from "./intake/intake.ts";
import { openChannels } from "./notify/channels.ts";
import { alertUrl, openNotifier } from "./notify/notifier.ts";
import type { Alert, AlertSummary } from "./model/alert.ts";
import { SEVERITIES, type Severity } from "./model/event.ts";
import type { Finding } from "./model/finding.ts";
import { startRetention } from "./retention.ts";
import { openStore } from "./store/index.ts";
import type { Store } from "./store/store.ts";

// The map: every part of the service, opened in the order in which data flows through them and closed in reverse.
// Nothing else connects parts with each other; to see who gets what, read startApp from top to bottom.

const HOUR_MS = 3_600_000;
/** How long requests that are in may take to end once the service is told to stop. */
const DRAIN_MS_MAX = 5000;

export interface App {
  /** Where a client on this machine reaches it. */
  readonly address: string;
  readonly port: number;
  readonly store: Store;
  readonly intake: Intake;
  /** Stops accepting, finishes what is acknowledged, releases everything. */
  close(): Promise<void>;
}

export interface AppOptions {
  readonly now?: () => number;
  /** What stands between the service and its store: for tests that need a store in trouble. */
  readonly around?: (store: Store) => Store;
  /** For tests that cannot wait, or hold ten thousand connections. */
  readonly connections?: Partial<ConnectionLimits>;
}

/** prom-client names these gauges like counters, which linters reject. Each is the sum of the gauge without the suffix. */
const MISNAMED_GAUGES = [
  "nodejs_active_handles_total",
  "nodejs_active_requests_total",
  "nodejs_active_resources_total",
];

export async function startApp(settings: Settings, log: Logger, options: AppOptions = {}): Promise<App> {
  const { now = Date.now, around = (store: Store) => store, connections } = options;
  const opened: Part[] = [];
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

    refuseNewerFlows(dataDir);
    const store = around(opens("store", await openStore({ dataDir, platform, indexPrefix, registry, log, now })));
    const retaining = opens("retention", await startRetention({ store, settings: retention, registry, log, now }));
    const enrichment = opens(
      "enrichment",
      await Enrichment.open({
        settings: settings.enrichment,
        dataDir,
        keeper: store.reputations,
        events: store.events,
        annotate: (alertId, report) => alerts.addReputation(alertId, report),
        registry,
        log,
        now,
      }),
    );
    const intake = opens("intake", openIntake({ store, enricher: enrichment, registry, retentionDays, now }));
    const exporter = opens(
      "exporter",
      await openExporter({ store, registry, log, now, mayExpire: () => retaining.isClockTrusted() }),
    );

    const channels = openChannels(settings.notifications);
    const telling = { channels: [...channels.keys()], onResolve: settings.notifications.onResolve };
    const channelsOf = (severity: Severity) => (isToldOf(severity, settings) ? telling.channels : []);
    const builtins = loadBuiltinRules({ platform, timezone, channelsOf });
    const rulebook = await Rulebook.open({ store: store.rules, builtins, now });
    const addException: AlertsOptions["addException"] = async (ruleId, exception, author) => {
      const { id, reason } = await rulebook.addException(ruleId, exception, author);
      return { id, reason, takeBack: () => rulebook.takeBackException(ruleId, id) };
    };
    const hear = (alert: AlertSummary) => analyst.hear(alert);
    const onCreated = (alert: Alert, { eventId }: Finding) => {
      const events = alert.relatedEvents.map(({ id }) => id);
      if (!isBeyond(alert)) enrichment.alertMade(alert, eventId, events);
      hear(alert);
    };
    const lastId = await store.alerts.lastId();
    const alerts = openAlerts({ store, now, telling, addException, onCreated, onRaised: hear, registry, lastId });
    const annotate: typeof alerts.annotate = (...annotation) => alerts.annotate(...annotation);
    const { analysis } = settings;
    const analyst = opens("analyst", await Analyst.open({ settings: analysis, store, annotate, registry, log, now }));
    const raise: typeof alerts.raise = (findings, detected) => alerts.raise(findings, detected);
    const { events, detection: progress } = store;
    const report: Intake["take"] = (reports) => intake.take(reports);
    const detector = opens(
      "detector",
      await Detector.open({ events, progress, rulebook, raise, report, registry, log, now }),
    );

    const hostnames = opens("hostnames", new Hostnames({ ...settings.hostnames, registry }));
    const flows = opens(
      "flows",
      await openFlows({
        settings: flowsSettings(settings),
        dataDir,
        platform,
        registry,
        log,
        deliver: (rows, batchId) => store.flows.append(rows, batchId),
        raise: (summaries) => intake.take(summaries),
      }),
    );
    const inlet = opens(
      "inlet",
      await openInlet({
        settings: inletSettings(settings),
        dataDir,
        platform,
        timezone,
        registry,
        log,
        collect: (...drafts) => intake.collect(...drafts),
        addFlows: (...told) => flows.add(...told),
      }),
    );
    const posts = new Posts({
      platform,
      timezone,
      keepsUnparsed: settings.collectors.unparsed,
      lineBytesMax: settings.collectors.lineBytesMax,
      thingBytesMax: settings.bodyLimits.submitBytes,
      accessSecret: settings.collectors.accessSecret,
      flowsLateMs: settings.flows.lateSeconds * 1000,
      registry,
      collect: (...drafts) => intake.collect(...drafts),
      addFlows: (...told) => flows.add(...told),
      now,
    });
    const statusOfCollectors = async () => ({
      flows: await flows.status(),
      lines: await inlet.status(),
      posts: posts.status(),
    });

    const parts = {
      store,
      intake,
      exporter,
      alerts,
      rulebook,
      detector,
      hostnames,
      statusOfCollectors,
      posts,
      enrichment,
      retention: retaining,
    };
    const analyse: typeof analyst.analyse = (id, actor) => analyst.analyse(id, actor);
    const told = { channels: telling.channels, analyse };
    const server = await createServer({ settings, ...parts, ...told, registry, log, now, connections });
    opens("server", { close: () => drain(server) });

    await server.listen({ host: settings.host, port: settings.port });
    const { port } = server.server.address() as AddressInfo;
    const address = clientAddress(settings.host, port);
    // Last, since messages say where the service is.
    const { consoleUrl, perMinuteMax, retryHours } = settings.notifications;
    for (const { path, message } of warningsTogether(settings)) log.warn(`${path}: ${message}`);
    const urlOf = (id: string) => alertUrl(consoleUrl ?? address, id);
    const retryMs = retryHours * HOUR_MS;
    opens("notifier", await openNotifier({ store, channels, perMinuteMax, retryMs, urlOf, registry, log, now }));
    return { address, port, store, intake, close };
  });
}

interface Part {
  readonly name: string;
  readonly close: () => unknown;
}

/** A part that does not open takes those before it down with it, and its own error is the one that is told. */
async function closeOnFailure<Value>(close: () => Promise<void>, open: () => Promise<Value>): Promise<Value> {
  try {
    return await open();
  } catch (error) {
    await close();
    throw error;
  }
}

/** A part that fails to close must not keep the store from closing. */
async function closeInReverse(opened: Part[], log: Logger): Promise<void> {
  for (let part = opened.pop(); part; part = opened.pop()) {
    try {
      await part.close();
    } catch (error) {
      log.error({ err: error, part: part.name }, "not closed cleanly");
    }
  }
}

function flowsSettings({ netflowPort, ipfixPort, sflowPort, flows }: Settings): FlowsSettings {
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

function inletSettings({
  syslogPort,
  syslogTlsPort,
  evePort,
  eveFile,
  eveSocket,
  collectors,
}: Settings): InletSettings {
  const ports = { syslog: syslogPort, syslog_tls: syslogTlsPort, eve: evePort };
  return { ...collectors, ports, eveFile, eveSocket };
}

/** Of built-in rules, whose actions nobody can edit. */
function isToldOf(severity: Severity, { notifications: { builtinFrom } }: Settings): boolean {
  return builtinFrom !== "off" && SEVERITIES.indexOf(severity) <= SEVERITIES.indexOf(builtinFrom);
}

/** A client that stops in the middle of its request, or reads its answer too slowly, does not keep the service up. */
async function drain(server: FastifyInstance): Promise<void> {
  const timer = setTimeout(() => server.server.closeAllConnections(), DRAIN_MS_MAX);
  await server.close();
  clearTimeout(timer);
}
