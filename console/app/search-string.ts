// The address bar is the state of a screen, and reads as typed: /alerts?status=open&severity=critical,high. The router's own form
// would write each value as JSON.

export function parseSearch(text: string): Record<string, string> {
  return Object.fromEntries(new URLSearchParams(text));
}

export function stringifySearch(search: Record<string, unknown>): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(search)) {
    if (typeof value === "string" && value !== "") parameters.set(name, value);
  }
  // These are legal in a query, and easier to read.
  const text = parameters.toString().replaceAll(/%(?:2C|3A|2F|3D|21|7E|40)/g, decodeURIComponent);
  return text === "" ? "" : `?${text}`;
}
