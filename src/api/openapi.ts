import swagger from "@fastify/swagger";
import swaggerUi from "@fastify/swagger-ui";
import type { FastifyInstance } from "fastify";
import { createJsonSchemaTransform, createJsonSchemaTransformObject } from "fastify-type-provider-zod";
import { readVersion } from "../lib/version.ts";

// The OpenAPI document, from the very schemas that check the requests, and a page to read it that asks
// nothing of any other server.

export const DOCUMENT_PATH = "/openapi.json";
export const DOCS_PATH = "/docs";

const ABOUT = `Events of a site's network, cameras, doors and phones: submitted, kept, searched and exported.

Every call under \`/v1\` needs \`Authorization: Bearer <key>\`. Answers are \`{ data, meta }\`, lists add \`pagination\`;
errors are \`{ error: { code, message, details }, meta }\` with every fault of the request at once. Times are ISO 8601;
\`from\` is inclusive and \`to\` exclusive. An unknown parameter or body field is an error. Bodies may be gzipped.`;

/** Before the routes, since it listens to their being added. */
export async function collectOpenapi(app: FastifyInstance): Promise<void> {
  const toComponents = createJsonSchemaTransformObject({});
  await app.register(swagger, {
    openapi: {
      openapi: "3.1.0",
      info: {
        title: "Tocsin",
        version: readVersion(),
        description: ABOUT,
        license: { name: "Apache 2.0", identifier: "Apache-2.0" },
      },
      servers: [{ url: "/", description: "this server" }],
      tags: [
        { name: "Events", description: "what happened" },
        { name: "Exports", description: "events as files" },
        { name: "Keys", description: "who may ask" },
        { name: "Service", description: "for those who run it" },
      ],
      components: {
        securitySchemes: { key: { type: "http", scheme: "bearer", description: "an API key: tsn_…" } },
        headers: HEADERS,
      },
    },
    transform: createJsonSchemaTransform({}),
    transformObject: (document) => complete(toComponents(document) as OpenapiDocument) as never,
  });
}

/** After the routes. */
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

interface OpenapiDocument {
  paths: Record<string, Record<string, { responses: Record<string, { headers?: object }>; security?: object[] }>>;
  components: { schemas: Record<string, object> };
}

const whole = { type: "integer" } as const;
const HEADERS = {
  "X-Request-Id": { description: "the same as meta.request_id", schema: { type: "string" } },
  "X-RateLimit-Limit": { description: "requests in the window with the least remaining", schema: whole },
  "X-RateLimit-Remaining": { description: "requests left in that window", schema: whole },
  "X-RateLimit-Reset": { description: "when that window ends, in seconds since 1970", schema: whole },
  "Retry-After": { description: "seconds to wait", schema: whole },
} as const;

/** What the schemas of single calls cannot say: the headers of every answer, and what a filter is. */
function complete(document: OpenapiDocument): OpenapiDocument {
  const headersFor = (status: string, limited: boolean) => {
    const names = limited
      ? ["X-Request-Id", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"]
      : ["X-Request-Id"];
    if (status === "429" || status === "503") names.push("Retry-After");
    return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
  };
  for (const [path, operations] of Object.entries(document.paths)) {
    for (const { responses } of Object.values(operations)) {
      for (const [status, response] of Object.entries(responses)) {
        response.headers = headersFor(status, path.startsWith("/v1/"));
      }
    }
  }
  for (const name of ["Filter", "FilterInput"]) {
    if (!(name in document.components.schemas)) continue;
    const suffix = name.slice("Filter".length);
    document.components.schemas[name] = {
      description: "a test on a field, or a bool of filters",
      anyOf: [
        { $ref: `#/components/schemas/FieldTest${suffix}` },
        {
          type: "object",
          properties: { bool: { $ref: `#/components/schemas/Bool${suffix}` } },
          required: ["bool"],
          additionalProperties: false,
        },
      ],
    };
  }
  return document;
}
