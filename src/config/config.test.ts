import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { sampleSetting } from "../lib/setting-types.fixture.ts";
import { snakeCase } from "../lib/text.ts";
import { CHANNELS } from "../model/rule.ts";
import { CHANNEL_DEFINITIONS } from "../notify/channels.ts";
import { loadSettings, settingEntries, type LoadedSettings, type SettingFault, type SettingSources } from "./config.ts";

let folder: string;
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), "tocsin-config-"))));
afterEach(() => rmSync(folder, { recursive: true }));

const load = (sources: Partial<SettingSources> & { yaml?: string }) => {
  if (sources.yaml !== undefined) writeFileSync(join(folder, "tocsin.yaml"), sources.yaml);
  return loadSettings({ environment: {}, workingFolder: folder, ...sources });
};
const faultsOf = (sources: Parameters<typeof load>[0]): readonly SettingFault[] => {
  const outcome = load(sources);
  return "faults" in outcome ? outcome.faults : [];
};
const settingsOf = (sources: Parameters<typeof load>[0]) => {
  const outcome = load(sources);
  expect("faults" in outcome ? outcome.faults : []).toEqual([]);
  return (outcome as LoadedSettings).settings;
};

test("every setting has a default", () => {
  expect(settingsOf({})).toEqual({
    host: "127.0.0.1",
    port: 8080,
    dataDir: join(folder, "data"),
    platform: "platform",
    indexPrefix: "tocsin",
    store: { cases: "embedded", data: "embedded" },
    postgres: {
      url: null,
      passwordFile: null,
      tls: "off",
      tlsCa: null,
      tlsCertificate: null,
      tlsKey: null,
      poolMax: 10,
      connectSeconds: 5,
      statementSeconds: 30,
    },
    siteName: "this site",
    timezone: "UTC",
    siteHours: "mon-fri 08:00-18:00",
    retention: { eventsDays: 365, flowsDays: 30, alertsDays: 730, shareMax: 25 },
    plans: {
      starter: { perMinute: 60, perDay: 10_000 },
      pro: { perMinute: 300, perDay: 100_000 },
      enterprise: { perMinute: 1000, perDay: null },
    },
    rateLimits: true,
    anonymousPerMinute: 60,
    bodyLimits: { submitBytes: 1_048_576, batchBytes: 33_554_432 },
    connections: { max: 10_000, perAddressMax: 256 },
    trustedProxies: [],
    hostnames: { enabled: true, resolver: null, perSecondMax: 20 },
    netflowPort: 2055,
    ipfixPort: 4739,
    sflowPort: 6343,
    flows: expect.objectContaining({ addresses: ["0.0.0.0", "::"], allowedExporters: [], summaries: true }),
    syslogPort: 5514,
    syslogTlsPort: null,
    evePort: null,
    eveFile: null,
    eveSocket: null,
    exports: { folder: null },
    collectors: expect.objectContaining({
      allowedSenders: [],
      tlsKey: null,
      formatsDir: null,
      unparsed: true,
      accessSecret: null,
    }),
    enrichment: expect.objectContaining({ geo: true, geoFile: null, lists: [], abuseipdbKey: null }),
    notifications: expect.objectContaining({ consoleUrl: null, slackUrl: null, emailTo: [], privateAddresses: false }),
    analysis: expect.objectContaining({ automaticFrom: "high", url: null }),
    opensearch: {
      addresses: ["http://127.0.0.1:9200"],
      username: null,
      password: null,
      passwordFile: null,
      tokenFile: null,
      tlsCa: null,
      tlsCertificate: null,
      tlsKey: null,
      awsRegion: null,
      awsService: "es",
      timeoutSeconds: 30,
      retriesMax: 3,
      connectionsMax: 32,
      compression: false,
      shards: 1,
      replicas: 1,
    },
    logLevel: "info",
  });
});

test("the file wins over defaults, variables over the file, flags over variables", () => {
  const yaml = "host: 10.0.0.1\nport: 1001\nplatform: yard\nretention: { events_days: 14 }\n";
  const environment = { TOCSIN_PORT: "1002", TOCSIN_PLATFORM: "gate" };
  const settings = settingsOf({ yaml, environment, flags: { platform: "tower" } });
  expect(settings).toMatchObject({ host: "10.0.0.1", port: 1002, platform: "tower", retention: { eventsDays: 14 } });
  expect((load({ yaml, environment }) as LoadedSettings).used).toContainEqual({
    path: "port",
    value: 1002,
    origin: "variable TOCSIN_PORT",
  });
});

