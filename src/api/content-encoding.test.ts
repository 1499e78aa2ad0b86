import { expect, test } from "vitest";
import { acceptedEncoding } from "./content-encoding.ts";

test.each([
  [undefined, undefined],
  ["", undefined],
  ["identity", undefined],
  ["br", undefined],
  ["gzip", "gzip"],
  ["GZip", "gzip"],
  ["zstd", "zstd"],
  ["gzip, deflate, br, zstd", "zstd"],
  ["gzip;q=1.0, zstd;q=0.5", "gzip"],
  ["gzip;q=0", undefined],
  ["gzip;q=0, zstd;q=0", undefined],
  ["*", "gzip"],
  ["*;q=0", undefined],
  ["*, gzip;q=0", undefined],
  ["gzip;q=0.1, identity;q=0.5", undefined],
  ["gzip;q=x", undefined],
  [",;q=1,,", undefined],
  [`${"x,".repeat(30)}gzip`, undefined],
])("Accept-Encoding %j gives %j", (header, expected) => {
  expect(acceptedEncoding(header)).toBe(expected);
});
