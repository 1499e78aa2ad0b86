import { isIP } from "node:net";
import { parsePostgresUrl } from "../lib/postgres-url.ts";
import { snakeCase } from "../lib/text.ts";
import { CHANNELS } from "../model/rule.ts";
import { CHANNEL_DEFINITIONS } from "../notify/channels.ts";
import type { Settings } from "./settings.ts";

// Checks across settings: combinations of values that are each valid alone.

export interface CrossCheckFault {
  readonly path: string;
  /** The setting that causes the fault. */
  readonly because: string;
  readonly message: string;
}

/** Combinations that work but are probably a mistake. */
export function crossCheckWarnings(settings: Settings): Pick<CrossCheckFault, "path" | "message">[] {
  return [...consoleUrlWarnings(settings), ...exportFolderWarnings(settings)];
}

type Warning = Pick<CrossCheckFault, "path" | "message">;

function exportFolderWarnings({ store, exports }: Settings): Warning[] {
  if (store.data !== "opensearch" || exports.folder !== null) return [];
  const message =
    "exports can only be downloaded from the node that ran them: with several nodes, set it to a folder that all of them reach";
  return [{ path: "exports.folder", message }];
}

function consoleUrlWarnings({ host, notifications }: Settings): Warning[] {
  const hasChannel = CHANNELS.some((name) => CHANNEL_DEFINITIONS[name].isConfigured(notifications));
  if (notifications.consoleUrl !== null || !hasChannel || (host !== "0.0.0.0" && host !== "::")) return [];
  const message = `links in messages lead to this machine's own ${host === "::" ? "::1" : "127.0.0.1"}: set it to the address at which people reach the service`;
  return [{ path: "notifications.console_url", message }];
}

export function crossCheckFaults(settings: Settings): CrossCheckFault[] {
  const { syslogTlsPort, collectors, enrichment, analysis } = settings;
  const faults = channelFaults(settings);
  const needs = (isMissing: boolean, path: string, because: string, why: string) => {
    if (isMissing) faults.push(missingFault(path, because, why));
  };
  needs(
    analysis.url !== null && analysis.model === null,
    "analysis.model",
    "analysis.url",
    "the service needs its name",
  );
  const hasTls = syslogTlsPort !== null;
  const { tlsCertificate, tlsKey } = collectors;
  const tls = (name: string) => `collectors.tls_${name}`;
  needs(hasTls && tlsCertificate === null, tls("certificate"), "syslog_tls_port", "senders verify it");
  needs(hasTls && tlsKey === null, tls("key"), "syslog_tls_port", "it belongs to the certificate");
  const names = enrichment.lists.map((item) => item.slice(0, item.indexOf("=")));
  const duplicate = names.find((name, i) => names.indexOf(name) < i);
  if (duplicate !== undefined) {
    const message = `has two lists with the name ${duplicate}: give each its own`;
    faults.push({ path: "enrichment.lists", because: "enrichment.lists", message });
  }
  return [...faults, ...postgresFaults(settings), ...openSearchFaults(settings), ...portFaults(settings)];
}

function postgresFaults({ store, postgres }: Settings): CrossCheckFault[] {
  const faults: CrossCheckFault[] = [];
  const at = (name: string) => `postgres.${name}`;
  if (store.cases === "postgres" && postgres.url === null) {
    faults.push(missingFault(at("url"), "store.cases", "it names the database"));
  }
  if (
    postgres.passwordFile !== null &&
    postgres.url !== null &&
    parsePostgresUrl(postgres.url)?.password !== undefined
  ) {
    const message = "is set, and postgres.url has a password as well: remove one of them";
    faults.push({ path: at("password_file"), because: at("password_file"), message });
  }
  const { tls, tlsCa, tlsCertificate, tlsKey } = postgres;
  const files = { tls_ca: tlsCa, tls_certificate: tlsCertificate, tls_key: tlsKey };
  for (const [name, file] of Object.entries(files)) {
    if (file === null || tls !== "off") continue;
    const message = "has no effect while postgres.tls is off: set that to verify, or remove this";
    faults.push({ path: at(name), because: at(name), message });
  }
  if (tlsCertificate !== null && tlsKey === null) {
    faults.push(missingFault(at("tls_key"), at("tls_certificate"), "it belongs to the certificate"));
  }
  if (tlsKey !== null && tlsCertificate === null) {
    faults.push(missingFault(at("tls_certificate"), at("tls_key"), "it belongs to the key"));
  }
  return faults;
}

