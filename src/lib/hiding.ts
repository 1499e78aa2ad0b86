// The address of an incoming webhook is a secret, that of a list may be one, and servers like to repeat what they were asked
// for. What they say is shown to people who may read alerts and not settings: so what is secret is taken out first.

const HIDDEN = "(hidden)";
/** Shorter parts of an address are words like `hook`, which stand in harmless sentences too. */
const PART_CHARACTERS_MIN = 8;
/** A password that is shorter is hidden together with its user only: it would take letters out of every sentence. */
const PASSWORD_CHARACTERS_MIN = 4;
/** A letter alone is no secret and stands in every word. */
const SECRET_CHARACTERS_MIN = 2;
/** Of one secret, to keep the pattern small; what follows such a beginning, up to a space, is hidden with it. */
const SECRET_CHARACTERS_MAX = 2048;
const SECRETS_MAX = 100;

/** All in the address that only its owner should know. */
export function secretsOfAddress(address: string): string[] {
  const url = URL.parse(address);
  if (!url) return [address];
  const { pathname, search, username, password } = url;
  const whole = pathname + search;
  const parts = [
    ...pathname.split("/"),
    ...[...url.searchParams].flat(),
    pathname.slice(1),
    whole.slice(1),
    search.slice(1),
  ];
  const user = [decoded(username), decoded(password)] as const;
  return [
    whole,
    pathname,
    ...parts.filter((part) => part.length >= PART_CHARACTERS_MIN),
    ...user.filter((part) => part.length >= PASSWORD_CHARACTERS_MIN),
    // As it stands in the address, and as it is sent.
    ...(username + password === "" ? [] : [user.join(":"), Buffer.from(user.join(":")).toString("base64")]),
  ];
}

/** The password of a mail server, alone and in the ways in which it is sent. The user is not a secret and often a mail address. */
export function secretsOfLogin(user: string, password: string): string[] {
  if (password.length < PASSWORD_CHARACTERS_MIN) return [];
  const sent = [password, `\0${user}\0${password}`].map((text) => Buffer.from(text).toString("base64"));
  return [password, ...sent];
}

/** The text without the secrets, however they are written in it: in either case, percent-encoded, in HTML or in JSON. */
export function withoutSecrets(text: string, secrets: readonly string[]): string {
  const patterns = [...new Set(secrets.map((secret) => decoded(secret).replace(/\s+/g, " ")))]
    .filter((secret) => secret.trim().length >= SECRET_CHARACTERS_MIN)
    // The longest first, so that nothing is left of a secret that begins with another.
    .toSorted((a, b) => b.length - a.length)
    .slice(0, SECRETS_MAX)
    .map((secret) => {
      const beginning = Array.from(secret.slice(0, SECRET_CHARACTERS_MAX), patternOf).join("");
      return secret.length > SECRET_CHARACTERS_MAX ? `${beginning}\\S*` : beginning;
    });
  return patterns.length === 0 ? text : text.replace(new RegExp(patterns.join("|"), "giu"), HIDDEN);
}

/** An address as it may be shown to whoever sees settings: its user, its password and its query may be a key. */
export function shownAddress(text: string): string {
  return shortened(text, ({ pathname, search, hash }) => pathname + (search + hash === "" ? "" : `?${HIDDEN}`));
}

/** The same where the path may be a key as well: nothing but the host. */
export function shownHost(text: string): string {
  return shortened(text, ({ pathname, search, hash }) => (pathname + search + hash === "/" ? "/" : `/${HIDDEN}`));
}

/** What stands before the address is kept, such as the name of a list; a text without one is as it was. */
function shortened(text: string, restOf: (url: URL) => string): string {
  const [, before, scheme, rest] = /^(.*?)([a-z][a-z0-9+.-]*:\/\/)(.*)$/is.exec(text) ?? [];
  if (before === undefined) return text;
  const url = URL.parse(`${scheme}${rest}`);
  if (!url) return `${before}${scheme}${HIDDEN}`;
  const login = url.username + url.password === "" ? "" : `${HIDDEN}@`;
  return `${before}${url.protocol}//${login}${url.host}${restOf(url)}`;
}

const ENTITIES: Readonly<Record<string, string>> = { "&": "amp", "<": "lt", ">": "gt", '"': "quot", "'": "apos" };

/** All the ways in which servers write the character. */
function patternOf(character: string): string {
  const code = character.codePointAt(0)!;
  const bytes = [...Buffer.from(character)].map((byte) => byte.toString(16).padStart(2, "0"));
  const ways = [
    // Once, or once more by a proxy on the way; before the character itself, or of an encoded percent sign the rest is left.
    bytes.map((byte) => `%(?:25)?${byte}`).join(""),
    character === " " ? "\\s+|\\+" : RegExp.escape(character),
  ];
  if (!/[\p{L}\p{N}]/u.test(character)) {
    const name = ENTITIES[character];
    ways.push(`&#(?:${code}|x0*${code.toString(16)});`, `\\\\u${code.toString(16).padStart(4, "0")}`);
    if (name !== undefined) ways.push(`&${name};`);
    if (character !== " ") ways.push(`\\\\${RegExp.escape(character)}`);
  }
  return `(?:${ways.join("|")})`;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // A percent sign that encodes nothing is meant as it is.
    return text;
  }
}
