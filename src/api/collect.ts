import { z } from "zod";
import { POST_ITEMS_MAX, SIGNATURE_MS_MAX, type Posts } from "../collectors/posts.ts";
import { REFUSAL_REASONS } from "../collectors/reading.ts";
import { COLLECT_NAMES, collectScope, type ApiKey, type CollectName } from "../model/key.ts";
import { JSON_TYPE, NDJSON_TYPE, NDJSON_TYPES, type Body, type BodyRules } from "./body.ts";
import { data, endpoint, type Answer, type Endpoint } from "./endpoint.ts";
import { invalid, Problem } from "./problems.ts";

// Where controllers post what happens. Some of them can set no header: their key stands in the path and can do nothing else.

const TEXT_TYPE = "text/plain";
const BODY_TYPES = [JSON_TYPE, ...NDJSON_TYPES, TEXT_TYPE];

export interface CollectEndpointOptions {
  readonly posts: Pick<Posts, "take">;
  readonly bodyBytesMax: number;
}

const answerSchema = z
  .object({
    accepted: z.int().describe("things that became events or flows"),
    nothing: z.int().describe("things that were understood and say nothing new"),
    refused: z.array(
      z.object({
        index: z.int().describe("place in the body, from 0; empty lines do not count"),
        reason: z.enum(REFUSAL_REASONS),
        message: z.string(),
      }),
    ),
    ids: z.array(z.string()).describe("of the events that were stored"),
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

const ABOUT =
  `Names: ${COLLECT_NAMES.map((name) => `\`${name}\``).join(", ")}. A thing is a JSON object, for \`syslog\` a JSON string. One of ` +
  `them, an array of them, or one on each line (\`${NDJSON_TYPE}\`, \`${TEXT_TYPE}\`), where a line of syslog stands as it is. At most ` +
  `${POST_ITEMS_MAX.toLocaleString("en")} things in one body, which is as large as \`body_limits.batch_bytes\` says at most; an object ` +
  "is at most as large as a submission (`body_limits.submit_bytes`), a line of text as `collectors.line_bytes_max` says. " +
  "Answered once what came of it is durable; what was refused is named with its reason and does not touch the rest. " +
  "With `collectors.access_secret` set, bodies for `access` must be signed: the header `Signature` is `t=<unix seconds>,v1=<hex>`, " +
  `the HMAC-SHA256 of \`<t>.<body>\`, not older than ${SIGNATURE_MS_MAX / 1000} s and never sent before.`;

const CALL_EXAMPLE = {
  uuid: "0b6c4a52-6f0e-4c1c-9a51-2f3f0d8f7f11",
  from: "100",
  to: "101",
  direction: "out",
  status: "answered",
  duration: 5,
};
/** Of a call that was answered: that it began, and that it ended. */
const EXAMPLE = {
  accepted: 1,
  nothing: 0,
  refused: [],
  ids: ["evt_01a1de53db4c70008000499d449120c4", "evt_01a1de53db4c7000800049a14490ab2f"],
};

export function collectEndpoints({ posts, bodyBytesMax }: CollectEndpointOptions): Endpoint[] {
  const rules: BodyRules = { bytesMax: bodyBytesMax, types: BODY_TYPES, assumed: JSON_TYPE };
  const common = {
    method: "POST",
    tag: "Collectors",
    scopes: [],
    body: bodySchema,
    bodyTypes: BODY_TYPES,
    example: CALL_EXAMPLE,
    requestHeaders: z.object({
      Signature: z.string().optional().describe("t=<unix seconds>,v1=<hex>: of access, where a secret is set for it"),
    }),
    answers: { 200: { about: "what became of it", data: answerSchema, example: EXAMPLE } },
    problems: ["not_found"],
  } as const;
  const take = async (name: string, key: ApiKey, { body, sender, signature }: Taken): Promise<Answer> => {
    const known = requireName(name);
    requireRight(key, known);
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
    }
  };
  return [
    endpoint({
      ...common,
      path: "/v1/collect/:name",
      operationId: "collect",
      summary: "Post what a controller or an IDS says",
      about: `${ABOUT}\n\nScope: \`events:write\` or \`collect:<name>\`.`,
      params: z.object({ name: z.string() }),
      handle: ({ params, key, readBody, request }) =>
        take(params.name, key, { body: readBody, sender: request.ip, signature: request.headers.signature }),
    }),
    endpoint({
      ...common,
      path: "/v1/collect/:name/:token",
      operationId: "collectByToken",
      summary: "The same for senders that cannot set a header",
      about:
        "The token is the full text of a key that has `collect:` scopes and no other; any other key is refused here, so " +
        "that none that can do more stands in an address.",
      keyInPath: true,
      params: z.object({ name: z.string(), token: z.string() }),
      handle: ({ params, key, readBody, request }) =>
        take(params.name, key, { body: readBody, sender: request.ip, signature: request.headers.signature }),
    }),
  ];
}

interface Taken {
  readonly body: (rules: BodyRules) => Promise<Body | undefined>;
  readonly sender: string;
  readonly signature: string | string[] | undefined;
}

function requireName(name: string): CollectName {
  const known = COLLECT_NAMES.find((one) => one === name);
  if (known) return known;
  throw new Problem("not_found", `there is no collector of this name; there are ${COLLECT_NAMES.join(", ")}`);
}

function requireRight({ scopes }: ApiKey, name: CollectName): void {
  if (scopes.includes("events:write") || scopes.includes(collectScope(name))) return;
  throw new Problem("forbidden", `the key lacks the scope events:write or ${collectScope(name)}`);
}
