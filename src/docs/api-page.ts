import { PROBLEMS } from "../api/problems.ts";
import { settingEntries } from "../config/config.ts";
import { OPERATOR_NAMES, OPERATORS } from "../model/condition.ts";
import { CLASSES, SEVERITIES, sourceNames, WELL_KNOWN_FIELDS } from "../model/event.ts";
import { PLANS, SCOPES, type Scope } from "../model/key.ts";
import { code, markdownTable } from "./markdown.ts";

// docs/api.md, from the OpenAPI document of the service and from the tables it is built on.

type Schema = { readonly [keyword: string]: unknown };

interface Operation {
  readonly summary?: string;
  readonly description?: string;
  readonly tags?: readonly string[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content?: Record<string, { schema?: Schema }>; readonly required?: boolean };
  readonly responses?: Record<
    string,
    { description?: string; headers?: object; content?: Record<string, { schema?: Schema }> }
  >;
}

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly description?: string;
  readonly schema?: Schema;
}

export interface OpenApiDocument {
  readonly paths: Record<string, Record<string, Operation>>;
  readonly components?: { readonly schemas?: Record<string, Schema> };
}

export function apiPage(document: OpenApiDocument): string {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ title: `${method.toUpperCase()} ${path}`, operation })),
  );
  return `# The API

Printed by \`npm run docs\` from the code; change that, not this page. A running service has the same as OpenAPI 3.1 at
\`/openapi.json\` and as a page to try things on at \`/docs\`.

Every request to \`/v1\` and \`/api/v1\` carries \`Authorization: Bearer <key>\`. Answers are JSON: \`data\`, \`meta\` (the request id
and the time) and on lists \`pagination\`; those about flows have no envelope. Times are ISO 8601; those that are returned are UTC.
An unknown parameter or field is refused, never ignored. \`/healthz\`, \`/readyz\`, \`/metrics\`, \`/docs\` and \`/openapi.json\` need no key,
count for no limit and look at no parameters.

A body may be gzipped (\`Content-Encoding: gzip\`). Unpacked it is at most as large as the settings \`body_limits\` say: by default
${defaultOf("body_limits.submit_bytes")} bytes, and ${defaultOf("body_limits.batch_bytes")} of a batch, an import of rules and what is collected.

## Numbers

Whole numbers keep every digit, also beyond 2^53: in events, filters and conditions of rules, in sorting, terms, cardinality, \`min\` and
\`max\`, and in exports. They are JSON numbers in both directions; a client whose parser reads numbers as doubles, as JavaScript's
\`JSON.parse\` does, rounds them. One that was sent with an exponent may come back with all its digits. \`sum\`, \`avg\` and histograms
use the nearest double, and so do Parquet's columns of well-known numeric fields; its \`raw\` column is exact.

Numbers with a fraction are doubles, which keep about 17 digits. A number that neither is whole nor fits a double, such as \`1e400\` or
\`12345678901234567.5\`, is stored as a string of the same characters. Half a surrogate pair in a string becomes U+FFFD. A key that
occurs twice in an object is refused if the values differ.

## Calls

${markdownTable(
  ["call", "what it does"],
  operations.map(({ title, operation }) => [`[${title}](#${anchor(title)})`, operation.summary ?? ""]),
)}

${operations.map(({ title, operation }) => operationSection(title, operation, document)).join("\n\n")}

## Shapes

${shapeSections(document)}

## Errors

