import { sameBytes } from "../exporter.ts";
import type { Packet } from "../packet.ts";
import type { Domain, KnownTemplate } from "./domain.ts";
import { rateOfAll, readFlow, readOptions } from "./record.ts";
import { compileTemplate, measureRecord, type Template, type TemplateField } from "./template.ts";
import type { WaitingRoom, WaitingSet } from "./waiting.ts";

// The sets that a packet of v9 or IPFIX is made of: templates, templates of options, and data by the id of its template.

const SET_HEADER_BYTES = 4;
const DATA_SET_ID_MIN = 256;
const ENTERPRISE_BIT = 0x8000;
/** Two sessions are taken for one exporter that has changed its port when only one of them has been heard for so long. */
const PORT_CHANGE_MS = 2000;

export interface Dialect {
  readonly name: string;
  readonly templateSet: number;
  readonly optionsSet: number;
  /** IPFIX: fields may belong to an enterprise, templates can be withdrawn, scopes are counted in fields. */
  readonly ipfix: boolean;
}

export interface SetContext {
  readonly packet: Packet;
  readonly dialect: Dialect;
  readonly domain: Domain;
  readonly waiting: WaitingRoom;
}

/** How many records of data the packet held; undefined where a template was missing and they could not be counted. */
export function decodeSets(context: SetContext, start: number, end: number): number | undefined {
  const { packet, dialect } = context;
  const { view, exporter } = packet;
  let records: number | undefined = 0;
  let at = start;
  while (end - at >= SET_HEADER_BYTES) {
    const id = view.getUint16(at);
    const length = view.getUint16(at + 2);
    // Nothing but zeros: a packet that was filled up.
    if (id === 0 && length === 0) break;
    if (length < SET_HEADER_BYTES || at + length > end) {
      const reason = length < SET_HEADER_BYTES ? "malformed" : "truncated";
      const message = `a set of ${dialect.name} says it has ${length} bytes where ${end - at} are left`;
      exporter.drop(reason, 1, message, packet.receivedMs);
      return undefined;
    }
    const content = at + SET_HEADER_BYTES;
    const setEnd = at + length;
    if (id >= DATA_SET_ID_MIN) {
      const count = decodeData(context, id, content, setEnd);
      records = records === undefined || count === undefined ? undefined : records + count;
    } else if (id === dialect.templateSet || id === dialect.optionsSet) {
      readTemplates(context, content, setEnd, id === dialect.optionsSet);
    } else {
      exporter.drop("malformed", 1, `a set of ${dialect.name} has the reserved id ${id}`, packet.receivedMs);
    }
    at = setEnd;
  }
  return records;
}

function decodeData(context: SetContext, id: number, at: number, end: number): number | undefined {
  const { packet, domain } = context;
  const { receivedMs, exportMs, uptimeMs, shiftMs, view } = packet;
  const known = domain.templates.get(id) ?? borrow(view, domain, id, at, end, receivedMs);
  if (known) {
    if (known.domain !== domain) countDropped(domain, known, known.plan.recordBytes);
    return decodeRecords(packet, domain, known, at, end);
  }
  domain.miss(id, receivedMs);
  // A copy: the packet's own bytes are written over by the next one.
  const content = new Uint8Array(view.buffer, view.byteOffset + at, end - at).slice();
  const { version } = packet;
  context.waiting.keep({ domain, version, templateId: id, content, receivedMs, exportMs, uptimeMs, shiftMs });
  return undefined;
}

/**
 * A template of another session of the same exporter. It is a guess: it takes a while in which the other one is not heard,
 * and what it describes must fill the set exactly.
 */
function borrow(
  view: DataView,
  domain: Domain,
  id: number,
  at: number,
  end: number,
  nowMs: number,
): KnownTemplate | undefined {
  const known = domain.exporter.borrowTemplate(domain, id);
  if (known === "ambiguous") {
    domain.lack(id, "which other sessions of the address have described, but not the one that the data came by");
    return undefined;
  }
  if (!known || nowMs - Math.max(domain.firstSeenMs, known.domain.firstSeenMs) < PORT_CHANGE_MS) return undefined;
  return fills(known.plan, view, at, end) ? known : undefined;
}