test("a file named by the flag takes precedence over one named by the variable, and both over tocsin.yaml", () => {
  writeFileSync(join(folder, "a.yaml"), "port: 1");
  writeFileSync(join(folder, "b.yaml"), "port: 2");
  const yaml = "port: 3";
  expect(settingsOf({ yaml }).port).toBe(3);
  expect(settingsOf({ yaml, environment: { TOCSIN_CONFIG: "a.yaml" } }).port).toBe(1);
  expect(settingsOf({ yaml, environment: { TOCSIN_CONFIG: "a.yaml" }, configFile: "b.yaml" }).port).toBe(2);
});

test("every setting can be given as a variable and as a flag, in text", () => {
  const texts: Record<string, [string, unknown]> = {
    "retention.share_max": ["40", 40],
    host: ["::1", "::1"],
    port: ["0", 0],
    data_dir: ["/srv/tocsin", "/srv/tocsin"],
    platform: ["yard", "yard"],
    index_prefix: ["site1", "site1"],
    site_name: ["Main Street 4", "Main Street 4"],
    "store.cases": ["postgres", "postgres"],
    "postgres.url": ["postgres://ann@db1,db2:5433/cases", "postgres://ann@db1,db2:5433/cases"],
    "postgres.tls": ["verify", "verify"],
    "postgres.pool_max": ["20", 20],
    "postgres.connect_seconds": ["10", 10],
    "postgres.statement_seconds": ["60", 60],
    timezone: ["Europe/Berlin", "Europe/Berlin"],
    site_hours: ["mon-sat 07:30-19:00", "mon-sat 07:30-19:00"],
    "hostnames.enabled": ["off", false],
    "hostnames.resolver": ["[2001:db8::53]:5353", "[2001:db8::53]:5353"],
    "hostnames.per_second_max": ["5", 5],
    netflow_port: ["off", null],
    "flows.addresses": ["127.0.0.1, ::1", ["127.0.0.1", "::1"]],
    "flows.allowed_exporters": ["10.0.0.0/8,2001:db8::1", ["10.0.0.0/8", "2001:db8::1"]],
    "flows.receive_buffer_bytes": ["65536", 65_536],
    "flows.ring_bytes": ["1048576", 1_048_576],
    "flows.grace_seconds": ["30", 30],
    "flows.journal_seconds": ["2", 2],
    "flows.tuples_max": ["20000", 20_000],
    "flows.summaries": ["off", false],
    eve_file: ["/var/log/eve.json", "/var/log/eve.json"],
    eve_socket: ["/run/eve.sock", "/run/eve.sock"],
    "collectors.addresses": ["127.0.0.1", ["127.0.0.1"]],
    "collectors.allowed_senders": ["10.0.0.0/8", ["10.0.0.0/8"]],
    "collectors.unparsed": ["off", false],
    "collectors.formats_dir": ["/etc/tocsin/formats", "/etc/tocsin/formats"],
    "collectors.access_secret": ["0123456789abcdef", "0123456789abcdef"],
    "notifications.webhook_secret": ["0123456789abcdef", "0123456789abcdef"],
    "enrichment.geo": ["off", false],
    "enrichment.lists": [
      "bad=/etc/bad.txt, tor=https://example.com/tor",
      ["bad=/etc/bad.txt", "tor=https://example.com/tor"],
    ],
    "enrichment.abuseipdb_url": ["http://127.0.0.1:1/", "http://127.0.0.1:1/"],
    "enrichment.lists_every_minutes": ["5", 5],
    "notifications.console_url": ["https://tocsin.example", "https://tocsin.example"],
    "notifications.on_resolve": ["on", true],
    "notifications.builtin_from": ["low", "low"],
    "notifications.per_minute_max": ["1", 1],
    "notifications.retry_hours": ["2", 2],
    "notifications.private_addresses": ["on", true],
    "notifications.slack_url": ["https://hooks.example/T0/B0", "https://hooks.example/T0/B0"],
    "notifications.email_host": ["mail.example.com", "mail.example.com"],
    "notifications.email_security": ["tls", "tls"],
    "notifications.email_from": ["tocsin@example.com", "tocsin@example.com"],
    "notifications.email_to": ["a@example.com,b@example.com", ["a@example.com", "b@example.com"]],
    "notifications.syslog_transport": ["tls", "tls"],
    "notifications.syslog_format": ["cef", "cef"],
    "notifications.syslog_facility": ["4", 4],
    "notifications.elasticsearch_index": ["alerts-of-site", "alerts-of-site"],
    "notifications.http_method": ["PUT", "PUT"],
    "notifications.http_content_type": ["text/plain", "text/plain"],
    "notifications.http_per": ["notification", "notification"],
    "notifications.webhook_url": ["https://example.com/in", "https://example.com/in"],
    "analysis.automatic_from": ["critical", "critical"],
    "analysis.url": ["http://127.0.0.1:11434/v1", "http://127.0.0.1:11434/v1"],
    "analysis.timeout_seconds": ["5", 5],
    rate_limits: ["off", false],
    trusted_proxies: ["loopback, 10.0.0.0/8", ["loopback", "10.0.0.0/8"]],
    "store.data": ["opensearch", "opensearch"],
    "opensearch.addresses": ["https://one:9200, https://two:9200", ["https://one:9200", "https://two:9200"]],
    "opensearch.username": ["tocsin", "tocsin"],
    "opensearch.password": ["correct horse", "correct horse"],
    "opensearch.password_file": ["off", null],
    "opensearch.token_file": ["off", null],
    "opensearch.tls_ca": ["/etc/ca.pem", "/etc/ca.pem"],
    "opensearch.tls_certificate": ["/etc/client.pem", "/etc/client.pem"],
    "opensearch.tls_key": ["/etc/client.key", "/etc/client.key"],
    "opensearch.aws_region": ["off", null],
    "opensearch.aws_service": ["aoss", "aoss"],
    "opensearch.timeout_seconds": ["60", 60],
    "opensearch.retries_max": ["0", 0],
    "opensearch.connections_max": ["8", 8],
    "opensearch.compression": ["on", true],
    "opensearch.shards": ["3", 3],
    "opensearch.replicas": ["2", 2],
    log_level: ["debug", "debug"],
    "plans.starter.per_day": ["unlimited", null],
  };
  const requiredByChannels = new Set(CHANNELS.flatMap((name) => CHANNEL_DEFINITIONS[name].required).map(snakeCase));
  const entries = settingEntries();
  // Settings that need each other.
  const companions = {
    ...Object.fromEntries(
      entries
        .filter(({ path }) => requiredByChannels.has(path.replace("notifications.", "")))
        .map(({ variable, schema }) => [variable, sampleSetting(schema)[0]]),
    ),
    TOCSIN_NOTIFICATIONS_EMAIL_USER: "tocsin",
    TOCSIN_NOTIFICATIONS_EMAIL_PASSWORD: "secret",
    TOCSIN_ANALYSIS_MODEL: "a-model",
    TOCSIN_STORE_CASES: "postgres",
    TOCSIN_POSTGRES_URL: "postgres://ann@db/cases",
    TOCSIN_POSTGRES_TLS: "require",
    TOCSIN_POSTGRES_TLS_CERTIFICATE: "certificate.pem",
    TOCSIN_POSTGRES_TLS_KEY: "key.pem",
    TOCSIN_COLLECTORS_TLS_CERTIFICATE: "certificate.pem",
    TOCSIN_COLLECTORS_TLS_KEY: "key.pem",
  };
  for (const { path, variable, schema } of entries) {
    const [text, value] = texts[path] ?? sampleSetting(schema);
    for (const sources of [
      { environment: { ...companions, [variable]: text } },
      { environment: companions, flags: { [path]: text } },
    ]) {
      let reached: unknown = settingsOf(sources);
      for (const name of path.split(".")) {
        reached = (reached as Record<string, unknown>)[name.replace(/_(.)/g, (_, letter) => letter.toUpperCase())];
      }
      expect(reached, path).toEqual(value);
    }
  }
});