Every error has the same body: \`error.code\`, \`error.message\`, \`error.details\` (one entry for each fault of the request,
with its \`field\` as a path) and \`meta\`.

${markdownTable(
  ["status", "code", "meaning"],
  Object.entries(PROBLEMS).map(([name, { status, meaning }]) => [String(status), code(name), meaning]),
)}

## Fields and operators

An event has ${code("id")}, ${code("type")}, ${code("source")}, ${code("class")} (${CLASSES.join(", ")}), ${code("severity")}
(${SEVERITIES.join(", ")}), ${code("timestamp")}, ${code("raw")} and ${code("enrichment")}. Sources are ${sourceNames(
    "<platform>",
  )
    .map(code)
    .join(
      ", ",
    )}. A path such as ${code("raw.src_ip")} reaches into ${code("raw")} and ${code("enrichment")} at any depth and
looks at every element of an array on its way.

A filter is \`{ "field": <path>, <operator>: <value> }\`:

${markdownTable(
  ["operator", "holds when", "`ignore_case`"],
  OPERATOR_NAMES.map((name) => [code(name), OPERATORS[name].about, "ignoresCase" in OPERATORS[name] ? "yes" : "no"]),
)}

These paths are kept as columns of their own, so that filters and aggregations on them answer fastest:
${Object.keys(WELL_KNOWN_FIELDS).map(code).join(", ")}.

## Keys, scopes and limits

A key has one or more scopes. A call that lacks one is answered with 403, and the message names it.

${markdownTable(
  ["scope", "opens"],
  SCOPES.map((scope) => [code(scope), scopeWords(scope)]),
)}

${markdownTable(
  ["plan", "requests a minute", "requests a UTC day"],
  PLANS.map((plan) => [plan, defaultOf(`plans.${plan}.per_minute`), defaultOf(`plans.${plan}.per_day`)]),
)}

These are the defaults of the settings \`plans\`. \`X-RateLimit-Limit\`, \`X-RateLimit-Remaining\` and \`X-RateLimit-Reset\`
(epoch seconds) on every answer of \`/v1\` and \`/api/v1\` describe the window with the least left; 429 adds \`Retry-After\`.
`;
}

type CollectorScope = Extract<Scope, `collect:${string}`>;

const SCOPE_WORDS: Record<Exclude<Scope, CollectorScope>, string> = {
  "events:read":
    "events, one by one, in lists, searches, exports and `/v1/stream`; flows; what `/v1/collectors` and `/v1/enrichment` say",
  "events:write": "submitting events; all of `/v1/collect`",
  "alerts:read": "alerts with their events, in lists and `/v1/stream`; their totals; notifications",
  "alerts:write": "moving, commenting and judging alerts; sending notifications again",
  "rules:read": "rules; with `events:read` simulations",
  "rules:write":
    "making, importing, changing and deleting rules and exceptions; with `alerts:write` resolving an alert with an exception",
  "keys:manage":
    "keys: listing all; making, rotating and revoking those that are no stronger than itself in scopes, plan and expiry",
};

function scopeWords(scope: Scope): string {
  return scope in SCOPE_WORDS
    ? SCOPE_WORDS[scope as keyof typeof SCOPE_WORDS]
    : `\`POST /v1/collect/${scope.slice(scope.indexOf(":") + 1)}\``;
}

function operationSection(title: string, operation: Operation, document: OpenApiDocument): string {
  const parts = [`### ${title}`, `${operation.summary ?? ""}.`.replace("?.", "?"), operation.description ?? ""];
  const parameters = operation.parameters ?? [];
  if (parameters.length > 0) {
    parts.push(
      markdownTable(
        ["parameter", "in", "value", "notes"],
        parameters.map(({ name, in: place, required, schema = {}, description }) => [
          code(name),
          place + (required ? ", required" : ""),
          valueWords(schema),
          description ?? String(schema["description"] ?? ""),
        ]),
      ),
    );
  }
  const bodies = Map.groupBy(Object.entries(operation.requestBody?.content ?? {}), ([, { schema }]) =>
    JSON.stringify(schema),
  );
  for (const same of bodies.values()) {
    const [, { schema }] = same[0]!;
    const rows = schema ? fieldRows(schema, document) : [];
    const types = same.map(([type]) => code(type)).join(", ");
    const words = [schema ? valueWords(schema) : "any", schema?.["description"] ?? []].flat().join(", ");
    parts.push(`Body (${types}):${rows.length > 0 ? "" : ` ${words}`}`);
    if (rows.length > 0) parts.push(markdownTable(["field", "value", "notes"], rows));
  }
  parts.push(...answerLines(operation, document));
  return parts.filter((part) => part !== "").join("\n\n");
}

