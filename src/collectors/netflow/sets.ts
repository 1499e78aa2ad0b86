import type { Packet } from "../packet.ts";
import type { Domain } from "./domain.ts";
import { rateOfAll, readFlow, readOptions } from "./record.ts";
import { compileTemplate, measureRecord, type Template, type TemplateField } from "./template.ts";
import type { TemplateRoom } from "./room.ts";
import type { WaitingRoom, WaitingSet } from "./waiting.ts";

// The sets that a packet of v9 or IPFIX is made of: templates, templates of options, and data by the id of its template.

const SET_HEADER_BYTES = 4;
const DATA_SET_ID_MIN = 256;
const ENTERPRISE_BIT = 0x8000;

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
  readonly domainKey: number;
  readonly waiting: WaitingRoom;
  readonly room: TemplateRoom;
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
  const template = domain.templates.get(id);
  if (template) return decodeRecords(packet, domain, template, at, end);
  const { exporter, receivedMs, exportMs, uptimeMs, shiftMs, view } = packet;
  exporter.misses(id, receivedMs);
  // A copy: the packet's own bytes are written over by the next one.
  const content = new Uint8Array(view.buffer, view.byteOffset + at, end - at).slice();
  const { domainKey } = context;
  context.waiting.keep({ exporter, domainKey, templateId: id, content, receivedMs, exportMs, uptimeMs, shiftMs });
  return undefined;
}

function decodeRecords(packet: Packet, domain: Domain, template: Template, start: number, end: number): number {
  const { view, exporter } = packet;
  const { recordBytes, varying, options } = template;
  let at = start;
  let records = 0;
  let unaddressed = 0;
  const rate = rateOfAll(template, domain);
  // Less than a record is left: padding.
  while (end - at >= recordBytes) {
    let length = recordBytes;
    if (varying) {
      length = measureRecord(template, view, at, end);
      if (length < 0) {
        if (!isPadding(view, at, end)) {
          const message = `a record of template ${template.id} reaches beyond its set`;
          exporter.drop("truncated", 1, message, packet.receivedMs);
        }
        break;
      }
    }
    if (options) readOptions(packet, domain, template, at);
    else if (!readFlow(packet, domain, template, at, rate)) unaddressed++;
    records++;
    at += length;
  }
  if (options) exporter.optionRecords += records;
  else if (records > unaddressed) {
    exporter.records += records - unaddressed;
    exporter.lastRecordMs = packet.receivedMs;
  }
  if (unaddressed > 0) exporter.drops.no_address += unaddressed;
  return records;
}

function isPadding(view: DataView, at: number, end: number): boolean {
  for (let position = at; position < end; position++) if (view.getUint8(position) !== 0) return false;
  return true;
}

function readTemplates(context: SetContext, start: number, end: number, options: boolean): void {
  const { dialect } = context;
  // v9 tells the lengths of an options template's scopes and fields in bytes, IPFIX their numbers.
  const headerBytes = options ? 6 : 4;
  const { view } = context.packet;
  let at = start;
  while (end - at >= 4) {
    const id = view.getUint16(at);
    if (id === 0) return;
    const count = view.getUint16(at + 2);
    if (dialect.ipfix && count === 0) {
      withdraw(context, id, options);
      at += 4;
      continue;
    }
    if (id < DATA_SET_ID_MIN || end - at < headerBytes) return refuse(context, id, "is cut short or has a reserved id");
    const second = options ? view.getUint16(at + 4) : 0;
    const fieldCount = options && !dialect.ipfix ? (count + second) >> 2 : count;
    const scopes = options ? (dialect.ipfix ? second : count >> 2) : 0;
    const read = readFields(view, at + headerBytes, end, fieldCount, dialect.ipfix);
    if (!read) return refuse(context, id, `says it has ${fieldCount} fields, more than its set holds`);
    // The lengths of v9 need not be multiples of a field's; what they say is where the next template begins.
    const next = options && !dialect.ipfix ? Math.max(read.next, at + headerBytes + count + second) : read.next;
    if (next > end) return refuse(context, id, "reaches beyond its set");
    learn(context, id, options, read.fields, dialect.ipfix ? 0 : scopes, at, read.next);
    at = next;
  }
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

function learn(
  context: SetContext,
  id: number,
  options: boolean,
  fields: readonly TemplateField[],
  scopes: number,
  at: number,
  end: number,
): void {
  const { packet, domain } = context;
  const { view, exporter, receivedMs } = packet;
  const spec = new Uint8Array(view.buffer, view.byteOffset + at, end - at);
  const known = domain.templates.get(id);
  if (known && known.options === options && sameBytes(known.spec, spec)) return;
  const compiled = compileTemplate(id, options, fields, scopes, spec.slice());
  if (typeof compiled === "string") return refuse(context, id, compiled);
  if (!known && !context.room.admit(exporter)) {
    const message = `template ${id} was not taken: there are too many`;
    exporter.drop("too_many_templates", 1, message, receivedMs);
    return;
  }
  domain.templates.set(id, compiled);
  exporter.missing.delete(id);
  for (const set of context.waiting.take(exporter, context.domainKey, id)) decodeWaiting(packet, domain, compiled, set);
}

function sameBytes(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && left.every((byte, index) => byte === right[index]);
}

/** With the clock of the packet that it came in, then back to the one that is being read. */
function decodeWaiting(packet: Packet, domain: Domain, template: Template, set: WaitingSet): void {
  const { view, receivedMs, exportMs, uptimeMs, shiftMs } = packet;
  const { content } = set;
  packet.view = new DataView(content.buffer, content.byteOffset, content.length);
  packet.receivedMs = set.receivedMs;
  packet.exportMs = set.exportMs;
  packet.uptimeMs = set.uptimeMs;
  packet.shiftMs = set.shiftMs;
  decodeRecords(packet, domain, template, 0, content.length);
  Object.assign(packet, { view, receivedMs, exportMs, uptimeMs, shiftMs });
}

function withdraw({ domain, packet, dialect, room }: SetContext, id: number, options: boolean): void {
  const all = id === (options ? dialect.optionsSet : dialect.templateSet);
  for (const template of domain.templates.values()) {
    if (template.options !== options || !(all || template.id === id)) continue;
    domain.templates.delete(template.id);
    room.release(packet.exporter, 1);
  }
}

function refuse({ packet, dialect }: SetContext, id: number, why: string): void {
  packet.exporter.drop("bad_template", 1, `template ${id} of ${dialect.name} ${why}`, packet.receivedMs);
}