test("every fault of every source is reported at once, with its path, its origin and what is allowed", () => {
  const faults = faultsOf({
    yaml: "prot: 1\nlog_level: loud\nretention:\n  events_days: 0\n  event_days: 3\nplans: 5\ntrusted_proxies: [nowhere]\n",
    environment: { TOCSIN_PORT: "70000", TOCSIN_HOTS: "x", TOCSIN_FOO: "x", TOCSIN_RATE_LIMITS: "maybe" },
    flags: { platform: "Not Good" },
  });
  const file = `file ${join(folder, "tocsin.yaml")}`;
  expect(faults).toEqual([
    { path: "prot", origin: file, message: "is not a setting; did you mean port?" },
    { path: "retention.event_days", origin: file, message: "is not a setting; did you mean events_days?" },
    { path: "plans", origin: file, message: "must hold starter, pro, enterprise; it is 5" },
    { path: "TOCSIN_HOTS", origin: "variable TOCSIN_HOTS", message: "is not a setting; did you mean TOCSIN_HOST?" },
    // No name is similar: a common prefix does not count.
    {
      path: "TOCSIN_FOO",
      origin: "variable TOCSIN_FOO",
      message: expect.stringMatching(/^is not a setting; there are TOCSIN_CONFIG, /),
    },
    {
      path: "log_level",
      origin: file,
      message: 'must be one of fatal, error, warn, info, debug, trace, silent; it is "loud"',
    },
    { path: "retention.events_days", origin: file, message: "must be a whole number from 1 to 36500; it is 0" },
    {
      path: "trusted_proxies",
      origin: file,
      message: expect.stringMatching(/addresses, networks, loopback.*nowhere/),
    },
    { path: "port", origin: "variable TOCSIN_PORT", message: "must be a whole number from 0 to 65535; it is 70000" },
    { path: "rate_limits", origin: "variable TOCSIN_RATE_LIMITS", message: 'must be on or off; it is "maybe"' },
    { path: "platform", origin: "flag --platform", message: expect.stringContaining("lower-case letters") },
  ]);
});

