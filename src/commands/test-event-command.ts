import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { InvalidArgumentError, type Command } from "commander";
import { clientAddress, CLIENT_VARIABLES, settingEntries } from "../config/config.ts";
import type { Settings } from "../config/settings.ts";
import { TEST_SOURCES, testSample, type TestSample, type TestSource } from "../demo/test-samples.ts";
import { signBody } from "../lib/signature.ts";
import type { Event } from "../model/event.ts";
import { CommandFailure, EXIT_FAILED, EXIT_WRONG_USE } from "./command-failure.ts";
import { addSettingFlags, requireSettings } from "./setting-flags.ts";
import { plain, print, printJson } from "./terminal.ts";

const ANSWER_MS_MAX = 30_000;
const FOUND_MS_MAX = 15_000;
/** Time for detection to process the event. */
const RULES_MS_MAX = 2000;
/** Interval of polling, which doubles each time: every poll is a request, and plans limit them. */
const LOOK_MS = 100;
const LOOK_MS_MAX = 2000;
const ALERTS_LOOKED_AT = 10;
/** Limit of alerts requested one by one, in all polls together. */
const ALERTS_ASKED_MAX = 20;

interface TestEventOptions {
  url?: string;
  key?: string;
  json?: true;
}

interface Service {
  readonly url: string;
  readonly key: string;
  readonly settings: Settings;
}

export function addTestEvent(program: Command): void {
  const command = program
    .command("test-event")
    .argument("<source>", `${TEST_SOURCES.join(", ")}; also as events have it: platform_network`, readSource)
    .description("send one event through a running service, end to end")
    .option("--url <address>", `of the service (or ${CLIENT_VARIABLES.url}; default: as the settings say)`)
    .option(
      "--key <key>",
      `its API key, with events:read, events:write and, for the rules, alerts:read (or ${CLIENT_VARIABLES.key})`,
    )
    .option("--json", "as one JSON object");
  addSettingFlags(command, ["host", "port", "collectors.access_secret"])
    .addHelpText(
      "after",
      `
Syslog, CEF and EVE go to the service's port for them, if it has one; everything else is posted. The command then finds the
event through the API, with the rules that it matched.

Examples:
  tocsin test-event syslog --key tsn_...
  ${CLIENT_VARIABLES.url}=http://siem:8080 ${CLIENT_VARIABLES.key}=tsn_... tocsin test-event access --json

Exit codes: 0 the event arrived, ${EXIT_FAILED} it did not, ${EXIT_WRONG_USE} wrong usage.`,
    )
    .action(async (source: TestSource, options: TestEventOptions) => {
      const { settings } = requireSettings(command);
      const service = serviceOf(options, settings);
      const marker = `test-${randomBytes(6).toString("hex")}`;
      const startedAt = performance.now();
      const sent = await send(service, testSample(source, marker, Date.now()));
      const event = await findEvent(service, marker);
      const tookMs = Math.round(performance.now() - startedAt);
      const { rules, fault } = await findRules(service, event);
      if (options.json) return printJson({ source, sent, took_ms: tookMs, event, rules });
      print(`Sent by ${sent}, found after ${tookMs} ms: ${event.id}`);
      print(
        `Type ${plain(event.type)}, source ${plain(event.source)}, severity ${event.severity}, time ${event.timestamp}.`,
      );
      if (rules === null) print(`Alerts could not be checked: ${fault}`);
      else print(rules.length === 0 ? "No rule raised an alert." : `Alerts from ${rules.map(plain).join(", ")}.`);
    });
}

/** Sources that may also be named with the platform prefix. */
const PLATFORM_SOURCES: ReadonlySet<TestSource> = new Set(["network", "protect", "access", "talk"]);

function readSource(text: string): TestSource {
  // Only the service knows the platform prefix.
  const name = text.slice(text.lastIndexOf("_") + 1);
  const source = TEST_SOURCES.find((one) => one === text || (one === name && PLATFORM_SOURCES.has(one)));
  if (source) return source;
  throw new InvalidArgumentError(`Allowed: ${TEST_SOURCES.join(", ")}.`);
}

