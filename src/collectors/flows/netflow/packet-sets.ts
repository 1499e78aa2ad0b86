import { sameBytes, type FlowExporter } from "../flow-exporter.ts";
import type { FlowPacket } from "../flow-packet.ts";
import type { ObservationDomain, KnownTemplate } from "./observation-domain.ts";
import { commonRate, readFlow, readOptions } from "./record-reader.ts";
import { compileTemplate, measureRecord, type RecordTemplate, type TemplateField } from "./record-template.ts";
import type { UndecodedSets, UndecodedSet } from "./undecoded-sets.ts";

// The sets of a v9 or IPFIX packet: templates, options templates, and data under the id of its template.

const SET_HEADER_BYTES = 4;
const DATA_SET_ID_MIN = 256;
const ENTERPRISE_BIT = 0x8000;
/** A session may borrow a template only after the template's own session has been silent for this long. */
const BORROW_DELAY_MS = 2000;

export interface Dialect {
  readonly name: string;
  readonly templateSet: number;
  readonly optionsSet: number;
  /** True for IPFIX: fields may belong to an enterprise, templates can be withdrawn, scopes are counted in fields. */
  readonly ipfix: boolean;
}

export interface DecodeContext {
  readonly packet: FlowPacket;
  readonly undecoded: UndecodedSets;
}

interface SetContext extends DecodeContext {
  readonly dialect: Dialect;
  readonly domain: ObservationDomain;
}

/** Returns the number of data records; undefined if a missing template made them uncountable. */
export function decodeSets(context: SetContext, start: number, end: number): number | undefined {
  const { packet, dialect } = context;
  const { view, exporter } = packet;
  let records: number | undefined = 0;
  let at = start;
  while (end - at >= SET_HEADER_BYTES) {
    const id = view.getUint16(at);
    const length = view.getUint16(at + 2);
    // Zeros: the rest of the packet is padding.
    if (id === 0 && length === 0) break;
    if (length < SET_HEADER_BYTES || at + length > end) {
      const reason = length < SET_HEADER_BYTES ? "malformed" : "truncated";
      const message = `a ${dialect.name} set declares ${length} bytes, but ${end - at} are left in the packet`;
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
      exporter.drop("malformed", 1, `a ${dialect.name} set has the reserved id ${id}`, packet.receivedMs);
    }
    at = setEnd;
  }
  return records;
}

function decodeData(context: SetContext, id: number, at: number, end: number): number | undefined {
  const { packet, domain } = context;
  const { exporter, receivedMs, exportMs, uptimeMs, shiftMs, view } = packet;
  const known = domain.templates.get(id) ?? borrowTemplate(exporter, view, domain, id, at, end, receivedMs);
  if (known) {
    if (known.domain !== domain) recountDropped(exporter, domain, known, known.plan.recordBytes);
    return decodeRecords(packet, domain, known, at, end);
  }
  domain.absent.noteMissing(id, receivedMs);
  // A copy: the next packet overwrites the bytes of this one.
  const content = new Uint8Array(view.buffer, view.byteOffset + at, end - at).slice();
  const { version } = packet;
  const clock = { receivedMs, exportMs, uptimeMs, shiftMs };
  context.undecoded.add({ exporter, domain, version, templateId: id, content, ...clock });
  return undefined;
}

/**
 * The template of another session of the same exporter. This is a guess, so the other session must have been silent for a while
 * and records of the template must fill the set exactly.
 */
function borrowTemplate(
  exporter: FlowExporter,
  view: DataView,
  domain: ObservationDomain,
  id: number,
  at: number,
  end: number,
  nowMs: number,
): KnownTemplate | undefined {
  const known = exporter.borrowTemplate(domain, id);
  if (known === "ambiguous") {
    domain.absent.setReason(id, "which other sessions of the address have sent, but not the session of the data");
    return undefined;
  }
  if (!known || nowMs - Math.max(domain.firstSeenMs, known.domain.firstSeenMs) < BORROW_DELAY_MS) return undefined;
  return fillsSet(known.plan, view, at, end) ? known : undefined;
}

