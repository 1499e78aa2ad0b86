import type { Event } from "../../data/client.ts";
import {
  ENTITY_FIELD,
  entityPaths,
  hasWildcard,
  isAnyValue,
  readEntityValue,
  scalarsOf,
  unescaped,
  type Condition,
} from "../../data/event-conditions.ts";
import { valuesAt, type Scalar } from "./fields.ts";

// The conditions of the filter, on an event of the stream: the stream itself knows only source, type, severity and words.

const quoted = (character: string) => character.replace(/[\\^$.*+?()[\]{}|/]/, String.raw`\$&`);

/** `adm*` as an expression. */
function globExpression(glob: string): RegExp {
  let source = "";
  for (let at = 0; at < glob.length; at++) {
    const character = glob[at]!;
    if (character === "*") source += ".*";
    else if (character === "?") source += ".";
    else source += quoted(character === "\\" ? (glob[++at] ?? "\\") : character);
  }
  return new RegExp(`^${source}$`, "isu");
}

function equalTo(value: string): (found: Scalar) => boolean {
  if (isAnyValue(value)) return () => true;
  if (hasWildcard(value)) {
    const expression = globExpression(value);
    return (found) => typeof found === "string" && expression.test(found);
  }
  const text = unescaped(value);
  const network = networkOf(text);
  if (network !== undefined) return (found) => typeof found === "string" && isWithin(found, network);
  const wanted = new Set<Scalar>(scalarsOf(text));
  return (found) => wanted.has(found);
}

function compare({ operator, value }: Condition): (found: Scalar) => boolean {
  const bound = Number(value);
  switch (operator) {
    case "=":
    case "!=":
      return equalTo(value);
    case "~":
    case "!~":
      return (found) => typeof found === "string" && found.toLowerCase().includes(value.toLowerCase());
    case ">":
      return (found) => typeof found === "number" && found > bound;
    case ">=":
      return (found) => typeof found === "number" && found >= bound;
    case "<":
      return (found) => typeof found === "number" && found < bound;
    case "<=":
      return (found) => typeof found === "number" && found <= bound;
    default:
      return operator satisfies never;
  }
}

/** Whether an event passes, as the service would decide: values of one field are alternatives, all else must hold. */
export function eventMatcher(conditions: readonly Condition[]): (event: Event) => boolean {
  const wanted = new Map<string, ((found: Scalar) => boolean)[]>();
  const others: ((event: Event) => boolean)[] = [];
  for (const condition of conditions) {
    const { field, operator } = condition;
    const entity = field === ENTITY_FIELD ? readEntityValue(condition.value) : undefined;
    if (entity !== undefined) {
      const paths = entityPaths(entity.kind);
      const isWanted = operator === "=";
      others.push((event) => paths.some((path) => valuesAt(event, path).includes(entity.value)) === isWanted);
      continue;
    }
    const test = compare(condition);
    if (operator === "=") wanted.set(field, [...(wanted.get(field) ?? []), test]);
    else if (operator.startsWith("!")) others.push((event) => !valuesAt(event, field).some(test));
    else others.push((event) => valuesAt(event, field).some(test));
  }
  for (const [field, tests] of wanted) {
    others.push((event) => valuesAt(event, field).some((found) => tests.some((test) => test(found))));
  }
  return (event) => others.every((test) => test(event));
}

interface Network {
  readonly bits: readonly number[];
  readonly length: number;
}

/** The 16-bit groups of an address: two for IPv4, eight for IPv6. Undefined for anything else. */
function groupsOf(address: string): number[] | undefined {
  const quads = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(address)?.slice(1).map(Number);
  if (quads !== undefined) {
    const [a, b, c, d] = quads as [number, number, number, number];
    return quads.some((quad) => quad > 255) ? undefined : [a * 256 + b, c * 256 + d];
  }
  if (!/^[0-9a-f:]+$/i.test(address) || !address.includes(":")) return undefined;
  const [left = "", right] = address.split("::");
  const parse = (text: string) => (text === "" ? [] : text.split(":").map((group) => Number.parseInt(group, 16)));
  const start = parse(left);
  const end = parse(right ?? "");
  const zeros = right === undefined ? 0 : 8 - start.length - end.length;
  const groups = [...start, ...Array.from({ length: Math.max(0, zeros) }, () => 0), ...end];
  return groups.length === 8 && groups.every((group) => group >= 0 && group <= 0xff_ff) ? groups : undefined;
}

function networkOf(text: string): Network | undefined {
  const [, address, length] = /^([0-9a-f:.]+)\/(\d{1,3})$/i.exec(text) ?? [];
  const bits = address === undefined ? undefined : groupsOf(address);
  return bits !== undefined && Number(length) <= bits.length * 16 ? { bits, length: Number(length) } : undefined;
}

function isWithin(address: string, { bits, length }: Network): boolean {
  const groups = groupsOf(address);
  if (groups?.length !== bits.length) return false;
  return groups.every((group, index) => {
    const kept = Math.min(16, Math.max(0, length - index * 16));
    const shift = 16 - kept;
    return group >> shift === bits[index]! >> shift;
  });
}
