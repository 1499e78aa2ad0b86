import type { Settings } from "../../src/config/settings.ts";
import { ownPrefix, sharedOpenSearch } from "./shared-opensearch.ts";
import { testDatabase } from "./test-database.ts";

// A database of PostgreSQL and indices of OpenSearch that stand for one data folder in tests.

export interface FolderCluster {
  readonly openSearchUrl: string;
  readonly postgresUrl: string;
  readonly indexPrefix: string;
  /** What a service on the folder is configured with. */
  settings(defaults: Settings): Pick<Settings, "store" | "postgres" | "opensearch" | "indexPrefix">;
  /** Removes the indices. */
  end(): Promise<void>;
}

const clusters = new Map<string, Promise<FolderCluster>>();

/** The same one for the same folder, so that a server that is started again finds its data. */
export function clusterOf(dataDir: string): Promise<FolderCluster> {
  let found = clusters.get(dataDir);
  if (!found) {
    found = newCluster(() => clusters.delete(dataDir));
    clusters.set(dataDir, found);
  }
  return found;
}

async function newCluster(onEnd: () => void): Promise<FolderCluster> {
  const shared = await sharedOpenSearch();
  if ("missing" in shared) throw new Error(shared.missing);
  const openSearchUrl = shared.url;
  const indexPrefix = ownPrefix();
  const postgresUrl = await testDatabase();
  return {
    openSearchUrl,
    postgresUrl,
    indexPrefix,
    settings: ({ postgres, opensearch }) => ({
      store: { cases: "postgres", data: "opensearch" },
      postgres: { ...postgres, url: postgresUrl, poolMax: 5 },
      opensearch: { ...opensearch, addresses: [openSearchUrl], replicas: 0 },
      indexPrefix,
    }),
    end: async () => {
      onEnd();
      for (const kind of ["events", "flows"]) {
        const query = "expand_wildcards=open,closed";
        await fetch(`${openSearchUrl}/${indexPrefix}-${kind}-2*?${query}`, { method: "DELETE" });
        await fetch(`${openSearchUrl}/_index_template/${indexPrefix}-${kind}`, { method: "DELETE" });
      }
    },
  };
}