function serviceOf(options: TestEventOptions, settings: Settings): Service {
  const url = options.url ?? process.env[CLIENT_VARIABLES.url] ?? clientAddress(settings.host, settings.port);
  const key = options.key ?? process.env[CLIENT_VARIABLES.key];
  if (key) return { url, key, settings };
  throw new CommandFailure(`A running service needs a key: --key, or ${CLIENT_VARIABLES.key}.`, EXIT_WRONG_USE);
}

/** Sends the sample and returns the way it took. */
async function send(service: Service, sample: TestSample): Promise<string> {
  if (sample.way === "submit") {
    await ask(service, "POST", "/v1/events", sample.body);
    return "POST /v1/events";
  }
  if (sample.way === "line") {
    const { data } = await ask<{ data: { listeners: TestListener[] } }>(service, "GET", "/v1/collectors");
    const listener = data.listeners.find(({ name, transport }) => name === sample.collector && transport === "tcp");
    if (listener) return sendLine(service, listener, sample.line);
  }
  const body = sample.way === "line" ? [lineBody(sample)] : sample.body;
  const path = `/v1/collect/${sample.name}`;
  const { data } = await ask<{ data: { refused: { message: string }[] } }>(service, "POST", path, body).catch(
    (error: unknown) => {
      throw sample.way !== "line" && sample.name === "access" ? tellOfSecret(error) : error;
    },
  );
  if (data.refused.length > 0) throw new CommandFailure(`The service refused it: ${plain(data.refused[0]!.message)}`);
  return `POST ${path}`;
}

/** Adds advice to a refusal for a missing signature: only the operator knows the secret. */
function tellOfSecret(error: unknown): unknown {
  if (!(error instanceof TestRefusal) || error.status !== 401 || !/\bsign/.test(error.message)) return error;
  const { flag, variable } = settingEntries().find(({ path }) => path === "collectors.access_secret")!;
  return new TestRefusal(
    error.status,
    `${error.message}\nGive the secret that the service has with ${flag}, or as ${variable}.`,
  );
}

interface TestListener {
  readonly name: string;
  readonly transport: string;
  readonly address: string;
  readonly port: number;
}

function lineBody({ collector, line }: { collector: string; line: string }): unknown {
  return collector === "eve" ? JSON.parse(line) : line;
}

const WHERE_TO_LOOK =
  "GET /v1/collectors lists refusals with their reasons, such as a sender that collectors.allowed_senders does not name.";
/** Errors of a connection that the peer closed early. */
const CLOSED_BY_PEER: ReadonlySet<string> = new Set(["ECONNRESET", "EPIPE"]);

async function sendLine({ url }: Service, { address, port }: TestListener, line: string): Promise<string> {
  // A wildcard listener is reached at the host of the service; any other only at its own address.
  const isEvery = address === "0.0.0.0" || address === "::";
  const host = isEvery ? new URL(url).hostname.replaceAll(/[[\]]/g, "") : address;
  const socket = connect({ host, port });
  try {
    await once(socket, "connect");
    socket.end(`${line}\n`);
    await once(socket, "close");
  } catch (error) {
    const { code = "", message: reason } = error as NodeJS.ErrnoException;
    const message = CLOSED_BY_PEER.has(code)
      ? `Port ${port} of ${host} closed the connection (${code}).\n${WHERE_TO_LOOK}`
      : `Port ${port} of ${host} cannot be reached: ${reason}`;
    throw new CommandFailure(message, EXIT_FAILED, { cause: error });
  }
  return `TCP to ${host} port ${port}`;
}

async function findEvent(service: Service, marker: string): Promise<Event> {
  for await (const _ of looks(FOUND_MS_MAX)) {
    const event = await lookFor(service, marker);
    if (event) return event;
  }
  throw new CommandFailure(
    `The sample was sent, but no event arrived within ${FOUND_MS_MAX / 1000} s; the marker is ${marker}.\n${WHERE_TO_LOOK}`,
  );
}

