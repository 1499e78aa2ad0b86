/** Fails to compile when a closed set has a case that the switch does not handle. */
export function unreachable(value: never): never {
  throw new Error(`unhandled case: ${String(value)}`);
}
