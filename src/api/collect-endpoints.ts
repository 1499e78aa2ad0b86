import { z } from "zod";
import { POST_ITEMS_MAX, SIGNATURE_MS_MAX, type PostCollector } from "../collectors/http/post-collector.ts";
import { REFUSAL_REASONS } from "../collectors/formats/reading.ts";
import { unreachable } from "../lib/unreachable.ts";
import { COLLECT_NAMES, collectScope, type ApiKey, type CollectName } from "../model/key.ts";
import { JSON_TYPE, NDJSON_TYPE, NDJSON_TYPES, type Body, type BodyRules } from "./body.ts";
import { endpoint, type Endpoint } from "./endpoint.ts";
import { data, type ApiResponse } from "./response.ts";
import { invalid, Problem } from "./problems.ts";

// Webhooks of controllers. Some of them cannot set a header: their key is in the path and has only `collect:` scopes.

const TEXT_TYPE = "text/plain";
const BODY_TYPES = [JSON_TYPE, ...NDJSON_TYPES, TEXT_TYPE];

export interface CollectEndpointOptions {
  readonly posts: Pick<PostCollector, "take">;
  readonly bodyBytesMax: number;
}

const resultSchema = z
  .object({
    accepted: z.int().describe("items that became events or flows"),
    nothing: z.int().describe("items that were understood and contain nothing new"),
    refused: z.array(
      z.object({
        index: z.int().describe("index in the body, from 0; empty lines do not count"),
        reason: z.enum(REFUSAL_REASONS),
        message: z.string(),
      }),
    ),
    ids: z.array(z.string()).describe("ids of the stored events"),
  })
  .meta({ id: "CollectAnswer" });

const bodySchema = z.union([
  z.record(z.string(), z.unknown()),
  z.string(),
  z
    .array(z.union([z.record(z.string(), z.unknown()), z.string()]))
    .min(1)
    .max(POST_ITEMS_MAX),
]);

const DESCRIPTION =
  `Names: ${COLLECT_NAMES.map((name) => `\`${name}\``).join(", ")}. An item is a JSON object, or for \`syslog\` a JSON string. The ` +
  `body is one item, an array of items, or one item per line (\`${NDJSON_TYPE}\`, \`${TEXT_TYPE}\`; syslog lines are sent unquoted). ` +
  `A body holds at most ${POST_ITEMS_MAX.toLocaleString("en")} items and \`body_limits.batch_bytes\` bytes. An object is at most ` +
  "`body_limits.submit_bytes` bytes, a line of text at most `collectors.line_bytes_max`. " +
  "The response is sent once the events are durable. A refused item is listed with its reason and does not affect the others. " +
  "If `collectors.access_secret` is set, bodies for `access` must be signed: the header `Signature` is `t=<unix seconds>,v1=<hex>`, " +
  `where \`v1\` is the HMAC-SHA256 of \`<t>.<body>\`. A signature is valid for ${SIGNATURE_MS_MAX / 1000} s and only once.`;

const CALL_EXAMPLE = {
  uuid: "0b6c4a52-6f0e-4c1c-9a51-2f3f0d8f7f11",
  from: "100",
  to: "101",
  direction: "out",
  status: "answered",
  duration: 5,
};
/** An answered call yields two events: its start and its end. */
const EXAMPLE = {
  accepted: 1,
  nothing: 0,
  refused: [],
  ids: ["evt_01a1de53db4c70008000499d449120c4", "evt_01a1de53db4c7000800049a14490ab2f"],
};

export function collectEndpoints({ posts, bodyBytesMax }: CollectEndpointOptions): Endpoint[] {
  const rules: BodyRules = { bytesMax: bodyBytesMax, types: BODY_TYPES, defaultType: JSON_TYPE };
  const common = {
    method: "POST",
    tag: "Collectors",
    scopes: [],
    acceptsSession: false,
    body: bodySchema,
    bodyTypes: BODY_TYPES,
    example: CALL_EXAMPLE,
    requestHeaders: z.object({
      Signature: z
        .string()
        .optional()
        .describe("`t=<unix seconds>,v1=<hex>`; required for `access` if its secret is set"),
    }),
    responses: { 200: { description: "the stored and the refused items", data: resultSchema, example: EXAMPLE } },
    problems: ["not_found"],
  } as const;
  const collect = async (
    name: string,
    key: ApiKey,
    { body, sender, signature }: CollectRequest,
  ): Promise<ApiResponse> => {
    const known = requireName(name);
    requireCollectScope(key, known);
    const read = await body(rules);
    if (!read) throw invalid([{ field: "body", message: "is required" }]);
    const outcome = await posts.take(
      known,
      { isLines: read.type !== JSON_TYPE, bytes: read.bytes },
      { sender, signature: typeof signature === "string" ? signature : undefined },
    );
    switch (outcome.kind) {
      case "taken": {
        const { accepted, nothing, refused, ids } = outcome;
        return data({ accepted, nothing, refused, ids });
      }
      case "malformed":
        throw new Problem("malformed_json", `the body is not JSON: ${outcome.message}`);
      case "unsigned":
        throw new Problem("unauthorized", outcome.message);
      case "empty":
      case "too_many":
        throw invalid([{ field: "body", message: outcome.message }]);
      default:
        return unreachable(outcome);
    }
  };
  return [
    endpoint({
      ...common,
      path: "/v1/collect/:name",
      operationId: "collect",
      summary: "Collect events from a controller or an IDS",
      description: `${DESCRIPTION}\n\nScope: \`events:write\` or \`collect:<name>\`.`,
      params: z.object({ name: z.string() }),
      handle: ({ params, key, readBody, request }) =>
        collect(params.name, key, { body: readBody, sender: request.ip, signature: request.headers.signature }),
    }),
    endpoint({
      ...common,
      path: "/v1/collect/:name/:token",
      operationId: "collectByToken",
      summary: "Collect events from a sender that cannot set a header",
      description:
        "As `POST /v1/collect/{name}`. The token is the full text of a key with only `collect:` scopes. Any other key is refused, " +
        "so that no key with more rights ends up in a URL.",
      keyInPath: true,
      params: z.object({ name: z.string(), token: z.string() }),
      handle: ({ params, key, readBody, request }) =>
        collect(params.name, key, { body: readBody, sender: request.ip, signature: request.headers.signature }),
    }),
  ];
}

interface CollectRequest {
  readonly body: (rules: BodyRules) => Promise<Body | undefined>;
  readonly sender: string;
  readonly signature: string | string[] | undefined;
}

function requireName(name: string): CollectName {
  const known = COLLECT_NAMES.find((one) => one === name);
  if (known) return known;
  throw new Problem("not_found", `there is no collector of this name; use one of ${COLLECT_NAMES.join(", ")}`);
}

function requireCollectScope({ scopes }: ApiKey, name: CollectName): void {
  if (scopes.includes("events:write") || scopes.includes(collectScope(name))) return;
  throw new Problem("forbidden", `the key lacks the scope events:write or ${collectScope(name)}`);
}
