import { LineCounter, parseAllDocuments, type Document } from "yaml";

// YAML that people write by hand: a fault names the line it stands in, and one bad document does not hide the others.

const ALIASES_MAX = 100;

export type YamlDocument =
  | {
      readonly line: number;
      readonly value: unknown;
      /** The line of the value at a path, or of the nearest thing above it that is there. */
      lineOf(path: readonly PropertyKey[]): number;
    }
  | { readonly line: number; readonly fault: string };

/** Every document of a text that is not empty. */
export function parseYaml(text: string, documentsMax: number): YamlDocument[] {
  const lines = new LineCounter();
  const documents = parseAllDocuments(text, { lineCounter: lines });
  if (!Array.isArray(documents)) return [];
  if (documents.length > documentsMax) return [{ line: 1, fault: `more than ${documentsMax} documents` }];
  return documents.flatMap((document) => readDocument(document, lines));
}

function readDocument(document: Document.Parsed, lines: LineCounter): YamlDocument[] {
  const lineAt = (offset: number) => Math.max(1, lines.linePos(offset).line);
  const line = lineAt(document.contents?.range?.[0] ?? document.range[0]);
  const [error] = document.errors;
  if (error) return [{ line: lineAt(error.pos[0]), fault: firstLine(error.message) }];
  if (document.contents === null) return [];
  const lineOf = (path: readonly PropertyKey[]): number => {
    for (let length = path.length; length > 0; length--) {
      const node = document.getIn(path.slice(0, length), true) as { range?: readonly number[] } | undefined;
      if (node?.range) return lineAt(node.range[0]!);
    }
    return line;
  };
  try {
    const value: unknown = document.toJS({ maxAliasCount: ALIASES_MAX });
    return value === null ? [] : [{ line, value, lineOf }];
  } catch (error) {
    // Aliases that multiply into more than anyone wrote.
    return [{ line, fault: firstLine((error as Error).message) }];
  }
}

function firstLine(text: string): string {
  return text.split("\n")[0]!.replace(/ at line \d+, column \d+:?$/, "");
}