/** Whether records of the template fill the set, up to padding. */
function fills(template: Template, view: DataView, start: number, end: number): boolean {
  const { recordBytes, varying } = template;
  if (!varying) return end - start >= recordBytes && isPadding(view, end - ((end - start) % recordBytes), end);
  let at = start;
  for (let length = 0; length >= 0; at += Math.max(0, length)) {
    length = end - at < recordBytes ? -1 : measureRecord(template, view, at, end);
  }
  return at > start && isPadding(view, at, end);
}

function decodeRecords(packet: Packet, own: Domain, known: KnownTemplate, start: number, end: number): number {
  const { view, exporter, receivedMs } = packet;
  const template = known.plan;
  const { recordBytes, varying, options } = template;
  let at = start;
  let records = 0;
  let unaddressed = 0;
  const domain = options ? own : exporter.optionsOf(own);
  const rate = rateOfAll(template, domain);
  // Less than a record is left: padding.
  while (end - at >= recordBytes) {
    let length = recordBytes;
    if (varying) {
      length = measureRecord(template, view, at, end);
      if (length < 0) {
        if (!isPadding(view, at, end)) {
          const message = `a record of template ${template.id} reaches beyond its set`;
          exporter.drop("truncated", 1, message, receivedMs);
        }
        break;
      }
    }
    if (options) readOptions(packet, domain, template, at);
    else if (!readFlow(packet, domain, template, at, rate)) unaddressed++;
    records++;
    at += length;
  }
  if (options) {
    exporter.optionRecords += records;
    exporter.noteOptions(domain);
  }
  if (!options && records > unaddressed) {
    exporter.records += records - unaddressed;
    exporter.lastRecordMs = receivedMs;
    exporter.hasTemplateData = true;
  }
  if (records > unaddressed) {
    known.usedMs = receivedMs;
    known.domain.usedMs = receivedMs;
  }
  if (unaddressed > 0) exporter.dropUnaddressed(unaddressed, receivedMs);
  return records;
}

function isPadding(view: DataView, at: number, end: number): boolean {
  for (let position = at; position < end; position++) if (view.getUint8(position) !== 0) return false;
  return true;
}

function readTemplates(context: SetContext, start: number, end: number, options: boolean): void {
  const { dialect, packet } = context;
  const { view } = packet;
  let at = start;
  while (end - at >= 4) {
    const id = view.getUint16(at);
    if (id === 0) return;
    if (dialect.ipfix && view.getUint16(at + 2) === 0) {
      withdraw(context, id, options);
      at += 4;
      continue;
    }
    const read = readTemplate(view, at, end, options, dialect.ipfix);
    if (typeof read === "string") return refuse(context, id, read);
    learn(context, id, options, read, at);
    at = read.next;
  }
}

interface ReadTemplate {
  readonly fields: readonly TemplateField[];
  /** Fields of v9 whose numbers mean a scope. */
  readonly scopes: number;
  /** Where its own bytes end, and where the next one begins. */
  readonly end: number;
  readonly next: number;
}

function readTemplate(
  view: DataView,
  at: number,
  end: number,
  options: boolean,
  ipfix: boolean,
): ReadTemplate | string {
  // v9 tells the lengths of an options template's scopes and fields in bytes, IPFIX their numbers.
  const headerBytes = options ? 6 : 4;
  if (view.getUint16(at) < DATA_SET_ID_MIN || end - at < headerBytes) return "is cut short or has a reserved id";
  const count = view.getUint16(at + 2);
  const second = options ? view.getUint16(at + 4) : 0;
  const fieldCount = options && !ipfix ? (count + second) >> 2 : count;
  const read = readFields(view, at + headerBytes, end, fieldCount, ipfix);
  if (!read) return `says it has ${fieldCount} fields, more than its set holds`;
  // The lengths of v9 need not be multiples of a field's; what they say is where the next template begins.
  const next = options && !ipfix ? Math.max(read.next, at + headerBytes + count + second) : read.next;
  if (next > end) return "reaches beyond its set";
  return { fields: read.fields, scopes: options && !ipfix ? count >> 2 : 0, end: read.next, next };
}

/** Reads a template from its own bytes, as they were kept; undefined where they are none. */
export function readSpec(spec: Uint8Array, options: boolean, ipfix: boolean): Template | undefined {
  if (spec.length < 4) return undefined;
  const view = new DataView(spec.buffer, spec.byteOffset, spec.length);
  const read = readTemplate(view, 0, spec.length, options, ipfix);
  if (typeof read === "string") return undefined;
  const compiled = compileTemplate(view.getUint16(0), options, read.fields, read.scopes, spec);
  return typeof compiled === "string" ? undefined : compiled;
}

