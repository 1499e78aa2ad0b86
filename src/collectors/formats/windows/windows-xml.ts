import type { JsonObject, JsonValue } from "../../../model/event.ts";
import { FIELDS_MAX, integerOf, ownText, putForeign, textOf } from "../device-values.ts";
import type { LineFormat, LineMessage, MessageReading } from "../line-format.ts";
import { ownHeaderEnd } from "../message-prefix.ts";
import type { ReadContext } from "../reading.ts";
import { readWindowsEvent, type NamedValues, type WindowsEvent } from "./windows-event.ts";

// A Windows event as XML, as the event viewer shows it and forwarders send it. The scanner knows what such an event can contain:
// elements, attributes, text and entities. It goes from left to right once.

const START = "<Event";

export const WINDOWS_XML = {
  name: "windows-xml",
  about: "Windows events as XML",
  devices: ["Windows"],
  page: "windows",
  example:
    "<Event xmlns='http://schemas.microsoft.com/win/2004/08/events/event'><System><Provider Name='Microsoft-Windows-Security-Auditing'/>" +
    "<EventID>4625</EventID><Level>0</Level><TimeCreated SystemTime='2026-11-15T10:00:00.000Z'/><EventRecordID>812</EventRecordID>" +
    "<Channel>Security</Channel></System><EventData><Data Name='TargetUserName'>robin</Data>" +
    "<Data Name='LogonType'>3</Data><Data Name='IpAddress'>192.0.2.9</Data></EventData></Event>",
  ownHeader: START,
  read: readMessage,
} as const satisfies LineFormat;

function readMessage(line: LineMessage, context: ReadContext): MessageReading | undefined {
  const end = ownHeaderEnd(START, line);
  const event = end < 0 ? undefined : readEventXml(line.message.slice(end - START.length));
  return event && { kind: "events", events: [readWindowsEvent(event, context)] };
}

interface OpenElement extends XmlElement {
  readonly children: XmlElement[];
}

interface XmlElement {
  readonly name: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly children: readonly XmlElement[];
  text: string;
}

const DEPTH_MAX = 16;
const ELEMENTS_MAX = 4 * FIELDS_MAX;
const NAME_CHARACTERS_MAX = 128;

/** Undefined if the text is not a Windows event. */
export function readEventXml(xml: string, message?: string): WindowsEvent | undefined {
  const root = parseXml(xml);
  const system = root?.name === "Event" ? child(root, "System") : undefined;
  if (root === undefined || system === undefined) return undefined;
  const found: SystemElements = {};
  const kept: JsonObject = {};
  for (const element of system.children) readSystem(element, found, kept);
  const { channel = "", eventId } = found;
  if (channel === "" || eventId === undefined) return undefined;
  const rendering = child(root, "RenderingInfo");
  const userData = child(root, "UserData")?.children[0];
  return {
    channel,
    eventId,
    provider: found.provider,
    computer: found.computer,
    level: found.level,
    time: found.time,
    recordId: found.recordId,
    message: message ?? textOf(rendering && child(rendering, "Message")?.text),
    data: dataOf(child(root, "EventData")),
    userData: userData && { name: userData.name, values: textsOf(userData, {}) },
    system: kept,
  };
}

interface SystemElements {
  channel?: string;
  eventId?: number | undefined;
  provider?: string | undefined;
  computer?: string | undefined;
  level?: number | undefined;
  time?: string | undefined;
  recordId?: string | undefined;
}

function readSystem({ name, attributes, text }: XmlElement, found: SystemElements, kept: JsonObject): void {
  switch (name) {
    case "Provider":
      found.provider = attributes["Name"] ?? attributes["EventSourceName"];
      break;
    case "EventID":
      found.eventId = integerOf(text);
      break;
    case "Channel":
      found.channel = text;
      break;
    case "Computer":
      found.computer = textOf(text);
      break;
    case "Level":
      found.level = integerOf(text);
      break;
    case "TimeCreated":
      found.time = attributes["SystemTime"];
      break;
    case "EventRecordID":
      found.recordId = textOf(text);
      break;
    case "Task":
    case "Opcode":
    case "Keywords":
    case "Version":
      if (text !== "") kept[name] = text;
      break;
    default:
  }
}

