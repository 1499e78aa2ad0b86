import { Document, isMap, isNode, isScalar, isSeq, parseDocument, visit, type Node } from "yaml";
import { RULE_FIELDS, type Draft, type Path } from "./draft.ts";

// The rule as YAML and back. Comments and layout of what was not changed stay.

/** Texts are not folded: the editor wraps long lines. */
const LAYOUT = { lineWidth: 0, blockQuote: "literal" } as const;

const rank = (name: string) => (RULE_FIELDS.includes(name) ? RULE_FIELDS.indexOf(name) : RULE_FIELDS.length);

export interface YamlFault {
  readonly message: string;
  readonly from: number;
  readonly to: number;
}

export type ReadYaml =
  | { readonly rule: Draft; readonly faults?: undefined }
  | { readonly faults: readonly YamlFault[]; readonly rule?: undefined };

const parse = (text: string) => parseDocument(text, { prettyErrors: false, version: "1.2" });

export function readYaml(text: string): ReadYaml {
  const document = parse(text);
  if (document.errors.length > 0) {
    return { faults: document.errors.map(({ message, pos }) => ({ message, from: pos[0], to: pos[1] })) };
  }
  try {
    // As it will be sent; an anchor that holds itself cannot be.
    const value: unknown = JSON.parse(JSON.stringify(document.toJS({ maxAliasCount: 100 })));
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return { rule: value as Draft };
    return { faults: [{ message: "a rule is a list of names and values, such as severity: high", from: 0, to: 0 }] };
  } catch (error) {
    return { faults: [{ message: (error as Error).message, from: 0, to: 0 }] };
  }
}

/** Conditions, events of tests and lists of plain values on one line: `{ field: type, in: [a, b] }`. */
function arrange<Part extends Document | Node>(part: Part): Part {
  visit(part, {
    Collection: (_, node) => {
      if ((isMap(node) && (node.has("field") || node.has("type"))) || (isSeq(node) && node.items.every(isScalar)))
        node.flow = true;
    },
  });
  return part;
}

/** The rule as a new text. */
export function writeYaml(rule: Draft): string {
  const sorted = Object.fromEntries(Object.entries(rule).toSorted(([a], [b]) => rank(a) - rank(b)));
  return arrange(new Document(sorted, { aliasDuplicateObjects: false })).toString(LAYOUT);
}

/** The text after the rule was changed elsewhere: only the changed settings are written anew. */
export function updateYaml(text: string, rule: Draft): string {
  const document = parse(text);
  const before = readYaml(text).rule;
  if (before === undefined) return writeYaml(rule);
  let isSame = true;
  for (const name of Object.keys(before)) {
    if (Object.hasOwn(rule, name)) continue;
    document.delete(name);
    isSame = false;
  }
  for (const [name, value] of Object.entries(rule)) {
    if (Object.hasOwn(before, name) && JSON.stringify(before[name]) === JSON.stringify(value)) continue;
    document.set(name, arrange(document.createNode(value, { aliasDuplicateObjects: false })));
    isSame = false;
  }
  return isSame ? text : document.toString(LAYOUT);
}

/** Where in the text a field of the rule stands; of a missing one, the nearest thing around it. */
export function rangeOf(text: string, path: Path): { readonly from: number; readonly to: number } {
  const document = parse(text);
  for (let length = path.length; length > 0; length--) {
    const part = path.slice(0, length);
    const node = document.getIn(part, true);
    if (!isNode(node) || node.range == null) continue;
    const start = keyStart(document, part) ?? node.range[0];
    // A setting that is missing is a fault of its parent: its first line is enough.
    const end = isScalar(node) || length === path.length ? node.range[1] : start;
    const lineEnd = text.indexOf("\n", start);
    return { from: start, to: Math.max(start, Math.min(end, lineEnd < 0 ? text.length : lineEnd)) };
  }
  return { from: 0, to: Math.max(0, text.indexOf("\n")) };
}

function keyStart(document: Document, path: Path): number | undefined {
  const parent = document.getIn(path.slice(0, -1), true) as { items?: readonly { key?: unknown }[] } | undefined;
  const last = path.at(-1);
  const pair = parent?.items?.find(({ key }) => isScalar(key) && key.value === last);
  return (pair?.key as Node | undefined)?.range?.[0];
}