function answerLines({ responses = {} }: Operation, document: OpenApiDocument): string[] {
  const answers = Object.entries(responses)
    .filter(([status]) => Number(status) < 400)
    .flatMap(([status, { description, headers = {}, content = {} }]) => {
      // Those that every answer has are told of once.
      const own = Object.keys(headers).filter((name) => !name.startsWith("X-"));
      const beside = own.length > 0 ? `. Headers: ${own.map(code).join(", ")}` : "";
      const shapes = Object.entries(content).map(([type, { schema = {} }]) => answerWords(type, schema, document));
      const line = `Answer: ${status}, ${description ?? ""}${shapes.length > 0 ? `: ${shapes.join(" or ")}` : ""}${beside}.`;
      const rows = Object.values(content).flatMap(({ schema = {} }) => dataRows(schema, document));
      return rows.length > 0 ? [line, markdownTable(["field", "value", "notes"], rows)] : [line];
    });
  const errors = Object.values(responses).flatMap(({ description = "" }) =>
    Object.keys(PROBLEMS).filter((name) => description.includes(`\`${name}\``)),
  );
  return errors.length > 0 ? [...answers, `Errors: ${errors.map(code).join(", ")}.`] : answers;
}

/** What an answer of this media type holds: of an envelope, its data. */
function answerWords(type: string, schema: Schema, document: OpenApiDocument): string {
  if (type !== "application/json") return code(type);
  const { data } = (resolve(schema, document)["properties"] ?? {}) as Record<string, Schema>;
  return data ? `${code("data")} is ${valueWords(data)}` : valueWords(schema);
}

/** The fields of data that has no name of its own. */
function dataRows(schema: Schema, document: OpenApiDocument): string[][] {
  const { data } = (resolve(schema, document)["properties"] ?? {}) as Record<string, Schema>;
  return data && !referenceName(data) && data["type"] !== "array" ? fieldRows(data, document, "data.") : [];
}

/** One row for each field; those of an object that has no name of its own stand below it. */
function fieldRows(schema: Schema, document: OpenApiDocument, above = ""): string[][] {
  const resolved = resolve(schema, document);
  const required = (resolved["required"] ?? []) as string[];
  const fields = Object.entries((resolved["properties"] ?? {}) as Record<string, Schema>);
  const others = resolved["additionalProperties"];
  if (typeof others === "object" && others !== null && Object.keys(others).length > 0) {
    fields.push(["<name>", others as Schema]);
  }
  return fields.flatMap(([name, field]) => {
    const needed = required.includes(name) && field["default"] === undefined ? ", required" : "";
    const notes = String(field["description"] ?? resolve(field, document)["description"] ?? "");
    const row = [code(above + name), valueWords(field) + needed, notes];
    const { schema: there } = unlessNull(field);
    const items = there["type"] === "array" ? (there["items"] as Schema) : undefined;
    const inner = items ?? there;
    if (referenceName(inner)) return [row];
    return [row].concat(fieldRows(inner, document, `${above}${name}${items ? "[]" : ""}.`));
  });
}

/** Of something that may be null, what it is where it is not. */
function unlessNull(schema: Schema): { readonly schema: Schema; readonly orNull: boolean } {
  const { type, anyOf } = schema;
  if (Array.isArray(type) && type.includes("null")) {
    const [only, ...others] = type.filter((one) => one !== "null");
    if (others.length === 0) return { schema: { ...schema, type: only }, orNull: true };
  }
  const alternatives = anyOf as Schema[] | undefined;
  const others = alternatives?.filter(({ type }) => type !== "null");
  return others?.length === 1 ? { schema: others[0]!, orNull: alternatives!.length > 1 } : { schema, orNull: false };
}