test.each([
  ["a: [", /is not YAML/],
  ["port: 1\nport: 2", /is not YAML: .*unique/],
  ["- port", /must hold host, port/],
  ["just words", /must hold host, port/],
  ["port:", /whole number from 0 to 65535; it is null/],
  ["port: 80.5", /whole number/],
  ["port: '80'", /whole number/],
  ["__proto__: { port: 1 }", /is not a setting/],
])("the file %j is refused with the reason", (yaml, reason) => {
  const faults = faultsOf({ yaml });
  expect(faults).toHaveLength(1);
  expect(faults[0]!.message).toMatch(reason);
});

test("a secret can be in a file that a variable names", () => {
  writeFileSync(join(folder, "secret"), "https://hooks.example/from-a-file\n");
  const FILE = "TOCSIN_NOTIFICATIONS_SLACK_URL_FILE";
  expect(settingsOf({ environment: { [FILE]: "secret" } }).notifications.slackUrl).toBe(
    "https://hooks.example/from-a-file",
  );
  const origin = `variable ${FILE}`;
  const both = { [FILE]: "secret", TOCSIN_NOTIFICATIONS_SLACK_URL: "https://hooks.example/" };
  const message = "is set, and so is TOCSIN_NOTIFICATIONS_SLACK_URL: set one of them";
  expect(faultsOf({ environment: both })).toEqual([{ path: "notifications.slack_url", origin, message }]);
  expect(faultsOf({ environment: { [FILE]: "missing" } })).toMatchObject([
    { path: "notifications.slack_url", origin, message: expect.stringContaining("cannot be read") },
  ]);
  writeFileSync(join(folder, "large"), "x".repeat(20_000));
  expect(faultsOf({ environment: { [FILE]: "large" } })).toMatchObject([
    { message: expect.stringContaining("larger than") },
  ]);
  expect(faultsOf({ environment: { TOCSIN_PORT_FILE: "secret" } })).toMatchObject([{ path: "TOCSIN_PORT_FILE" }]);
  expect(settingsOf({ environment: { TOCSIN_OPENSEARCH_PASSWORD_FILE: "" } }).opensearch.passwordFile).toBeNull();
});

