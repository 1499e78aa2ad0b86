import { execFile } from "node:child_process";
import { expect, test } from "vitest";

/** Ends a program while an engine in one of its threads runs a query for minutes. */
function endBusy(code: number): Promise<{ code: unknown; signal: unknown; stdout: string }> {
  const thread = `
    import { DuckDBInstance } from ${JSON.stringify(import.meta.resolve("@duckdb/node-api"))};
    import { parentPort } from "node:worker_threads";
    const connection = await (await DuckDBInstance.create(":memory:", { threads: "1" })).connect();
    const answer = connection.run("SELECT sum(sin(a.range * b.range)) FROM range(1000000) a, range(1000000) b");
    parentPort.postMessage("busy");
    await answer;`;
  const program = `
    import { Worker } from "node:worker_threads";
    import { exitNow } from ${JSON.stringify(new URL("./exit-now.ts", import.meta.url).href)};
    import { LineWriter } from ${JSON.stringify(new URL("./line-writer.ts", import.meta.url).href)};
    const thread = new Worker(new URL("data:text/javascript," + ${JSON.stringify(encodeURIComponent(thread))}));
    thread.on("message", () => setTimeout(() => {
      new LineWriter(1).write("the last words\\n");
      exitNow(${code});
    }, 100));`;
  return new Promise((resolve) =>
    execFile(process.execPath, ["--input-type=module", "-e", program], { timeout: 200_000 }, (error, stdout) =>
      resolve({ code: error ? error.code : 0, signal: error?.signal ?? null, stdout }),
    ),
  );
}

test("a process exits with its code while a thread is in native code, and its last lines are written", async () => {
  expect(await endBusy(3)).toEqual({ code: 3, signal: null, stdout: "the last words\n" });
});