function child(element: XmlElement, name: string): XmlElement | undefined {
  return element.children.find((one) => one.name === name);
}

/** Named values; those without a name are a list called Data. */
function dataOf(eventData: XmlElement | undefined): NamedValues {
  const names: string[] = [];
  const values: JsonValue[] = [];
  const unnamed: string[] = [];
  for (const { name, attributes, text } of eventData?.children ?? NO_CHILDREN) {
    const key = attributes["Name"];
    if (name === "Data" && (key === undefined || key === "")) unnamed.push(text);
    else {
      names.push(key ?? name);
      values.push(text);
    }
  }
  if (unnamed.length > 0 && !names.includes("Data")) {
    names.push("Data");
    values.push(unnamed);
  }
  return { names, values };
}

/** The innermost texts by the names of their elements. */
function textsOf({ children }: XmlElement, texts: JsonObject): JsonObject {
  for (const one of children) {
    if (one.children.length > 0) textsOf(one, texts);
    else if (!Object.hasOwn(texts, one.name)) putForeign(texts, one.name, one.text);
  }
  return texts;
}

/** The outermost element; undefined if the text is not well-formed, or too large. */
function parseXml(xml: string): XmlElement | undefined {
  const open: OpenElement[] = [];
  let elements = 0;
  let at = 0;
  while (at < xml.length) {
    const tag = xml.indexOf("<", at);
    if (tag < 0) return undefined;
    if (tag > at && open.length > 0) open.at(-1)!.text += decoded(xml.slice(at, tag));
    if (xml.startsWith("<?", tag) || xml.startsWith("<!--", tag)) {
      const mark = xml.startsWith("<?", tag) ? "?>" : "-->";
      const end = xml.indexOf(mark, tag);
      if (end < 0) return undefined;
      at = end + mark.length;
      continue;
    }
    if (xml.startsWith("</", tag)) {
      const end = xml.indexOf(">", tag);
      const closed = open.pop();
      if (end < 0 || closed === undefined || xml.slice(tag + 2, end).trim() !== closed.name) return undefined;
      if (open.length === 0) return closed;
      at = end + 1;
      continue;
    }
    const leaf = open.length > 0 ? scanLeaf(xml, tag, elements) : undefined;
    if (leaf !== undefined) {
      if (++elements > ELEMENTS_MAX) return undefined;
      open.at(-1)!.children.push(leaf.element);
      at = leaf.end;
      continue;
    }
    const scanned = scanTag(xml, tag);
    if (scanned === undefined || ++elements > ELEMENTS_MAX || open.length >= DEPTH_MAX) return undefined;
    const { element, isEmpty, end } = scanned;
    open.at(-1)?.children.push(element);
    at = end;
    if (!isEmpty) open.push(element);
    else if (open.length === 0) return element;
  }
  return undefined;
}

const NO_CHILDREN: readonly XmlElement[] = [];
const NO_ATTRIBUTES: Readonly<Record<string, string>> = {};
const DATA = "<Data Name=";

/**
 * A fast path for `<Data Name='x'>value</Data>` and `<Level>4</Level>`, which is most of an event; undefined for anything else.
 */
