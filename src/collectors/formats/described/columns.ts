import { FIELDS_MAX } from "../device-values.ts";

// A line of values without names, such as CSV. Values in quotes may contain the separator; a doubled quote is a quote.

export function splitColumns(text: string, start: number, separator: string, max = FIELDS_MAX): string[] {
  const values: string[] = [];
  let at = start;
  while (at <= text.length && values.length < max) {
    if (text.charCodeAt(at) === 0x22) {
      const end = closingQuote(text, at);
      values.push(text.slice(at + 1, end).replaceAll('""', '"'));
      const next = text.indexOf(separator, end);
      if (next < 0) break;
      at = next + separator.length;
      continue;
    }
    const next = text.indexOf(separator, at);
    values.push(next < 0 ? text.slice(at) : text.slice(at, next));
    if (next < 0) break;
    at = next + separator.length;
  }
  return values;
}

function closingQuote(text: string, start: number): number {
  let at = text.indexOf('"', start + 1);
  while (at >= 0 && text.charCodeAt(at + 1) === 0x22) at = text.indexOf('"', at + 2);
  return at < 0 ? text.length : at;
}
