import { closeSync, openSync } from "node:fs";
import { Agent, request } from "node:http";
import { openTestServer } from "./api-server.ts";

// Runs as a separate process with few file descriptors: uses them up, frees them, and prints the service's responses.

const server = await openTestServer();
const agent = new Agent({ keepAlive: true, maxSockets: 1 });

/** Uses the one connection that is already open. */
function ask(path: string): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: "127.0.0.1", port: server.port, path, agent }, (response) => {
      let text = "";
      response.on("data", (chunk: Buffer) => (text += chunk.toString()));
      response.on("end", () => resolve({ status: response.statusCode!, text }));
    });
    sent.on("error", reject);
    sent.end();
  });
}

async function readinessOnce(status: number): Promise<string> {
  for (;;) {
    const answer = await ask("/readyz");
    if (answer.status === status) return answer.text;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

function useUp(): number[] {
  const held: number[] = [];
  try {
    for (;;) held.push(openSync("/dev/null", "r"));
  } catch {
    return held;
  }
}

await readinessOnce(200);
const held = useUp();
const unready = await readinessOnce(503);
const { text: metrics } = await ask("/metrics");
for (const descriptor of held) closeSync(descriptor);
await readinessOnce(200);
const lines = server.log.filter(({ msg }) => /descriptor|opened again|connections\.max/.test(msg));
process.stdout.write(JSON.stringify({ unready, metrics, lines }));
agent.destroy();
await server.close();