test("an empty file and an empty variable set nothing", () => {
  expect(settingsOf({ yaml: "# nothing\n", environment: { TOCSIN_PORT: "" } }).port).toBe(8080);
});

test("a missing file is a fault if it is named, and fine if it is the default one", () => {
  expect(faultsOf({ configFile: "gone.yaml" })).toEqual([
    { path: "config", origin: "flag --config", message: `there is no file gone.yaml in ${folder}` },
  ]);
  expect(faultsOf({})).toEqual([]);
});

test("a resolver is an address, with or without a port", () => {
  const faultOf = (resolver: string) => faultsOf({ environment: { TOCSIN_HOSTNAMES_RESOLVER: resolver } });
  for (const good of ["192.0.2.53", "192.0.2.53:5353", "2001:db8::53", "[2001:db8::53]", "[2001:db8::53]:53"])
    expect(load({ environment: { TOCSIN_HOSTNAMES_RESOLVER: good } }), good).not.toHaveProperty("faults");
  for (const bad of ["dns.example.org", "192.0.2.53:0", "192.0.2.53:65536", "192.0.2.53:", "[192.0.2.53", "::1:x"])
    expect(faultOf(bad), bad).toHaveLength(1);
});

test("a secret is shown neither in the list of settings nor in errors", () => {
  const environment = {
    TOCSIN_NOTIFICATIONS_SLACK_URL: "https://hooks.example/secret",
    TOCSIN_ANALYSIS_KEY: "sk-secret",
  };
  const { settings, used } = load({ environment }) as LoadedSettings;
  expect(settings).toMatchObject({ analysis: { key: "sk-secret" } });
  expect(used).toContainEqual({ path: "analysis.key", value: "(secret)", origin: "variable TOCSIN_ANALYSIS_KEY" });
  expect(used).toContainEqual({ path: "notifications.webhook_url", value: "off", origin: "default" });
  const faults = faultsOf({ environment: { TOCSIN_NOTIFICATIONS_SLACK_URL: "ftp://secret" } });
  expect(faults).toMatchObject([{ path: "notifications.slack_url" }]);
  expect(JSON.stringify([used, faults])).not.toMatch(/sk-secret|hooks\.example|ftp:/);
});

test("possible keys in URLs are shown neither in the list of settings nor in errors", () => {
  const environment = {
    TOCSIN_ENRICHMENT_LISTS:
      "own=/etc/own.txt,feed=https://lists.example/SECRET/list.txt?key=SECRET,all=http://SECRET@192.0.2.1",
    TOCSIN_ENRICHMENT_ABUSEIPDB_URL: "https://ann:SECRET@proxy.example/api/v2",
    TOCSIN_ANALYSIS_URL: "https://models.example/v1?key=SECRET",
    TOCSIN_ANALYSIS_MODEL: "small",
  };
  const { settings, used } = load({ environment }) as LoadedSettings;
  expect(settings.analysis.url).toBe("https://models.example/v1?key=SECRET");
  const listed = Object.fromEntries(used.map(({ path, value }) => [path, value]));
  expect(listed).toMatchObject({
    "enrichment.lists": ["own=/etc/own.txt", "feed=https://lists.example/(hidden)", "all=http://(hidden)@192.0.2.1/"],
    "enrichment.abuseipdb_url": "https://(hidden)@proxy.example/api/v2",
    "analysis.url": "https://models.example/v1?(hidden)",
  });
  expect(load({}) as LoadedSettings).toMatchObject({
    used: expect.arrayContaining([
      { path: "enrichment.abuseipdb_url", value: "https://api.abuseipdb.com/api/v2", origin: "default" },
    ]),
  });
  const wrong = [
    { enrichment: { lists: ["Feed=https://l.example/SECRET"] } },
    { enrichment: { lists: [{ feed: "https://l.example/?SECRET" }] } },
    { enrichment: { lists: "feed=https://l.example/SECRET" } },
    { enrichment: { lists: ["feed=https://l exam/SECRET"] } },
    { enrichment: { lists: ["feed=ftp://l.example/SECRET"] } },
    { enrichment: "https://l.example/?SECRET" },
    { analysis: { url: "htps://ann:SECRET@m.example/v1" } },
    { notifications: { email_host: "smtp://ann:SECRET@m.example" } },
  ];
  const faults = wrong.map((settings) => faultsOf({ yaml: JSON.stringify(settings) }));
  expect(faults.map((each) => each.map(({ path }) => path))).toEqual([
    ...Array.from({ length: 5 }, () => ["enrichment.lists"]),
    ["enrichment"],
    ["analysis.url"],
    ["notifications.email_host"],
  ]);
  expect(JSON.stringify([used, faults])).not.toContain("SECRET");
});