function readFields(
  view: DataView,
  start: number,
  end: number,
  count: number,
  enterprises: boolean,
): { fields: TemplateField[]; next: number } | undefined {
  if (start + count * 4 > end) return undefined;
  const fields: TemplateField[] = [];
  let at = start;
  for (let index = 0; index < count; index++) {
    if (at + 4 > end) return undefined;
    const told = view.getUint16(at);
    const length = view.getUint16(at + 2);
    at += 4;
    if (enterprises && told & ENTERPRISE_BIT) {
      if (at + 4 > end) return undefined;
      fields.push({ id: told & ~ENTERPRISE_BIT, enterprise: view.getUint32(at), length });
      at += 4;
    } else fields.push({ id: told, enterprise: 0, length });
  }
  return { fields, next: at };
}

function learn(context: SetContext, id: number, options: boolean, read: ReadTemplate, at: number): void {
  const { packet, domain } = context;
  const { view, exporter, receivedMs } = packet;
  const spec = new Uint8Array(view.buffer, view.byteOffset + at, read.end - at);
  const before = domain.templates.get(id);
  if (before && before.plan.options === options && sameBytes(before.plan.spec, spec)) {
    before.sentMs = receivedMs;
    return;
  }
  const compiled =
    exporter.findPlan(domain, id, options, spec) ??
    compileTemplate(id, options, read.fields, read.scopes, spec.slice());
  if (typeof compiled === "string") return refuse(context, id, compiled);
  const known = exporter.learn(domain, compiled, receivedMs);
  let [records, bytes] = [0, 0];
  for (const set of context.waiting.take(domain, id)) {
    records += decodeWaiting(packet, known, set);
    bytes += set.content.length;
  }
  // Where lengths vary, a record is taken to be as long as those are on average that could be read.
  countDropped(domain, known, compiled.varying && records > 0 ? bytes / records : compiled.recordBytes);
}

/** The template is not missing any more: what was dropped for want of it, counted in sets, can be counted in records. */
function countDropped(domain: Domain, { plan }: KnownTemplate, recordBytes: number): void {
  const absent = domain.absent.get(plan.id);
  if (!absent) return;
  domain.absent.delete(plan.id);
  domain.exporter.countDroppedRecords(absent.droppedSets, Math.floor(absent.droppedBytes / recordBytes));
}

/** With the clock of the packet that it came in, then back to the one that is being read. Gives how many records it held. */
function decodeWaiting(packet: Packet, known: KnownTemplate, set: WaitingSet): number {
  const { view, exporter, version, receivedMs, exportMs, uptimeMs, shiftMs } = packet;
  const { content, domain } = set;
  packet.view = new DataView(content.buffer, content.byteOffset, content.length);
  packet.exporter = domain.exporter;
  packet.version = set.version;
  packet.receivedMs = set.receivedMs;
  packet.exportMs = set.exportMs;
  packet.uptimeMs = set.uptimeMs;
  packet.shiftMs = set.shiftMs;
  const records = decodeRecords(packet, domain, known, 0, content.length);
  Object.assign(packet, { view, exporter, version, receivedMs, exportMs, uptimeMs, shiftMs });
  return records;
}

/** Decodes data that waits by the template of another session, where there is one that it may use. */
export function rescueWaiting(packet: Packet, set: WaitingSet, nowMs: number): boolean {
  const { content, domain, templateId } = set;
  const view = new DataView(content.buffer, content.byteOffset, content.length);
  const known = borrow(view, domain, templateId, 0, content.length, nowMs);
  if (!known) return false;
  countDropped(domain, known, known.plan.recordBytes);
  decodeWaiting(packet, known, set);
  return true;
}

function withdraw({ domain, packet, dialect }: SetContext, id: number, options: boolean): void {
  const all = id === (options ? dialect.optionsSet : dialect.templateSet);
  for (const known of domain.templates.values()) {
    if (known.plan.options !== options || !(all || known.plan.id === id)) continue;
    packet.exporter.forgetTemplate(known);
    domain.lack(known.plan.id, "which its exporter has withdrawn");
  }
}

function refuse({ packet, dialect, domain }: SetContext, id: number, why: string): void {
  packet.exporter.drop("bad_template", 1, `template ${id} of ${dialect.name} ${why}`, packet.receivedMs);
  if (!domain.templates.has(id)) domain.lack(id, `which was refused: it ${why}`);
}