/** Every shape that has a name, once: the document has each as it is taken and as it is given. */
function shapeSections(document: OpenApiDocument): string {
  return Object.entries(document.components?.schemas ?? {})
    .filter(([name]) => !name.endsWith("Input"))
    .map(([name, schema]) => {
      const rows = fieldRows(schema, document);
      const about = schema["description"] ? `${String(schema["description"])}\n\n` : "";
      return `### ${name}\n\n${about}${rows.length > 0 ? markdownTable(["field", "value", "notes"], rows) : valueWords(schema)}`;
    })
    .join("\n\n");
}

function resolve(schema: Schema, document: OpenApiDocument): Schema {
  const name = referenceName(schema);
  return (name && document.components?.schemas?.[name]) || schema;
}

function referenceName(schema: Schema): string | undefined {
  // A reference with a default beside it is wrapped.
  const target = schema["$ref"] ?? (schema["allOf"] as Schema[] | undefined)?.[0]?.["$ref"];
  return typeof target === "string"
    ? target
        .split("/")
        .at(-1)!
        .replace(/Input$/, "")
    : undefined;
}

function valueWords(schema: Schema): string {
  const { schema: there, orNull } = unlessNull(schema);
  if (orNull) return `${valueWords(there)} or null`;
  const name = referenceName(schema);
  if (name) return [`[${name}](#${name.toLowerCase()})`, ...defaultWords(schema)].join(", ");
  // Of an object, what stands there is which of its fields go together.
  const alternatives = schema["properties"]
    ? undefined
    : ((schema["anyOf"] ?? schema["oneOf"]) as Schema[] | undefined);
  if (alternatives) return alternatives.map(valueWords).join(" or ");
  const words: string[] = [];
  const [all] = (schema["allOf"] as Schema[] | undefined) ?? [];
  if (all) words.push(valueWords(all));
  else if (schema["const"] !== undefined) words.push(code(JSON.stringify(schema["const"])));
  else if (Array.isArray(schema["enum"])) words.push(schema["enum"].map((value) => code(String(value))).join(", "));
  else if (schema["type"] === "array") {
    words.push(
      `list${limitWords(schema["minItems"], schema["maxItems"])} of ${valueWords((schema["items"] ?? {}) as Schema)}`,
    );
  } else {
    // The format of a number is how many bits it needs: that is for programs.
    const format = schema["type"] === "string" ? schema["format"] : undefined;
    const type = String(format ?? [schema["type"] ?? "any"].flat().join(" or "));
    const limits =
      schema["type"] === "object"
        ? limitWords(schema["minProperties"], schema["maxProperties"], " fields")
        : limitWords(schema["minLength"], schema["maxLength"], " characters");
    words.push(type + limits);
  }
  const least = schema["minimum"];
  const most = schema["maximum"];
  if (typeof least === "number" && typeof most === "number" && most < Number.MAX_SAFE_INTEGER) {
    words.push(`${least} to ${most}`);
  } else if (typeof least === "number" && least > Number.MIN_SAFE_INTEGER) {
    words.push(`at least ${least}`);
  }
  return [...words, ...defaultWords(schema)].join(", ");
}

function defaultWords({ default: fallback }: Schema): string[] {
  // Of an object, the defaults stand with its fields.
  if (fallback === undefined || (typeof fallback === "object" && !Array.isArray(fallback))) return [];
  return [`default ${code(Array.isArray(fallback) ? JSON.stringify(fallback) : String(fallback))}`];
}

function limitWords(least: unknown, most: unknown, unit = ""): string {
  const hasLeast = typeof least === "number" && least > 0;
  if (typeof most !== "number") return least === 1 ? " (not empty)" : hasLeast ? ` (at least ${least}${unit})` : "";
  if (least === most) return ` (${most}${unit})`;
  return hasLeast ? ` (${least} to ${most}${unit})` : ` (at most ${most}${unit})`;
}

function anchor(title: string): string {
  return title
    .toLowerCase()
    .replaceAll(/[^a-z0-9 _-]/g, "")
    .replaceAll(" ", "-");
}

function defaultOf(path: string): string {
  return String(settingEntries().find((entry) => entry.path === path)!.fallback);
}