test("a partly configured channel is a fault of the missing setting", () => {
  const faultsOf = (environment: Record<string, string>) => {
    const named = Object.entries(environment).map(([name, value]) => [`TOCSIN_NOTIFICATIONS_${name}`, value] as const);
    const outcome = load({ environment: Object.fromEntries(named) });
    return "faults" in outcome ? outcome.faults.map(({ path, origin }) => [path, origin]) : [];
  };
  const host = { EMAIL_HOST: "mail.example.com" };
  const email = { ...host, EMAIL_FROM: "a@example.com", EMAIL_TO: "b@example.com" };
  const origin = (name: string) => `variable TOCSIN_NOTIFICATIONS_${name}`;
  expect(faultsOf(email)).toEqual([]);
  expect(faultsOf(host)).toEqual([
    ["notifications.email_from", origin("EMAIL_HOST")],
    ["notifications.email_to", origin("EMAIL_HOST")],
  ]);
  expect(faultsOf({ EMAIL_TO: "b@example.com" })).toEqual([["notifications.email_host", origin("EMAIL_TO")]]);
  expect(faultsOf({ ...email, EMAIL_USER: "me" })).toEqual([["notifications.email_password", origin("EMAIL_USER")]]);
  expect(faultsOf({ ...email, EMAIL_PASSWORD: "pass" })).toEqual([
    ["notifications.email_user", origin("EMAIL_PASSWORD")],
  ]);
  const clear = { ...email, EMAIL_USER: "me", EMAIL_PASSWORD: "pass", EMAIL_SECURITY: "none" };
  expect(faultsOf(clear)).toEqual([["notifications.email_security", origin("EMAIL_SECURITY")]]);
  expect(faultsOf({ WEBHOOK_URL: "https://example.com/" })).toEqual([
    ["notifications.webhook_secret", origin("WEBHOOK_URL")],
  ]);
  expect(faultsOf({ WEBHOOK_SECRET: "0123456789abcdef" })).toEqual([
    ["notifications.webhook_url", origin("WEBHOOK_SECRET")],
  ]);
});

test("a secret that is too short is refused with the minimum length, and not shown", () => {
  const shortest = {
    TOCSIN_COLLECTORS_ACCESS_SECRET: 16,
    TOCSIN_NOTIFICATIONS_WEBHOOK_SECRET: 16,
    TOCSIN_NOTIFICATIONS_EMAIL_PASSWORD: 4,
    TOCSIN_ENRICHMENT_ABUSEIPDB_KEY: 4,
    TOCSIN_ANALYSIS_KEY: 4,
  };
  const secrets = settingEntries().filter(({ isSecret, allowed }) => isSecret && allowed.startsWith("a secret of"));
  const stated = secrets.map(({ variable, allowed }) => {
    const [, least] = /^a secret of at least (\d+) characters/.exec(allowed) ?? [];
    return [variable, Number(least)] as const;
  });
  expect(Object.fromEntries(stated)).toMatchObject(shortest);
  for (const [variable, least] of stated) {
    for (const given of ["x", "q".repeat(least - 1), " ".repeat(least)]) {
      const loaded = loadSettings({ environment: { [variable]: given }, workingFolder: "/" });
      const [fault] = "faults" in loaded ? loaded.faults : [];
      expect(fault?.message, variable).toMatch(new RegExp(`at least ${least} characters.*it is something else`));
    }
    const loaded = loadSettings({ environment: { [variable]: "q".repeat(least) }, workingFolder: "/" });
    const faults = "faults" in loaded ? loaded.faults : [];
    expect(faults.filter(({ message }) => message.includes("characters"))).toEqual([]);
  }
});

