import { expect, test } from "vitest";
import { parseFilterText } from "./flow-filter.ts";

test.each([
  ["10.20.3.240", { host: "10.20.3.240" }],
  ["2001:db8::/32", { host: "2001:db8::/32" }],
  ["from 10.0.0.0/8", { src: "10.0.0.0/8" }],
  ["to=192.0.2.1", { dst: "192.0.2.1" }],
  ["port 443", { port: "443" }],
  ["443", { port: "443" }],
  ["UDP", { protocol: "17" }],
  ["protocol 50", { protocol: "50" }],
])("%s is understood", (text, filter) => {
  expect(parseFilterText(text)).toEqual(filter);
});

test.each(["", "port 70000", "from here", "server", "10.0.0.1 10.0.0.2", "protocol 300"])(
  "%j is not a filter",
  (text) => {
    expect(parseFilterText(text)).toBeUndefined();
  },
);
