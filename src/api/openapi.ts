import swagger from "@fastify/swagger";
import swaggerUi from "@fastify/swagger-ui";
import type { FastifyInstance } from "fastify";
import { createJsonSchemaTransform, createJsonSchemaTransformObject } from "fastify-type-provider-zod";
import { readVersion } from "../lib/version.ts";
import { completeDocument, type OpenapiDocument } from "./document.ts";
import type { Endpoint } from "./endpoint.ts";
import { ANSWER_HEADERS } from "./headers.ts";

// The OpenAPI document, from the very schemas that check the requests, and a page to read it that asks
// nothing of any other server.

export const DOCUMENT_PATH = "/openapi.json";
export const DOCS_PATH = "/docs";

const ABOUT = `Events of a site's network, cameras, doors and phones: submitted, kept, searched and exported; rules that run over
them; and the alerts that rules make of them.

Every call under \`/v1\` and \`/api/v1\` needs \`Authorization: Bearer <key>\`. Answers are \`{ data, meta }\`, lists add \`pagination\`;
errors are \`{ error: { code, message, details }, meta }\` with every fault of the request at once. Times are ISO 8601;
\`from\` is inclusive and \`to\` exclusive. An unknown parameter or body field is an error. Bodies may be gzipped.

Whole numbers in events keep every digit, also beyond 2^53, and are JSON numbers: a parser that reads numbers as doubles rounds them.

Answers about flows have no envelope, and their times are milliseconds since 1970; their errors are as everywhere.`;

/** Before the routes, since it listens to their being added. */
export async function collectOpenapi(app: FastifyInstance, endpoints: readonly Endpoint[]): Promise<void> {
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
        { name: "Alerts", description: "what a person handles" },
        { name: "Rules", description: "what makes an alert of events" },
        { name: "Stream", description: "what changes, as it changes" },
        { name: "Flows", description: "who talks to whom, minute by minute" },
        { name: "Collectors", description: "what devices send by themselves, and how that goes" },
        { name: "Keys", description: "who may ask" },
        { name: "Service", description: "for those who run it" },
      ],
      components: {
        securitySchemes: { key: { type: "http", scheme: "bearer", description: "an API key: tsn_…" } },
        headers: ANSWER_HEADERS,
      },
    },
    transform: createJsonSchemaTransform({}),
    transformObject: (document) => completeDocument(toComponents(document) as OpenapiDocument, endpoints) as never,
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