test("a TLS port without a certificate, and two lists with one name, are faults", () => {
  const environment = { TOCSIN_SYSLOG_TLS_PORT: "6514", TOCSIN_ENRICHMENT_LISTS: "bad=/a,tor=/b,bad=/c" };
  expect(faultsOf({ environment }).map(({ path, origin }) => [path, origin])).toEqual([
    ["collectors.tls_certificate", "variable TOCSIN_SYSLOG_TLS_PORT"],
    ["collectors.tls_key", "variable TOCSIN_SYSLOG_TLS_PORT"],
    ["enrichment.lists", "variable TOCSIN_ENRICHMENT_LISTS"],
  ]);
});

test("PostgreSQL needs its URL, one password, and TLS for its files; messages show neither user nor password", () => {
  const faultsOfCases = (environment: Record<string, string>) =>
    faultsOf({
      environment: Object.fromEntries(Object.entries(environment).map(([name, value]) => [`TOCSIN_${name}`, value])),
    }).map(({ path, message }) => `${path} ${message}`);
  const url = "postgres://ann:SECRET@db1:5433,[2001:db8::5]/cases";
  expect(faultsOfCases({ STORE_CASES: "postgres" })).toEqual([
    "postgres.url is needed with store.cases: it names the database",
  ]);
  expect(faultsOfCases({ STORE_CASES: "postgres", POSTGRES_URL: url })).toEqual([]);
  expect(faultsOfCases({ POSTGRES_URL: url, POSTGRES_PASSWORD_FILE: "password" })).toEqual([
    expect.stringMatching(/^postgres\.password_file is set, and postgres\.url has a password/),
  ]);
  expect(faultsOfCases({ POSTGRES_TLS_CA: "ca.pem" })).toEqual([
    expect.stringMatching(/^postgres\.tls_ca has no effect/),
  ]);
  expect(faultsOfCases({ POSTGRES_TLS: "verify", POSTGRES_TLS_KEY: "key.pem" })).toEqual([
    expect.stringMatching(/^postgres\.tls_certificate is needed with postgres\.tls_key/),
  ]);
  const wrong = ["postgres://ann:SECRET@db", "mysql://ann:SECRET@db/cases", "postgres://ann:SECRET@db:0/cases"];
  for (const value of [...wrong, "postgres://db/cases", `${url}?sslmode=require`]) {
    const faults = faultsOfCases({ POSTGRES_URL: value });
    expect(faults, value).toEqual([expect.stringMatching(/^postgres\.url must be postgres:/)]);
    expect(faults.join(), value).not.toContain("SECRET");
  }
  const { used } = load({ environment: { TOCSIN_POSTGRES_URL: url } }) as LoadedSettings;
  expect(used).toContainEqual({
    path: "postgres.url",
    value: "postgres://db1:5433,[2001:db8::5]:5432/cases",
    origin: "variable TOCSIN_POSTGRES_URL",
  });
});

test("settings of OpenSearch that contradict each other are named, once OpenSearch is used", () => {
  const yaml = (data: string) =>
    `store: { data: ${data} }\nopensearch: { username: tocsin, token_file: t, tls_key: k, aws_region: eu-central-1 }`;
  expect(settingsOf({ yaml: yaml("embedded") }).store.data).toBe("embedded");
  const outcome = load({ yaml: yaml("opensearch") });
  expect("faults" in outcome && outcome.faults.map(({ path, message }) => `${path} ${message}`)).toEqual([
    "store.cases is embedded, and must be postgres with store.data: opensearch, which keeps the order of arrival there",
    "opensearch.password is needed with opensearch.username: or password_file",
    "opensearch.tls_certificate is needed with opensearch.tls_key: the key belongs to it",
    "opensearch.token_file excludes opensearch.username: set one of them",
    "opensearch.aws_region excludes opensearch.username: set one of them",
  ]);
});

test("an address of OpenSearch with a password is refused without showing it", () => {
  const outcome = load({ yaml: "opensearch: { addresses: ['https://user:pass-word-1@one:9200'] }" });
  const text = JSON.stringify(outcome);
  expect(text).toContain("without user or password");
  expect(text).not.toContain("pass-word-1");
});