async function lookFor(service: Service, marker: string): Promise<Event | undefined> {
  try {
    const { data } = await ask<{ data: Event[] }>(service, "GET", `/v1/events?per_page=1&search=${marker}`);
    return data[0];
  } catch (error) {
    if (!(error instanceof CommandFailure)) throw error;
    const message = `The sample was sent, but its arrival could not be checked; the marker is ${marker}.\n${error.message}`;
    throw new CommandFailure(message, error.exitCode, { cause: error });
  }
}

/** Polls immediately and then with growing intervals until the time is up. */
async function* looks(forMs: number): AsyncGenerator<void> {
  const startedAt = performance.now();
  for (let waitMs = LOOK_MS; ; waitMs = Math.min(waitMs * 2, LOOK_MS_MAX)) {
    yield;
    const leftMs = forMs - (performance.now() - startedAt);
    if (leftMs <= 0) return;
    await sleep(Math.min(waitMs, leftMs));
  }
}

interface MatchedRules {
  /** Rules with an alert that contains the event; null if alerts could not be read. */
  readonly rules: readonly string[] | null;
  /** The reason if alerts could not be read. */
  readonly fault?: string;
}

/** The event has arrived: a refusal here does not change that. */
async function findRules(service: Service, event: Event): Promise<MatchedRules> {
  try {
    return { rules: await rulesOf(service, event) };
  } catch (error) {
    if (!(error instanceof CommandFailure)) throw error;
    const isForbidden = error instanceof TestRefusal && error.status === 403;
    return { rules: null, fault: isForbidden ? "the key lacks alerts:read." : error.message };
  }
}

interface ListedAlert {
  readonly id: string;
  readonly rule_name: string;
  readonly event_count: number;
  readonly first_event_at: string;
  readonly last_event_at: string;
}

async function rulesOf(service: Service, { id: eventId, timestamp }: Event): Promise<string[]> {
  const path = `/v1/alerts?sort=last_event_at&order=desc&per_page=${ALERTS_LOOKED_AT}`;
  /** Event counts of the alerts already requested: an unchanged alert is not requested again. */
  const asked = new Map<string, number>();
  let askedCount = 0;
  for await (const _ of looks(RULES_MS_MAX)) {
    const { data: alerts } = await ask<{ data: ListedAlert[] }>(service, "GET", path);
    const rules: string[] = [];
    for (const { id, rule_name: rule, event_count: count, ...span } of alerts) {
      const couldHold = span.first_event_at <= timestamp && timestamp <= span.last_event_at;
      if (!couldHold || asked.get(id) === count || askedCount >= ALERTS_ASKED_MAX) continue;
      askedCount++;
      asked.set(id, count);
      const { data } = await ask<{ data: { related_events: { id: string }[] } }>(service, "GET", `/v1/alerts/${id}`);
      if (data.related_events.some((event) => event.id === eventId)) rules.push(rule);
    }
    if (rules.length > 0) return rules;
  }
  return [];
}

class TestRefusal extends CommandFailure {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

async function ask<Answer>(
  { url, key, settings }: Service,
  method: string,
  path: string,
  body?: unknown,
): Promise<Answer> {
  const content = body === undefined ? undefined : JSON.stringify(body);
  const { accessSecret } = settings.collectors;
  let answer: Response;
  try {
    answer = await fetch(new URL(path, url), {
      method,
      headers: {
        authorization: `Bearer ${key}`,
        ...(content !== undefined && { "content-type": "application/json" }),
        ...(content !== undefined &&
          path.endsWith("/access") &&
          accessSecret && { signature: signBody(accessSecret, content, Date.now()) }),
      },
      ...(content !== undefined && { body: content }),
      signal: AbortSignal.timeout(ANSWER_MS_MAX),
    });
  } catch (error) {
    const message = `No service answers at ${url}.\nIs it running, and is the address right?`;
    throw new CommandFailure(message, EXIT_FAILED, { cause: error });
  }
  const told = (await answer.json().catch(() => undefined)) as (Answer & { error?: { message: string } }) | undefined;
  if (answer.ok && told) return told;
  throw new TestRefusal(
    answer.status,
    `The service refused: ${plain(told?.error?.message ?? `status ${answer.status}`)}`,
  );
}
