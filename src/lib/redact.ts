// The URL of an incoming webhook is a secret, that of a list may be one, and servers often repeat the URL in their answer.
// People who may read alerts, but not settings, see those answers: secrets are redacted first.

const HIDDEN = "(hidden)";
/** Shorter parts of a URL are words like `hook`, which also occur in harmless text. */
const PART_CHARACTERS_MIN = 8;
/** A shorter password is redacted only together with its user: alone, it would match parts of ordinary words. */
const PASSWORD_CHARACTERS_MIN = 4;
/** A single character is not a secret and occurs in every word. */
const SECRET_CHARACTERS_MIN = 2;
/** Limits the pattern of one secret. Text after the matched beginning, up to a space, is redacted as well. */
const SECRET_CHARACTERS_MAX = 2048;
const SECRETS_MAX = 100;

/** The parts of a URL that are secret. */
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
    // As in the URL, and as sent in the header.
    ...(username + password === "" ? [] : [user.join(":"), Buffer.from(user.join(":")).toString("base64")]),
  ];
}

/** The password of a mail server, plain and as it is sent. The user is not secret and often a mail address. */
export function secretsOfLogin(user: string, password: string): string[] {
  if (password.length < PASSWORD_CHARACTERS_MIN) return [];
  const sent = [password, `\0${user}\0${password}`].map((text) => Buffer.from(text).toString("base64"));
  return [password, ...sent];
}

/** Redacts the secrets in any notation: either case, percent-encoded, in HTML or in JSON. */
export function withoutSecrets(text: string, secrets: readonly string[]): string {
  const patterns = [...new Set(secrets.map((secret) => decoded(secret).replace(/\s+/g, " ")))]
    .filter((secret) => secret.trim().length >= SECRET_CHARACTERS_MIN)
    // Longest first, so that no rest remains of a secret that begins with another.
    .toSorted((a, b) => b.length - a.length)
    .slice(0, SECRETS_MAX)
    .map((secret) => {
      const beginning = Array.from(secret.slice(0, SECRET_CHARACTERS_MAX), patternOf).join("");
      return secret.length > SECRET_CHARACTERS_MAX ? `${beginning}\\S*` : beginning;
    });
  return patterns.length === 0 ? text : text.replace(new RegExp(patterns.join("|"), "giu"), HIDDEN);
}

/** A URL for display, without user, password and query, which may be a key. */
export function shownAddress(text: string): string {
  return shortened(text, ({ pathname, search, hash }) => pathname + (search + hash === "" ? "" : `?${HIDDEN}`));
}

/** A URL for display with nothing but the host: the path may be a key as well. */
export function shownHost(text: string): string {
  return shortened(text, ({ pathname, search, hash }) => (pathname + search + hash === "/" ? "/" : `/${HIDDEN}`));
}

/** Keeps the text before the URL, such as the name of a list. A text without a URL is unchanged. */
function shortened(text: string, restOf: (url: URL) => string): string {
  const [, before, scheme, rest] = /^(.*?)([a-z][a-z0-9+.-]*:\/\/)(.*)$/is.exec(text) ?? [];
  if (before === undefined) return text;
  const url = URL.parse(`${scheme}${rest}`);
  if (!url) return `${before}${scheme}${HIDDEN}`;
  const login = url.username + url.password === "" ? "" : `${HIDDEN}@`;
  return `${before}${url.protocol}//${login}${url.host}${restOf(url)}`;
}

const ENTITIES: Readonly<Record<string, string>> = { "&": "amp", "<": "lt", ">": "gt", '"': "quot", "'": "apos" };

/** A pattern for all notations of the character. */
function patternOf(character: string): string {
  const code = character.codePointAt(0)!;
  const bytes = [...Buffer.from(character)].map((byte) => byte.toString(16).padStart(2, "0"));
  const ways = [
    // Encoded once, or again by a proxy. Before the literal character, or the rest of an encoded percent sign would remain.
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
    // A percent sign that encodes nothing is literal.
    return text;
  }
}
