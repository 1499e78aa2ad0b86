import {
  ipfix,
  ipfixOptions,
  ipv4,
  record,
  set,
  template,
  v9,
  v9Options,
  type ExportHeader,
  type FieldSpec,
  type FieldValue,
} from "../packets.fixture.ts";

// Templates and records that the tests of NetFlow v9 and IPFIX share.

export const T0 = 1_700_000_000_000;
export const MINUTE = 60_000;

export const ADDRESSES: readonly FieldSpec[] = [
  [8, 4],
  [12, 4],
];
export const ADDRESS_VALUES: readonly FieldValue[] = [ipv4("10.0.0.1"), ipv4("10.0.0.2")];
/** Addresses and bytes. */
export const BYTES_FIELDS: readonly FieldSpec[] = [...ADDRESSES, [1, 4]];
export const BYTES_VALUES: readonly FieldValue[] = [...ADDRESS_VALUES, 1000];
/** Addresses, bytes and packets. */
export const COUNTER_FIELDS: readonly FieldSpec[] = [...BYTES_FIELDS, [2, 4]];
export const COUNTER_VALUES: readonly FieldValue[] = [...BYTES_VALUES, 10];
export const COUNTER_FLOW = { src: "10.0.0.1", dst: "10.0.0.2", bytes: 1000n, packets: 10n };

/** Options of the whole domain: its sampling rate. */
export const SCOPE: readonly FieldSpec[] = [[1, 4]];
export const RATE: readonly FieldSpec[] = [[34, 4]];

export const ipv6 = (last: number) => Uint8Array.of(0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last);

function dialectOf(
  name: string,
  templates: number,
  options: number,
  build: (sets: readonly Uint8Array[], header?: ExportHeader) => Uint8Array,
  optionsTemplate: typeof v9Options,
) {
  return {
    name,
    /** Ids of template sets and of options template sets. */
    templates,
    options,
    build,
    optionsTemplate,
    /** A packet with template 256. */
    describing: (fields: readonly FieldSpec[]) => build([set(templates, template(256, fields))]),
    /** A packet with template 256 and one record of it. */
    withRecord: (fields: readonly FieldSpec[], values: readonly FieldValue[]) =>
      build([set(templates, template(256, fields)), set(256, record(fields, values))]),
  };
}

export const V9 = dialectOf("v9", 0, 1, v9, v9Options);
export const IPFIX = dialectOf("IPFIX", 2, 3, ipfix, ipfixOptions);
export const DIALECTS = [V9, IPFIX];
