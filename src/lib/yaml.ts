import { isScalar, LineCounter, parseAllDocuments, visit, type Document, type Scalar } from "yaml";
import { canonicalNumber, isRounded, parseSent } from "./exact-json.ts";

// Hand-written YAML: a fault names its line, and a bad document does not hide the others. Numbers are those of
// exact-json.ts: integers beyond 2^53 are bigints.

const ALIASES_MAX = 100;
/** The syntax tree of a document takes a hundred times its size. */
const DOCUMENT_CHARACTERS_MAX = 1024 * 1024;
/** Matches texts that may contain an integer beyond 2^53, in any notation. */
const MIGHT_BE_LARGE = /[\d_]{16}|0x[\da-f_]{14}|0o[0-7_]{18}|\d\.?e\+?\d/i;

const JSON_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

export type YamlDocument =
  | {
      readonly line: number;
      readonly value: unknown;
      /** The line of the value at a path, or of its nearest existing ancestor. */
      lineOf(path: readonly PropertyKey[]): number;
    }
  | { readonly line: number; readonly fault: string };

/** All documents of a text, without empty ones. */
export function parseYaml(text: string, documentsMax: number): YamlDocument[] {
  const found: YamlDocument[] = [];
  const readAgain = oneKept(readPart);
  for (const { part, line } of cutDocuments(text)) {
    for (const document of parsePart(part, line, readAgain)) {
      if (found.length === documentsMax) return [{ line: 1, fault: `more than ${documentsMax} documents` }];
      found.push(document);
    }
  }
  return found;
}

/**
 * Splits the text before each `---`, so that the syntax tree of only one document is in memory at a time. A text with
 * directives or document end marks is not split.
 */
function* cutDocuments(text: string): Iterable<{ part: string; line: number }> {
  if (/^(%|\.\.\.)/m.test(text)) {
    yield { part: text, line: 1 };
    return;
  }
  let line = 1;
  for (const part of text.split(/^(?=---(?:\s|$))/m)) {
    yield { part, line };
    for (let at = part.indexOf("\n"); at >= 0; at = part.indexOf("\n", at + 1)) line++;
  }
}

function parsePart(part: string, firstLine: number, readAgain: typeof readPart): YamlDocument[] {
  if (part.length > DOCUMENT_CHARACTERS_MAX) {
    return [{ line: firstLine, fault: `a document of more than ${DOCUMENT_CHARACTERS_MAX} characters` }];
  }
  const intAsBigInt = MIGHT_BE_LARGE.test(part);
  const { documents, lineAt } = readPart(part, firstLine, intAsBigInt);
  return documents.flatMap((document, index): YamlDocument[] => {
    const line = lineAt(document.contents?.range?.[0] ?? document.range[0]);
    const [error] = document.errors;
    if (error) return [{ line: lineAt(error.pos[0]), fault: firstLineOf(error.message) }];
    try {
      const repeated = repeatedKey(document);
      if (repeated) return [{ line: lineAt(repeated.range![0]), fault: "duplicate key in a map" }];
      if (intAsBigInt) visit(document, { Scalar: (_, scalar) => holdExactly(scalar) });
      const value: unknown = document.toJS({ maxAliasCount: ALIASES_MAX });
      // Lines are needed for faults only, which are rare enough to parse the document again.
      const lineOf = (path: readonly PropertyKey[]) => lineOfValue(readAgain(part, firstLine), index, path);
      return value === null ? [] : [{ line, value, lineOf }];
    } catch (error) {
      // Exponential aliases, or nesting beyond the stack.
      return [{ line, fault: firstLineOf((error as Error).message) }];
    }
  });
}

interface YamlPart {
  readonly documents: readonly Document.Parsed[];
  lineAt(offset: number): number;
}

function readPart(part: string, firstLine: number, intAsBigInt = false): YamlPart {
  const lines = new LineCounter();
  const documents = parseAllDocuments(part, { lineCounter: lines, intAsBigInt, uniqueKeys: false });
  return {
    documents: Array.isArray(documents) ? documents : [],
    lineAt: (offset) => firstLine - 1 + Math.max(1, lines.linePos(offset).line),
  };
}

/** Caches the last result. */
function oneKept(read: typeof readPart): typeof readPart {
  let kept: { readonly part: string; readonly firstLine: number; readonly read: YamlPart } | undefined;
  return (part, firstLine) => {
    if (kept?.part !== part || kept.firstLine !== firstLine) kept = { part, firstLine, read: read(part, firstLine) };
    return kept.read;
  };
}

/** The first duplicate key. The parser's own check takes quadratic time. */
function repeatedKey(document: Document.Parsed): Scalar.Parsed | undefined {
  let repeated: Scalar.Parsed | undefined;
  visit(document, {
    Map: (_, { items }) => {
      const known = new Set<unknown>();
      for (const { key } of items) {
        if (!isScalar(key)) continue;
        if (known.has(key.value)) {
          repeated = key as Scalar.Parsed;
          return visit.BREAK;
        }
        known.add(key.value);
      }
      return undefined;
    },
  });
  return repeated;
}

function holdExactly(scalar: Scalar): void {
  const { value, source } = scalar;
  if (typeof value === "bigint") scalar.value = canonicalNumber(value);
  else if (typeof value === "number" && Number.isFinite(value) && isRounded(value)) {
    scalar.value = JSON_NUMBER.test(source ?? "") ? parseSent(source!) : canonicalNumber(value);
  }
}

function lineOfValue({ documents, lineAt }: YamlPart, index: number, path: readonly PropertyKey[]): number {
  const document = documents[index]!;
  for (let length = path.length; length > 0; length--) {
    const node = document.getIn(path.slice(0, length), true) as { range?: readonly number[] } | undefined;
    if (node?.range) return lineAt(node.range[0]!);
  }
  return lineAt(document.contents?.range?.[0] ?? document.range[0]);
}

function firstLineOf(text: string): string {
  if (text.startsWith("Maximum call stack")) return "is nested too deep";
  if (text.startsWith("Excessive alias count")) return `has more than ${ALIASES_MAX} copies by aliases`;
  return text.split("\n")[0]!.replace(/ at line \d+, column \d+:?$/, "");
}
