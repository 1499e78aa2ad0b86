import type { DescribedTest } from "./description.ts";

/** What a value must be, as a function. */
export function valueTester(test: DescribedTest): (value: string | undefined) => boolean {
  const { is, not, begins, ends, contains, exists } = {
    not: undefined,
    begins: undefined,
    ends: undefined,
    contains: undefined,
    exists: undefined,
    ...test,
  };
  const isOnlyWords = [not, begins, ends, contains, exists].every((test) => test === undefined);
  if (isOnlyWords && is?.length === 1) {
    const [word] = is;
    return (value) => value === word;
  }
  const accepted = is && new Set(is);
  if (isOnlyWords && accepted !== undefined) return (value) => value !== undefined && accepted.has(value);
  const refused = not && new Set(not);
  return (value) => {
    if (exists === false) return value === undefined || value === "";
    if (value === undefined) return false;
    if (exists === true && value === "") return false;
    if (accepted !== undefined && !accepted.has(value)) return false;
    if (refused?.has(value)) return false;
    if (begins !== undefined && !begins.some((text) => value.startsWith(text))) return false;
    if (ends !== undefined && !ends.some((text) => value.endsWith(text))) return false;
    return contains === undefined || contains.some((text) => value.includes(text));
  };
}
