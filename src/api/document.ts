import { CONDITION_ITEMS_MAX } from "../model/rule-schema.ts";
import { JSON_TYPE, NDJSON_TYPE, NDJSON_TYPES } from "./body.ts";
import type { Endpoint } from "./endpoint.ts";
import { COMPONENTS, reference, visit, type Schema } from "./document-schema.ts";
import { nameShapes } from "./document-shapes.ts";
import type { HeaderName } from "./headers.ts";

// What the schemas of single calls cannot say of the OpenAPI document: the headers of every answer, examples,
// what a filter is, and which of the generated shapes anyone refers to.

interface Content {
  [mediaType: string]: { schema: Schema; example?: unknown };
}
interface Operation {
  requestBody?: { required?: boolean; content: Content };
  responses: Record<string, { headers?: object; content?: Content }>;
}
export interface OpenapiDocument {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema> };
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
  dropUnused(document);
  nameShapes(document);
  return document;
}

function openapiPath(path: string): string {
  return path.replaceAll(/:(\w+)/g, "{$1}");
}

function addHeaders(operation: Operation, limited: boolean, own: Endpoint["headers"] = {}): void {
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

/** Names of the same media type: the document has one, since generators make a method or a warning of each. */
const OTHER_NDJSON_TYPES = NDJSON_TYPES.filter((type) => type !== NDJSON_TYPE);
const ABOUT_LINES = "one of the items on each line";
const ABOUT_NDJSON = `${ABOUT_LINES}; also as ${OTHER_NDJSON_TYPES.join(", ")}`;

function completeOperation({ requestBody, responses }: Operation, spec: Endpoint): void {
  if (requestBody) {
    if (spec.bodyOptional) requestBody.required = false;
    // All media types come with one and the same object: each gets its own.
    for (const [type, { schema }] of Object.entries(requestBody.content)) {
      if (OTHER_NDJSON_TYPES.includes(type)) {
        delete requestBody.content[type];
        continue;
      }
      requestBody.content[type] =
        type === JSON_TYPE
          ? { schema, ...(spec.example !== undefined && { example: spec.example }) }
          : { schema: { type: "string", description: type === NDJSON_TYPE ? ABOUT_NDJSON : ABOUT_LINES } };
    }
  }
  for (const [status, { content = {} }] of Object.entries(responses)) {
    const answer = spec.answers[Number(status)];
    const json = content["application/json"];
    if (!answer || !json || !("example" in answer)) continue;
    if ("bare" in answer) {
      json.example = answer.example;
      continue;
    }
    json.example = {
      data: answer.example,
      meta: EXAMPLE_META,
      ...(answer.paginated && { pagination: { total: 1, page: 1, per_page: 50, total_pages: 1 } }),
    };
  }
}

const EXAMPLE_META = { request_id: "req_019a84f2c0d17a3e8b5d4e6f7a8b9c0d", timestamp: "2026-11-15T08:30:00.000Z" };

/** A filter is told apart by hand, which a generator cannot see. */
function describeFilters(schemas: Record<string, Schema>): void {
  for (const suffix of ["", "Input"]) {
    if (!(`Filter${suffix}` in schemas)) continue;
    schemas[`Filter${suffix}`] = {
      description: "a test on a field, a keyword, or a bool of filters",
      anyOf: ["FieldTest", "Keyword", "BoolFilter"].map((name) => reference(`${name}${suffix}`)),
    };
    schemas[`BoolFilter${suffix}`] = wrapped("bool", reference(`Bool${suffix}`));
  }
}

/** An object with one property. */
function wrapped(name: string, inner: Schema): Schema {
  return { type: "object", properties: { [name]: inner }, required: [name], additionalProperties: false };
}

/** So is a condition of a rule. */
function describeConditions(schemas: Record<string, Schema>): void {
  for (const suffix of ["", "Input"]) {
    const name = `Condition${suffix}`;
    if (!(name in schemas)) continue;
    const itself = reference(name);
    const several = { type: "array", items: itself, minItems: 1, maxItems: CONDITION_ITEMS_MAX };
    schemas[name] = {
      description: "a test on a field, a keyword, or any, all or not of conditions",
      anyOf: ["FieldTest", "Keyword", "AnyCondition", "AllCondition", "NotCondition"].map((one) =>
        reference(`${one}${suffix}`),
      ),
    };
    schemas[`AnyCondition${suffix}`] = wrapped("any", several);
    schemas[`AllCondition${suffix}`] = wrapped("all", several);
    schemas[`NotCondition${suffix}`] = wrapped("not", itself);
  }
}

/** Every shape is generated twice, as input and as output: the one that nobody refers to goes, the other gets its plain name. */
function dropUnused(document: OpenapiDocument): void {
  const { schemas } = document.components;
  const asked = new Set<string>();
  const told = new Set<string>();
  for (const operation of Object.values(document.paths).flatMap((operations) => Object.values(operations))) {
    const { responses, ...request } = operation;
    // The shape of a whole body is named as an output, of all things.
    visit(request, (node) => {
      const name = `${String(node["$ref"]).slice(COMPONENTS.length)}Input`;
      if (name in schemas) node["$ref"] = `${COMPONENTS}${name}`;
    });
    collect(request, schemas, asked);
    collect(responses, schemas, told);
    allowMore(responses);
  }
  for (const name of Object.keys(schemas)) {
    if (!asked.has(name) && !told.has(name)) delete schemas[name];
    else if (!asked.has(name)) allowMore(schemas[name]);
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

function collect(from: unknown, schemas: Record<string, Schema>, found: Set<string>): void {
  visit(from, ({ $ref: target }) => {
    if (typeof target !== "string" || !target.startsWith(COMPONENTS)) return;
    const name = target.slice(COMPONENTS.length);
    if (found.has(name)) return;
    found.add(name);
    collect(schemas[name], schemas, found);
  });
}

/** An answer may get more fields in time: a client must not be told that it never will. */
function allowMore(from: unknown): void {
  visit(from, (node) => {
    if (node["additionalProperties"] === false) delete node["additionalProperties"];
  });
}
