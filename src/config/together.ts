import { isIP } from "node:net";
import type { Settings } from "./config.ts";

// What settings say together: each is allowed alone, and still something is missing.

export interface TogetherFault {
  readonly path: string;
  /** The setting that asks for it. */
  readonly because: string;
  readonly message: string;
}

/** What works, and most probably not as it is meant. */
export function warningsTogether({ host, notifications }: Settings): Pick<TogetherFault, "path" | "message">[] {
  const { consoleUrl, slackUrl, emailHost, webhookUrl } = notifications;
  const tellsSomebody = [slackUrl, emailHost, webhookUrl].some((setting) => setting !== null);
  if (consoleUrl !== null || !tellsSomebody || (host !== "0.0.0.0" && host !== "::")) return [];
  const message = `links in messages lead to this machine's own ${host === "::" ? "::1" : "127.0.0.1"}: set it to where people reach the service`;
  return [{ path: "notifications.console_url", message }];
}

export function faultsTogether(settings: Settings): TogetherFault[] {
  const { syslogTlsPort, collectors, enrichment, notifications, analysis } = settings;
  const faults: TogetherFault[] = [];
  const needs = (isMissing: boolean, path: string, because: string, why: string) => {
    if (isMissing) faults.push({ path, because, message: `is needed with ${because}: ${why}` });
  };
  const { emailHost, emailFrom, emailTo, emailUser, emailPassword, emailSecurity } = notifications;
  const hasHost = emailHost !== null;
  const email = (name: string) => `notifications.email_${name}`;
  needs(hasHost && emailFrom === null, email("from"), email("host"), "a mail must be from somebody");
  needs(hasHost && emailTo.length === 0, email("to"), email("host"), "a mail must go to somebody");
  needs(!hasHost && emailFrom !== null, email("host"), email("from"), "nothing sends mails otherwise");
  needs(!hasHost && emailTo.length > 0, email("host"), email("to"), "nothing sends mails otherwise");
  needs(emailUser !== null && emailPassword === null, email("password"), email("user"), "one logs in with both");
  needs(emailPassword !== null && emailUser === null, email("user"), email("password"), "one logs in with both");
  if (emailPassword !== null && emailSecurity === "none") {
    const message = "must be starttls or tls where there is a password: it would cross the network for all to read";
    faults.push({ path: email("security"), because: email("security"), message });
  }
  const { webhookUrl, webhookSecret } = notifications;
  const webhook = { url: "notifications.webhook_url", secret: "notifications.webhook_secret" };
  needs(webhookUrl !== null && webhookSecret === null, webhook.secret, webhook.url, "each post is signed with it");
  needs(webhookSecret !== null && webhookUrl === null, webhook.url, webhook.secret, "nothing is posted otherwise");
  needs(
    analysis.url !== null && analysis.model === null,
    "analysis.model",
    "analysis.url",
    "it is what is asked there",
  );
  const hasTls = syslogTlsPort !== null;
  const { tlsCertificate, tlsKey } = collectors;
  const tls = (name: string) => `collectors.tls_${name}`;
  needs(hasTls && tlsCertificate === null, tls("certificate"), "syslog_tls_port", "it is shown to those who connect");
  needs(hasTls && tlsKey === null, tls("key"), "syslog_tls_port", "it proves the certificate");
  const names = enrichment.lists.map((item) => item.slice(0, item.indexOf("=")));
  const twice = names.find((name, i) => names.indexOf(name) < i);
  if (twice !== undefined) {
    const message = `has two lists with the name ${twice}: events are told apart by it`;
    faults.push({ path: "enrichment.lists", because: "enrichment.lists", message });
  }
  return [...faults, ...portFaults(settings)];
}

interface Place {
  readonly path: string;
  /** The setting that the address comes from. */
  readonly from: string;
  readonly transport: "TCP" | "UDP";
  readonly address: string;
  readonly port: number;
}

/** Two that would open the same port: the second could not. */
function portFaults(settings: Settings): TogetherFault[] {
  const faults = new Map<string, TogetherFault>();
  const before: Place[] = [];
  for (const place of placesOf(settings)) {
    const other = before.find((earlier) => isSame(earlier, place));
    before.push(place);
    if (!other) continue;
    const isAlone = other.path === place.path;
    const path = isAlone ? place.from : place.path;
    const message = isAlone
      ? `has ${other.address} and ${place.address}: a port is opened once on an address`
      : `is ${place.port}, and so is ${other.path}: each needs a ${place.transport} port of its own`;
    if (!faults.has(path)) faults.set(path, { path, because: path, message });
  }
  return [...faults.values()];
}

/** What the service listens on. A port of 0 is any that is free, and a name of a host may mean any address. */
function placesOf(settings: Settings): Place[] {
  const { host, port, flows, collectors, netflowPort, ipfixPort, sflowPort, syslogPort, syslogTlsPort, evePort } =
    settings;
  const places: Place[] = [];
  const add = (
    path: string,
    from: string,
    number: number | null,
    addresses: readonly string[],
    on: Place["transport"][],
  ) => {
    if (number === null || number === 0) return;
    const each = addresses.filter((address) => isIP(address) !== 0);
    places.push(
      ...on.flatMap((transport) => each.map((address) => ({ path, from, transport, address, port: number }))),
    );
  };
  // Every interface of IPv6 is, for HTTP, every one of IPv4 too.
  const hosts = host === "::" ? ["::", "0.0.0.0"] : host === "localhost" ? ["127.0.0.1", "::1"] : [host];
  add("port", "host", port, hosts, ["TCP"]);
  add("netflow_port", "flows.addresses", netflowPort, flows.addresses, ["UDP"]);
  add("ipfix_port", "flows.addresses", ipfixPort, flows.addresses, ["UDP", "TCP"]);
  add("sflow_port", "flows.addresses", sflowPort, flows.addresses, ["UDP"]);
  add("syslog_port", "collectors.addresses", syslogPort, collectors.addresses, ["UDP", "TCP"]);
  add("syslog_tls_port", "collectors.addresses", syslogTlsPort, collectors.addresses, ["TCP"]);
  add("eve_port", "collectors.addresses", evePort, collectors.addresses, ["TCP"]);
  return places;
}

function isSame(one: Place, other: Place): boolean {
  if (one.transport !== other.transport || one.port !== other.port || isIP(one.address) !== isIP(other.address)) {
    return false;
  }
  const everywhere = isIP(one.address) === 4 ? "0.0.0.0" : "::";
  return one.address === other.address || one.address === everywhere || other.address === everywhere;
}
