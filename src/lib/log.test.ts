import { expect, test } from "vitest";
import { createLog } from "./log.ts";

function record(write: (log: ReturnType<typeof createLog>) => void): string {
  let text = "";
  write(createLog({ level: "info", destination: { write: (line) => void (text += line) } }));
  return text;
}

test("a line is one JSON object with a level word and an ISO time", () => {
  const line = JSON.parse(record((log) => log.info({ port: 1 }, "listening")));
  expect(line).toMatchObject({ level: "info", port: 1, msg: "listening" });
  expect(new Date(line.time).toISOString()).toBe(line.time);
});

test("a key never reaches the log, in any position", () => {
  const key = "tsn_0192aabb_5eCr3t-5eCr3t";
  const text = record((log) => {
    log.info({ req: { headers: { authorization: `Bearer ${key}` } } });
    log.info({ headers: { cookie: "session=5eCr3t" } });
    log.info(`the key ${key} was given`);
    log.info({ deep: { url: `/v1/events?key=${key}` } });
    log.error(new Error(`refused: Bearer some5eCr3t`));
  });
  expect(text).not.toContain("5eCr3t");
  expect(
    text
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line)),
  ).toHaveLength(5);
});

test("lines below the level are not written", () => {
  expect(record((log) => log.debug("quiet"))).toBe("");
});
