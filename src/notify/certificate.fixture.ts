import { generateKeyPairSync, sign } from "node:crypto";

const DAY_MS = 86_400_000;
const OID = {
  ecdsaWithSha256: "06082a8648ce3d040302",
  commonName: "0603550403",
  alternativeNames: "0603551d11",
  basicConstraints: "0603551d13",
};

/** A fresh self-signed certificate for 127.0.0.1 and localhost: a stored one could expire or leak. */
export function makeCertificate(): { readonly key: string; readonly certificate: string } {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const algorithm = der(0x30, hex(OID.ecdsaWithSha256));
  const name = der(0x30, der(0x31, der(0x30, hex(OID.commonName), der(0x0c, Buffer.from("tocsin test")))));
  const time = (ms: number) =>
    der(0x17, Buffer.from(`${new Date(ms).toISOString().replace(/[-:T]/g, "").slice(2, 14)}Z`));
  const names = der(0x30, der(0x87, Buffer.from([127, 0, 0, 1])), der(0x82, Buffer.from("localhost")));
  const constraints = der(0x30, der(0x01, Buffer.from([0xff])));
  const extensions = der(
    0x30,
    der(0x30, hex(OID.alternativeNames), der(0x04, names)),
    der(0x30, hex(OID.basicConstraints), der(0x01, Buffer.from([0xff])), der(0x04, constraints)),
  );
  const body = der(
    0x30,
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.from([1])),
    algorithm,
    name,
    der(0x30, time(Date.now() - DAY_MS), time(Date.now() + DAY_MS)),
    name,
    publicKey.export({ type: "spki", format: "der" }),
    der(0xa3, extensions),
  );
  const signature = der(0x03, Buffer.from([0]), sign("sha256", body, privateKey));
  // Signatures vary in length, and an empty last line is rejected.
  const lines = der(0x30, body, algorithm, signature)
    .toString("base64")
    .match(/.{1,64}/g)!;
  return {
    key: privateKey.export({ type: "pkcs8", format: "pem" }) as string,
    certificate: `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`,
  };
}

function der(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

function hex(text: string): Buffer {
  return Buffer.from(text, "hex");
}