/** True if records of the template fill the set, up to padding. */
function fillsSet(template: RecordTemplate, view: DataView, start: number, end: number): boolean {
  const { recordBytes, varying } = template;
  if (!varying) return end - start >= recordBytes && isPadding(view, end - ((end - start) % recordBytes), end);
  let at = start;
  for (let length = 0; length >= 0; at += Math.max(0, length)) {
    length = end - at < recordBytes ? -1 : measureRecord(template, view, at, end);
  }
  return at > start && isPadding(view, at, end);
}

function decodeRecords(
  packet: FlowPacket,
  own: ObservationDomain,
  known: KnownTemplate,
  start: number,
  end: number,
): number {
  const { view, exporter, receivedMs } = packet;
  const template = known.plan;
  const { recordBytes, varying, options } = template;
  let at = start;
  let records = 0;
  let unaddressed = 0;
  const domain = options ? own : exporter.optionsOf(own);
  const rate = commonRate(template, domain);
  // A remainder shorter than a record is padding.
  while (end - at >= recordBytes) {
    let length = recordBytes;
    if (varying) {
      length = measureRecord(template, view, at, end);
      if (length < 0) {
        if (!isPadding(view, at, end)) {
          const message = `a record of template ${template.id} exceeds its set`;
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
    exporter.registerOptions(domain);
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
      withdrawTemplates(context, id, options);
      at += 4;
      continue;
    }
    const parsed = parseTemplate(view, at, end, options, dialect.ipfix);
    if (typeof parsed === "string") return refuseTemplate(context, id, parsed);
    learnTemplate(context, id, options, parsed, at);
    at = parsed.next;
  }
}

interface ParsedTemplate {
  readonly fields: readonly TemplateField[];
  /** Leading v9 fields whose numbers are scope types. */
  readonly scopes: number;
  /** The end of this template, and the start of the next. */
  readonly end: number;
  readonly next: number;
}

function parseTemplate(
  view: DataView,
  at: number,
  end: number,
  options: boolean,
  ipfix: boolean,
): ParsedTemplate | string {
  // For the scopes and fields of an options template, v9 gives lengths in bytes and IPFIX gives counts.
  const headerBytes = options ? 6 : 4;
  if (view.getUint16(at) < DATA_SET_ID_MIN || end - at < headerBytes) return "is truncated or has a reserved id";
  const count = view.getUint16(at + 2);
  const second = options ? view.getUint16(at + 4) : 0;
  const fieldCount = options && !ipfix ? (count + second) >> 2 : count;
  const parsed = parseFields(view, at + headerBytes, end, fieldCount, ipfix);
  if (!parsed) return `declares ${fieldCount} fields, more than its set holds`;
  // v9 lengths need not be multiples of a field's length, but they determine where the next template starts.
  const next = options && !ipfix ? Math.max(parsed.next, at + headerBytes + count + second) : parsed.next;
  if (next > end) return "exceeds its set";
  return { fields: parsed.fields, scopes: options && !ipfix ? count >> 2 : 0, end: parsed.next, next };
}

/** Parses the saved bytes of a template; undefined if they are not a template. */
export function parseSavedTemplate(spec: Uint8Array, options: boolean, ipfix: boolean): RecordTemplate | undefined {
  if (spec.length < 4) return undefined;
  const view = new DataView(spec.buffer, spec.byteOffset, spec.length);
  const parsed = parseTemplate(view, 0, spec.length, options, ipfix);
  if (typeof parsed === "string") return undefined;
  const compiled = compileTemplate(view.getUint16(0), options, parsed.fields, parsed.scopes, spec);
  return typeof compiled === "string" ? undefined : compiled;
}

function parseFields(
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
    const id = view.getUint16(at);
    const length = view.getUint16(at + 2);
    at += 4;
    if (enterprises && id & ENTERPRISE_BIT) {
      if (at + 4 > end) return undefined;
      fields.push({ id: id & ~ENTERPRISE_BIT, enterprise: view.getUint32(at), length });
      at += 4;
    } else fields.push({ id, enterprise: 0, length });
  }
  return { fields, next: at };
}

function learnTemplate(context: SetContext, id: number, options: boolean, parsed: ParsedTemplate, at: number): void {
  const { packet, domain } = context;
  const { view, exporter, receivedMs } = packet;
  const spec = new Uint8Array(view.buffer, view.byteOffset + at, parsed.end - at);
  const before = domain.templates.get(id);
  if (before && before.plan.options === options && sameBytes(before.plan.spec, spec)) {
    before.sentMs = receivedMs;
    return;
  }
  const compiled =
    exporter.findTemplate(domain, id, options, spec) ??
    compileTemplate(id, options, parsed.fields, parsed.scopes, spec.slice());
  if (typeof compiled === "string") return refuseTemplate(context, id, compiled);
  const known = exporter.learnTemplate(domain, compiled, receivedMs);
  let [records, bytes] = [0, 0];
  for (const set of context.undecoded.take(domain, id)) {
    records += decodeUndecoded(packet, known, set);
    bytes += set.content.length;
  }
  // Dropped records of variable length are assumed to have the average length of the decoded ones.
  const recordBytes = compiled.varying && records > 0 ? bytes / records : compiled.recordBytes;
  recountDropped(exporter, domain, known, recordBytes);
}

/** Recounts the dropped sets of a template in records, now that the template is known. */
function recountDropped(
  exporter: FlowExporter,
  domain: ObservationDomain,
  { plan }: KnownTemplate,
  recordBytes: number,
): void {
  const absent = domain.absent.take(plan.id);
  if (absent) exporter.countDroppedRecords(absent.droppedSets, Math.floor(absent.droppedBytes / recordBytes));
}

/** Decodes a set with the clock of its own packet, then restores the current packet. Returns the number of records. */
function decodeUndecoded(packet: FlowPacket, known: KnownTemplate, set: UndecodedSet): number {
  const { view, exporter, version, receivedMs, exportMs, uptimeMs, shiftMs } = packet;
  const { content, domain } = set;
  packet.view = new DataView(content.buffer, content.byteOffset, content.length);
  packet.exporter = set.exporter;
  packet.version = set.version;
  packet.receivedMs = set.receivedMs;
  packet.exportMs = set.exportMs;
  packet.uptimeMs = set.uptimeMs;
  packet.shiftMs = set.shiftMs;
  const records = decodeRecords(packet, domain, known, 0, content.length);
  Object.assign(packet, { view, exporter, version, receivedMs, exportMs, uptimeMs, shiftMs });
  return records;
}

/** Decodes a set with the template of another session; false if there is none that it may use. */
export function decodeBorrowed(packet: FlowPacket, set: UndecodedSet, nowMs: number): boolean {
  const { exporter, content, domain, templateId } = set;
  const view = new DataView(content.buffer, content.byteOffset, content.length);
  const known = borrowTemplate(exporter, view, domain, templateId, 0, content.length, nowMs);
  if (!known) return false;
  recountDropped(exporter, domain, known, known.plan.recordBytes);
  decodeUndecoded(packet, known, set);
  return true;
}

function withdrawTemplates({ domain, packet, dialect }: SetContext, id: number, options: boolean): void {
  const all = id === (options ? dialect.optionsSet : dialect.templateSet);
  for (const known of domain.templates.values()) {
    if (known.plan.options !== options || !(all || known.plan.id === id)) continue;
    packet.exporter.removeTemplate(known);
    domain.absent.setReason(known.plan.id, "which the exporter has withdrawn");
  }
}

function refuseTemplate({ packet, dialect, domain }: SetContext, id: number, reason: string): void {
  packet.exporter.drop("bad_template", 1, `template ${id} of ${dialect.name} ${reason}`, packet.receivedMs);
  if (!domain.templates.has(id)) domain.absent.setReason(id, `which was refused: it ${reason}`);
}