function openSearchFaults({ store: { cases, data }, opensearch }: Settings): CrossCheckFault[] {
  const { username, password, passwordFile, tokenFile, tlsCertificate, tlsKey, awsRegion } = opensearch;
  const faults: CrossCheckFault[] = [];
  if (data !== "opensearch") return faults;
  if (cases !== "postgres") {
    const message = `is ${cases}, and must be postgres with store.data: opensearch, which keeps the order of arrival there`;
    faults.push({ path: "store.cases", because: "store.data", message });
  }
  const path = (name: string) => `opensearch.${name}`;
  const needs = (isMissing: boolean, name: string, because: string, why: string) => {
    if (isMissing) faults.push(missingFault(path(name), path(because), why));
  };
  needs(username !== null && password === null && passwordFile === null, "password", "username", "or password_file");
  needs(username === null && password !== null, "username", "password", "the password is that of a user");
  needs(username === null && passwordFile !== null, "username", "password_file", "the password is that of a user");
  needs(tlsCertificate !== null && tlsKey === null, "tls_key", "tls_certificate", "it belongs to the certificate");
  needs(tlsKey !== null && tlsCertificate === null, "tls_certificate", "tls_key", "the key belongs to it");
  const conflict = (both: boolean, name: string, other: string) => {
    if (both)
      faults.push({ path: path(name), because: path(name), message: `excludes ${path(other)}: set one of them` });
  };
  conflict(password !== null && passwordFile !== null, "password_file", "password");
  conflict(tokenFile !== null && username !== null, "token_file", "username");
  conflict(
    awsRegion !== null && (username !== null || tokenFile !== null),
    "aws_region",
    username ? "username" : "token_file",
  );
  return faults;
}

function missingFault(path: string, because: string, why: string): CrossCheckFault {
  return { path, because, message: `is needed with ${because}: ${why}` };
}

function channelFaults({ notifications }: Settings): CrossCheckFault[] {
  const pathOf = (name: string) => `notifications.${snakeCase(name)}`;
  return CHANNELS.flatMap((name) => {
    const definition = CHANNEL_DEFINITIONS[name];
    const unmet = definition.findUnmetNeeds(notifications);
    const conflicts = definition.findConflicts(notifications);
    return [
      ...unmet.map(({ setting, because, why }) => missingFault(pathOf(setting), pathOf(because), why)),
      ...conflicts.map(({ setting, message }) => ({ path: pathOf(setting), because: pathOf(setting), message })),
    ];
  });
}

/** A socket that the service would listen on. */
interface ListenAddress {
  /** The setting of the port. */
  readonly path: string;
  /** The setting of the address. */
  readonly from: string;
  readonly transport: "TCP" | "UDP";
  readonly address: string;
  readonly port: number;
}

/** Listeners that would open the same port: the second would fail. */
function portFaults(settings: Settings): CrossCheckFault[] {
  const faults = new Map<string, CrossCheckFault>();
  const before: ListenAddress[] = [];
  for (const listener of listenAddresses(settings)) {
    const other = before.find((earlier) => overlaps(earlier, listener));
    before.push(listener);
    if (!other) continue;
    const isAlone = other.path === listener.path;
    const path = isAlone ? listener.from : listener.path;
    const message = isAlone
      ? `has ${other.address} and ${listener.address}: a port can be opened once per address`
      : `is ${listener.port}, and so is ${other.path}: each needs a ${listener.transport} port of its own`;
    if (!faults.has(path)) faults.set(path, { path, because: path, message });
  }
  return [...faults.values()];
}

/** Leaves out port 0, which is any free port, and host names, which may resolve to any address. */
function listenAddresses(settings: Settings): ListenAddress[] {
  const { host, port, flows, collectors, netflowPort, ipfixPort, sflowPort, syslogPort, syslogTlsPort, evePort } =
    settings;
  const listeners: ListenAddress[] = [];
  const add = (
    path: string,
    from: string,
    number: number | null,
    addresses: readonly string[],
    transports: ListenAddress["transport"][],
  ) => {
    if (number === null || number === 0) return;
    const literal = addresses.filter((address) => isIP(address) !== 0);
    listeners.push(
      ...transports.flatMap((transport) =>
        literal.map((address) => ({ path, from, transport, address, port: number })),
      ),
    );
  };
  // For HTTP, the IPv6 wildcard includes the IPv4 one.
  const hosts = host === "::" ? ["::", "0.0.0.0"] : host === "localhost" ? ["127.0.0.1", "::1"] : [host];
  add("port", "host", port, hosts, ["TCP"]);
  add("netflow_port", "flows.addresses", netflowPort, flows.addresses, ["UDP"]);
  add("ipfix_port", "flows.addresses", ipfixPort, flows.addresses, ["UDP", "TCP"]);
  add("sflow_port", "flows.addresses", sflowPort, flows.addresses, ["UDP"]);
  add("syslog_port", "collectors.addresses", syslogPort, collectors.addresses, ["UDP", "TCP"]);
  add("syslog_tls_port", "collectors.addresses", syslogTlsPort, collectors.addresses, ["TCP"]);
  add("eve_port", "collectors.addresses", evePort, collectors.addresses, ["TCP"]);
  return listeners;
}

function overlaps(one: ListenAddress, other: ListenAddress): boolean {
  if (one.transport !== other.transport || one.port !== other.port || isIP(one.address) !== isIP(other.address)) {
    return false;
  }
  const wildcard = isIP(one.address) === 4 ? "0.0.0.0" : "::";
  return one.address === other.address || one.address === wildcard || other.address === wildcard;
}
