import { CONDITION_ITEMS_MAX } from "../model/rule-schema.ts";
import { JSON_TYPE, NDJSON_TYPE, NDJSON_TYPES } from "./body.ts";
import type { Endpoint } from "./endpoint.ts";
import { COMPONENTS, reference, visit, type OpenapiSchema } from "./openapi-schema.ts";
import { nameClientTypes } from "./openapi-client-types.ts";
import type { HeaderName } from "./response-headers.ts";

// Completes the OpenAPI document with the parts that the schemas of single endpoints cannot express: response headers,
// examples, filters and conditions. It also removes unused schemas.

interface Content {
  [mediaType: string]: { schema: OpenapiSchema; example?: unknown };
}
interface OpenapiOperation {
  requestBody?: { required?: boolean; content: Content };
  responses: Record<string, { headers?: object; content?: Content }>;
}
export interface OpenapiDocument {
  paths: Record<string, Record<string, OpenapiOperation>>;
  components: { schemas: Record<string, OpenapiSchema> };
}

export function completeDocument(document: OpenapiDocument, endpoints: readonly Endpoint[]): OpenapiDocument {
  for (const [path, operations] of Object.entries(document.paths)) {
    for (const [method, operation] of Object.entries(operations)) {
      const spec = endpoints.find(
        (endpoint) => endpoint.method.toLowerCase() === method && openapiPath(endpoint.path) === path,
      );
      addHeaders(operation, /^(\/api)?\/v1\//.test(path), spec?.headers);
      if (spec) completeOperation(operation, spec);
    }
  }
  describeFilters(document.components.schemas);
  describeConditions(document.components.schemas);
  removeUnusedSchemas(document);
  nameClientTypes(document);
  sortSchemas(document);
  return document;
}

/** The order would otherwise be that in which this process has loaded the schemas, and the document would differ with it. */
function sortSchemas({ components }: OpenapiDocument): void {
  const byName = Object.entries(components.schemas).sort(([a], [b]) => (a < b ? -1 : 1));
  components.schemas = Object.fromEntries(byName);
}

function openapiPath(path: string): string {
  return path.replaceAll(/:(\w+)/g, "{$1}");
}

function addHeaders(operation: OpenapiOperation, limited: boolean, own: Endpoint["headers"] = {}): void {
  for (const [status, response] of Object.entries(operation.responses)) {
    const names: HeaderName[] = limited
      ? ["X-Request-Id", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"]
      : ["X-Request-Id"];
    if (status === "401") names.push("WWW-Authenticate");
    if (status === "429" || status === "503") names.push("Retry-After");
    names.push(...(own[Number(status)] ?? []));
    response.headers = Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
  }
}

/** Aliases of the media type. The document lists only one, because generators emit a method or a warning for each. */
const OTHER_NDJSON_TYPES = NDJSON_TYPES.filter((type) => type !== NDJSON_TYPE);
const LINES_DESCRIPTION = "one item per line";
const NDJSON_DESCRIPTION = `${LINES_DESCRIPTION}; also accepted as ${OTHER_NDJSON_TYPES.join(", ")}`;

function completeOperation({ requestBody, responses }: OpenapiOperation, spec: Endpoint): void {
  if (requestBody) {
    if (spec.bodyOptional) requestBody.required = false;
    // All media types share one object here; each gets its own.
    for (const [type, { schema }] of Object.entries(requestBody.content)) {
      if (OTHER_NDJSON_TYPES.includes(type)) {
        delete requestBody.content[type];
        continue;
      }
      // The example of a body with several types is JSON.
      const hasExample = type === JSON_TYPE ? spec.example !== undefined : typeof spec.example === "string";
      requestBody.content[type] = {
        schema:
          type === JSON_TYPE
            ? schema
            : { type: "string", description: type === NDJSON_TYPE ? NDJSON_DESCRIPTION : LINES_DESCRIPTION },
        ...(hasExample && { example: spec.example }),
      };
    }
  }
  for (const [status, { content = {} }] of Object.entries(responses)) {
    const specified = spec.responses[Number(status)];
    const json = content["application/json"];
    if (!specified || !json || !("example" in specified)) continue;
    if ("bare" in specified) {
      json.example = specified.example;
      continue;
    }
    json.example = {
      data: specified.example,
      meta: EXAMPLE_META,
      ...("data" in specified &&
        specified.paginated && { pagination: { total: 1, page: 1, per_page: 50, total_pages: 1 } }),
    };
  }
}

const EXAMPLE_META = { request_id: "req_019a84f2c0d17a3e8b5d4e6f7a8b9c0d", timestamp: "2026-11-15T08:30:00.000Z" };

/** The filters of each search, by the prefix of their names, and what they are besides a bool of filters. */
const FILTERS = [
  { prefix: "", tests: ["FieldTest", "Keyword"], description: "a field test, a keyword, or a bool of filters" },
  { prefix: "Alert", tests: ["FieldTest"], description: "a field test, or a bool of filters" },
] as const;

/** Describes the filter unions, which handwritten schemas parse and the generator cannot see. */
function describeFilters(schemas: Record<string, OpenapiSchema>): void {
  for (const { prefix, tests, description } of FILTERS) {
    for (const suffix of ["", "Input"]) {
      const name = `${prefix}Filter${suffix}`;
      if (!(name in schemas)) continue;
      const boolName = `${prefix}BoolFilter${suffix}`;
      schemas[name] = {
        description,
        anyOf: [...tests.map((test) => reference(`${test}${suffix}`)), reference(boolName)],
      };
      schemas[boolName] = singlePropertyObject("bool", reference(`${prefix}Bool${suffix}`));
    }
  }
}

function singlePropertyObject(name: string, inner: OpenapiSchema): OpenapiSchema {
  return { type: "object", properties: { [name]: inner }, required: [name], additionalProperties: false };
}

/** Describes the condition union of rules in the same way. */
function describeConditions(schemas: Record<string, OpenapiSchema>): void {
  for (const suffix of ["", "Input"]) {
    const name = `Condition${suffix}`;
    if (!(name in schemas)) continue;
    const itself = reference(name);
    const several = { type: "array", items: itself, minItems: 1, maxItems: CONDITION_ITEMS_MAX };
    schemas[name] = {
      description: "a field test, a keyword, or any, all or not over conditions",
      anyOf: ["FieldTest", "Keyword", "AnyCondition", "AllCondition", "NotCondition"].map((one) =>
        reference(`${one}${suffix}`),
      ),
    };
    schemas[`AnyCondition${suffix}`] = singlePropertyObject("any", several);
    schemas[`AllCondition${suffix}`] = singlePropertyObject("all", several);
    schemas[`NotCondition${suffix}`] = singlePropertyObject("not", itself);
  }
}

/** Every schema is generated twice, as input and as output. The unused one is removed, the other gets the plain name. */
function removeUnusedSchemas(document: OpenapiDocument): void {
  const { schemas } = document.components;
  const requestNames = new Set<string>();
  const responseNames = new Set<string>();
  for (const operation of Object.values(document.paths).flatMap((operations) => Object.values(operations))) {
    const { responses, ...request } = operation;
    // The generator refers to the output schema for a whole request body.
    visit(request, (node) => {
      const name = `${String(node["$ref"]).slice(COMPONENTS.length)}Input`;
      if (name in schemas) node["$ref"] = `${COMPONENTS}${name}`;
    });
    collectReferences(request, schemas, requestNames);
    collectReferences(responses, schemas, responseNames);
    allowAdditionalProperties(responses);
  }
  for (const name of Object.keys(schemas)) {
    if (!requestNames.has(name) && !responseNames.has(name)) delete schemas[name];
    else if (!requestNames.has(name)) allowAdditionalProperties(schemas[name]);
  }
  for (const name of Object.keys(schemas)) {
    const plain = name.replace(/Input$/, "");
    if (plain === name || plain in schemas) continue;
    schemas[plain] = schemas[name]!;
    delete schemas[name];
    visit(document, (node) => {
      if (node["$ref"] === `${COMPONENTS}${name}`) node["$ref"] = `${COMPONENTS}${plain}`;
    });
  }
}

function collectReferences(from: unknown, schemas: Record<string, OpenapiSchema>, found: Set<string>): void {
  visit(from, ({ $ref: target }) => {
    if (typeof target !== "string" || !target.startsWith(COMPONENTS)) return;
    const name = target.slice(COMPONENTS.length);
    if (found.has(name)) return;
    found.add(name);
    collectReferences(schemas[name], schemas, found);
  });
}

/** Responses may get more fields later, so their schemas must not rule them out. */
function allowAdditionalProperties(from: unknown): void {
  visit(from, (node) => {
    if (node["additionalProperties"] === false) delete node["additionalProperties"];
  });
}
