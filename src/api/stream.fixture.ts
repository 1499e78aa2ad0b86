import { request as httpRequest, type IncomingMessage } from "node:http";
import type { TestServer } from "../../test/api-server.ts";
import { openAlerts } from "../alerts/alerts.ts";
import type { Finding } from "../model/finding.ts";

// What tests of streams share: a reader, and something to read.

export interface StreamMessage {
  readonly id: string;
  readonly event: string;
  readonly data: any;
}

/** Reads a stream as a browser does. */
export class StreamReader {
  readonly response: IncomingMessage;
  readonly messages: StreamMessage[] = [];
  comments = 0;
  text = "";
  readonly ended: Promise<void>;
  #wake = () => {};

  constructor(response: IncomingMessage) {
    this.response = response;
    let rest = "";
    response.setEncoding("utf8");
    response.on("data", (chunk: string) => {
      this.text += chunk;
      rest += chunk;
      const blocks = rest.split("\n\n");
      rest = blocks.pop()!;
      for (const block of blocks) this.#take(block);
      this.#wake();
    });
    this.ended = new Promise((resolve) => response.on("close", resolve));
  }

  #take(block: string): void {
    const field = (name: string) =>
      block
        .split("\n")
        .find((line) => line.startsWith(`${name}: `))
        ?.slice(name.length + 2);
    if (block.startsWith(":")) this.comments++;
    const data = field("data");
    if (data !== undefined) this.messages.push({ id: field("id")!, event: field("event")!, data: JSON.parse(data) });
  }

  async until(isEnough: (messages: readonly StreamMessage[]) => boolean): Promise<readonly StreamMessage[]> {
    while (!isEnough(this.messages)) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    return this.messages;
  }

  count(number: number): Promise<readonly StreamMessage[]> {
    return this.until(({ length }) => length >= number);
  }

  close(): void {
    this.response.destroy();
  }
}

export async function openReader(
  { port }: Pick<TestServer, "port">,
  { query = "", headers = {}, key }: { query?: string; headers?: Record<string, string>; key: string },
): Promise<StreamReader> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const all = { authorization: `Bearer ${key}`, ...headers };
    const sent = httpRequest({ host: "127.0.0.1", port, path: `/v1/stream${query}`, headers: all }, resolve);
    sent.on("error", reject);
    sent.end();
  });
  if (response.statusCode !== 200) throw new Error(`the stream answered ${response.statusCode}`);
  return new StreamReader(response);
}

/** Submits an event and returns its id. */
export async function submitEvent(server: TestServer, more: object = {}): Promise<string> {
  const body = { type: "stream_test", source: "custom", data: {}, ...more };
  return (await server.call("POST", "/v1/events", { body })).body.data.id;
}

let made = 0;

/** Raises an alert and returns its id. */
export async function raiseAlert({ store }: TestServer, more: Partial<Finding> = {}): Promise<string> {
  const now = Date.now();
  const finding: Finding = {
    rule: { id: "rule_s", name: "stream.rule", description: "A rule.", tags: [], channels: [] },
    severity: "high",
    dedupKey: `["${++made}"]`,
    dedupMs: 1000,
    group: null,
    eventId: null,
    source: "custom",
    title: "Streamed",
    description: "Streamed.",
    enrichment: {},
    eventCount: 1,
    firstEventMs: now,
    lastEventMs: now,
    events: [],
    ...more,
  };
  // The newest of the list may be another one: alerts of one millisecond have no order between two makers of ids.
  let id = "";
  const addException = () => Promise.reject(new Error("unasked"));
  await openAlerts({ store, addException, onCreated: (alert) => (id = alert.id) }).raise([finding], undefined);
  return id;
}
