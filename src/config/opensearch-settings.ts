import { z } from "zod";
import { choice, credentialOrOff, fileOr, integer, list, onOff, textOrOff } from "../lib/setting-types.ts";

// The settings `opensearch`.

const ADDRESSES_MAX = 32;

/** Credentials in an address would appear in logs: they have settings of their own. */
function isNodeAddress(item: string): boolean {
  const url = URL.parse(item);
  return (
    url !== null && /^https?:$/.test(url.protocol) && url.username === "" && url.password === "" && url.search === ""
  );
}

export const openSearchSettings = z.strictObject({
  addresses: list(isNodeAddress, {
    about: "nodes of OpenSearch; requests are spread over those that answer",
    items: "URLs that start with http:// or https://, without user or password",
    fallback: ["http://127.0.0.1:9200"],
    min: 1,
    max: ADDRESSES_MAX,
  }),
  username: textOrOff("user at OpenSearch", "a name"),
  password: credentialOrOff("password of that user"),
  passwordFile: fileOr("off", "file with the password of that user; read again when OpenSearch refuses it"),
  tokenFile: fileOr("off", "file with a bearer token instead of a user; read again when OpenSearch refuses it"),
  tlsCa: fileOr("system", "certificate authorities of OpenSearch's nodes, in PEM"),
  tlsCertificate: fileOr("off", "client certificate for OpenSearch, in PEM"),
  tlsKey: fileOr("off", "private key of that certificate, in PEM"),
  awsRegion: textOrOff(
    "region of a managed OpenSearch at AWS; requests are then signed with the credentials of AWS_ACCESS_KEY_ID or of the AWS profile",
    "a region, such as eu-central-1",
    /^[a-z]{2}(-[a-z]+)+-\d$/,
  ),
  awsService: choice("what the signature is for: es, a domain; aoss, a serverless collection", "es", ["es", "aoss"]),
  timeoutSeconds: integer("timeout of a request to OpenSearch", 30, 1, 600),
  retriesMax: integer("how often a request is repeated, at the next node, that met a busy or missing one", 3, 0, 20),
  connectionsMax: integer("open connections per address", 32, 1, 1000),
  compression: onOff("compress requests and answers", "off"),
  shards: integer("primary shards of a daily index that is created from now on", 1, 1, 64),
  replicas: integer("copies of each shard besides the primary; 0 loses data with a node", 1, 0, 10),
});
