import { once } from "node:events";
import { mkdtempSync, rmSync, statfsSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { CannotInstall } from "./opensearch-install.ts";
import { startOpenSearch, type OpenSearchCluster } from "./opensearch.ts";
import type { SharedOpenSearch } from "./shared-opensearch.ts";

/** One OpenSearch for all test files of a run. It starts when the first file asks: most runs need none. */
export default async function setup({ provide }: TestProject): Promise<() => Promise<void>> {
  let starting: Promise<SharedOpenSearch> | undefined;
  let cluster: OpenSearchCluster | undefined;
  const folder = mkdtempSync(join(roomyFolder(), "tocsin-opensearch-"));
  const start = async (): Promise<SharedOpenSearch> => {
    const running = process.env["OPENSEARCH_URL"];
    if (running) return { url: running };
    try {
      cluster = await startOpenSearch({ folder, settings: { "path.repo": join(folder, "snapshots") } });
      return { url: cluster.urls[0]! };
    } catch (error) {
      if (error instanceof CannotInstall) return { missing: error.message };
      throw error;
    }
  };
  const server = createServer((_request, response) => {
    // Otherwise a file that asks much later may use the connection just as it is closed.
    response.setHeader("connection", "close");
    starting ??= start();
    starting.then(
      (shared) => response.end(JSON.stringify(shared)),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  provide("openSearchStarter", `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  return async () => {
    server.close();
    server.closeAllConnections();
    await starting?.catch(() => undefined);
    await cluster?.kill();
    rmSync(folder, { recursive: true, force: true });
  };
}

const MEMORY_FOLDER = "/dev/shm";
const MEMORY_BYTES_MIN = 2 * 2 ** 30;

/** In memory where there is room: an index that is created, and every write, waits for the disk several times. */
function roomyFolder(): string {
  try {
    const { bavail, bsize } = statfsSync(MEMORY_FOLDER);
    if (bavail * bsize >= MEMORY_BYTES_MIN) return MEMORY_FOLDER;
  } catch {
    // Not a system with one.
  }
  return tmpdir();
}