function scanLeaf(
  xml: string,
  start: number,
  index: number,
): { readonly element: XmlElement; readonly end: number } | undefined {
  let name = "Data";
  let attributes = NO_ATTRIBUTES;
  let close: number;
  if (xml.startsWith(DATA, start)) {
    const nameStart = start + DATA.length + 1;
    const key = likelyName(xml, nameStart, index);
    if (key === undefined) return undefined;
    attributes = { Name: key };
    close = nameStart + key.length + 1;
  } else {
    close = start + 1;
    while (isLetter(xml.charCodeAt(close))) close++;
    name = xml.slice(start + 1, close);
  }
  if (name === "" || xml.charCodeAt(close) !== 0x3e) return undefined;
  const textEnd = xml.indexOf("<", close);
  const end = textEnd + name.length + 3;
  if (textEnd < 0 || xml.charCodeAt(textEnd + 1) !== 0x2f || !xml.startsWith(name, textEnd + 2)) return undefined;
  if (xml.charCodeAt(end - 1) !== 0x3e) return undefined;
  return { element: { name, attributes, children: NO_CHILDREN, text: decoded(xml.slice(close + 1, textEnd)) }, end };
}

/** Names of the last event by the position of their element: most events are like the one before, and a known name is not hashed again. */
const likelyNames: string[] = [];

/** The name that a quotation mark precedes at this position; undefined if it has none, or contains an entity. */
function likelyName(xml: string, start: number, index: number): string | undefined {
  const quote = xml.charCodeAt(start - 1);
  const likely = likelyNames[index];
  if (likely !== undefined && xml.startsWith(likely, start) && xml.charCodeAt(start + likely.length) === quote) {
    return likely;
  }
  const end = xml.indexOf(xml.charAt(start - 1), start);
  if (end < 0 || end - start > NAME_CHARACTERS_MAX) return undefined;
  const name = ownText(xml.slice(start, end));
  if (name.includes("&") || name.includes("<")) return undefined;
  if (index < ELEMENTS_MAX) likelyNames[index] = name;
  return name;
}

function isLetter(code: number): boolean {
  return (code | 0x20) >= 0x61 && (code | 0x20) <= 0x7a;
}

const NAME = /[A-Za-z_][\w.:-]{0,127}/y;
const ATTRIBUTE = /\s+([A-Za-z_][\w.:-]{0,127})\s*=\s*(?:'([^'<]*)'|"([^"<]*)")/y;
const TAG_END = /\s*(\/?)>/y;

function scanTag(
  xml: string,
  start: number,
): { readonly element: OpenElement; readonly isEmpty: boolean; readonly end: number } | undefined {
  NAME.lastIndex = start + 1;
  const name = NAME.exec(xml)?.[0];
  if (name === undefined) return undefined;
  const attributes: Record<string, string> = {};
  ATTRIBUTE.lastIndex = start + 1 + name.length;
  let end = ATTRIBUTE.lastIndex;
  for (let match = ATTRIBUTE.exec(xml); match !== null; match = ATTRIBUTE.exec(xml)) {
    attributes[match[1] === "__proto__" ? "_proto_" : match[1]!] = decoded(match[2] ?? match[3] ?? "");
    end = ATTRIBUTE.lastIndex;
  }
  TAG_END.lastIndex = end;
  const closing = TAG_END.exec(xml);
  if (closing === null) return undefined;
  return { element: { name, attributes, children: [], text: "" }, isEmpty: closing[1] === "/", end: TAG_END.lastIndex };
}

const ENTITIES: Readonly<Record<string, string>> = { lt: "<", gt: ">", amp: "&", quot: '"', apos: "'" };

function decoded(text: string): string {
  if (!text.includes("&")) return text;
  return text.replaceAll(/&(?:#x([0-9A-Fa-f]{1,6})|#(\d{1,7})|([a-z]{2,4}));/g, (whole, hex, decimal, name: string) => {
    if (name !== undefined) return Object.hasOwn(ENTITIES, name) ? ENTITIES[name]! : whole;
    const code = hex === undefined ? Number(decimal) : Number.parseInt(hex as string, 16);
    return code > 0 && code <= 0x10_ff_ff && (code < 0xd8_00 || code > 0xdf_ff) ? String.fromCodePoint(code) : whole;
  });
}
