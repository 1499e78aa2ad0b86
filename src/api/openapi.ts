import swagger from "@fastify/swagger";
import swaggerUi from "@fastify/swagger-ui";
import type { FastifyInstance } from "fastify";
import { createJsonSchemaTransform, createJsonSchemaTransformObject } from "fastify-type-provider-zod";
import { readVersion } from "../lib/version.ts";
import { completeDocument, type OpenapiDocument } from "./openapi-document.ts";
import { TAGS, type Endpoint } from "./endpoint.ts";
import { RESPONSE_HEADERS } from "./response-headers.ts";

// The OpenAPI document, generated from the schemas that validate requests, and a documentation page that loads nothing from
// other servers.

export const DOCUMENT_PATH = "/openapi.json";
export const DOCS_PATH = "/docs";

const DESCRIPTION = `Submit, search and export security events of one site; manage detection rules; handle the alerts they create; query
network flows.

Every call under \`/v1\` and \`/api/v1\` requires \`Authorization: Bearer <key>\` or, in a browser, the cookie of \`POST /v1/session\`. Responses are \`{ data, meta }\`; lists add \`pagination\`.
Errors are \`{ error: { code, message, details }, meta }\` and report every fault of the request at once. Times are ISO 8601;
\`from\` is inclusive and \`to\` exclusive. Unknown parameters and body fields are refused. Bodies may be compressed with gzip.
Responses are compressed with zstd or gzip where \`Accept-Encoding\` allows it and it pays; the event stream never is.

Integers in events keep every digit, even beyond 2^53, and are JSON numbers; a parser that reads numbers as doubles rounds them.

Flow responses have no envelope, and their times are milliseconds since 1970. Their errors have the same form as all others.`;

/** Must run before the routes are added, because it records them as they are added. */
export async function collectOpenapi(app: FastifyInstance, endpoints: readonly Endpoint[]): Promise<void> {
  const toComponents = createJsonSchemaTransformObject({});
  await app.register(swagger, {
    openapi: {
      openapi: "3.1.0",
      info: {
        title: "Tocsin",
        version: readVersion(),
        description: DESCRIPTION,
        license: { name: "Apache 2.0", identifier: "Apache-2.0" },
      },
      servers: [{ url: "/", description: "this server" }],
      tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
      components: {
        securitySchemes: { key: { type: "http", scheme: "bearer", description: "an API key: tsn_…" } },
        headers: RESPONSE_HEADERS,
      },
    },
    transform: createJsonSchemaTransform({}),
    transformObject: (document) => completeDocument(toComponents(document) as OpenapiDocument, endpoints) as never,
  });
}

/** Must run after the routes are added. */
export async function serveDocs(app: FastifyInstance): Promise<void> {
  let text: string | undefined;
  app.get(DOCUMENT_PATH, { schema: { hide: true } }, (_request, reply) => {
    text ??= JSON.stringify(app.swagger());
    return reply.type("application/json; charset=utf-8").send(text);
  });
  await app.register(swaggerUi, {
    routePrefix: DOCS_PATH,
    theme: { title: "Tocsin API" },
    uiConfig: { tryItOutEnabled: true, persistAuthorization: false, defaultModelsExpandDepth: 0 },
    staticCSP: {
      "default-src": "'none'",
      "script-src": "'self'",
      "style-src": "'self' 'unsafe-inline'",
      "img-src": "'self' data:",
      "font-src": "'self' data:",
      "connect-src": "'self'",
      "base-uri": "'none'",
      "form-action": "'none'",
      "frame-ancestors": "'none'",
    },
  });
}
