import pino from "pino";
import { Registry } from "prom-client";
import { describe } from "vitest";
import { ownPrefix, RUNS_SHARE, sharedOpenSearch } from "../../../test/cluster/shared-opensearch.ts";
import { openUnderTest } from "../embedded/embedded-store.fixture.ts";
import type { OpenStoreUnderTest } from "../testing/contract.ts";
import { OpenSearchClient, type OpenSearchConnection } from "./opensearch-client.ts";
import { openOpenSearchFlows, type OpenSearchFlows } from "./opensearch-flows.ts";

// Stores under test whose flows are in a real OpenSearch.

/** Runs tests that need OpenSearch with its URL, or says why it skips them. */
export async function withOpenSearch(name: string, tests: (url: string) => void): Promise<void> {
  const shared = await sharedOpenSearch();
  if ("url" in shared) describe(name, () => tests(shared.url));
  else describe.skip(`${name} (skipped: ${shared.missing})`, () => tests(""));
}

export interface FlowsUnderTest {
  readonly flows: OpenSearchFlows;
  readonly client: OpenSearchClient;
  readonly registry: Registry;
  readonly prefix: string;
  /** Removes everything with the prefix. */
  end(): Promise<void>;
}

export interface FlowsUnderTestOptions extends Partial<OpenSearchConnection> {
  readonly prefix?: string;
  readonly shards?: number;
}

export async function openFlowsUnderTest(url: string, options: FlowsUnderTestOptions = {}): Promise<FlowsUnderTest> {
  const { prefix = ownPrefix(), shards = 1, ...connection } = options;
  const registry = new Registry();
  const client = new OpenSearchClient({ addresses: [url], ...connection }, registry);
  const log = pino({ level: "silent" });
  const flows = await openOpenSearchFlows({ client, indexPrefix: prefix, shards, replicas: 0, log });
  return {
    flows,
    client,
    registry,
    prefix,
    end: async () => {
      const kind = { operation: "end" };
      const query = { expand_wildcards: "open,closed" };
      await client.send(kind, { method: "DELETE", path: `/${prefix}-flows-*`, query });
      await client.send(kind, { method: "DELETE", path: `/_index_template/${prefix}-flows` });
      await client.close();
    },
  };
}

/** The embedded store with its flows replaced. */
export const openWithFlows = (url: string, shards: number): OpenStoreUnderTest =>
  Object.assign(
    async (now: () => number) => {
      const embedded = await openUnderTest(now);
      let opened = await openFlowsUnderTest(url, { shards });
      return {
        store: { ...embedded.store, flows: opened.flows },
        reopen: async () => {
          await opened.client.close();
          opened = await openFlowsUnderTest(url, { shards, prefix: opened.prefix });
          return { ...(await embedded.reopen()), flows: opened.flows };
        },
        end: async () => {
          await opened.end();
          await embedded.end();
        },
      };
    },
    { runsShare: RUNS_SHARE },
  );
