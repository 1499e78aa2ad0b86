import { isIP } from "node:net";
import { z } from "zod";
import { parseAddress, parseCidr } from "./ip.ts";

// Types of settings: accepted values, parsing from text, and documentation.

export const RATE_MAX = 100_000_000;
const PORT_MAX = 65_535;
const LIST_ITEMS_MAX = 1000;
const TEXT_CHARACTERS_MAX = 4096;

export interface SettingMeta {
  readonly about: string;
  readonly allowed: string;
  readonly fallback: unknown;
  /** Never displayed, neither in the list of settings nor in an error. */
  readonly isSecret?: true;
  /** The value is an http or https URL. `tocsin check` resolves those of channels. */
  readonly isUrl?: true;
  /** Redacts a value for display. The default removes the user, password and query of a URL. */
  readonly shownAs?: (text: string) => string;
  /** Converts the text of a variable or a flag to the value that the file would hold. */
  readonly read: (text: string) => unknown;
}

export const settingMeta = z.registry<SettingMeta>();

export function setting<Schema extends z.ZodType>(schema: Schema, meta: SettingMeta): Schema {
  settingMeta.add(schema, meta);
  return schema;
}

const readNumber = (text: string) => (/^-?\d+$/.test(text.trim()) ? Number(text) : text);
export const readText = (text: string) => text;

export const integer = (about: string, fallback: number, min: number, max: number) =>
  setting(z.int().min(min).max(max), {
    about,
    allowed: `a whole number from ${min} to ${max}`,
    fallback,
    read: readNumber,
  });

export const word = (about: string, fallback: string, pattern: RegExp, allowed: string) =>
  setting(z.string().regex(pattern), { about, allowed, fallback, read: readText });

export const choice = <const Names extends readonly string[]>(about: string, fallback: Names[number], names: Names) =>
  setting(z.enum(names), { about, allowed: `one of ${names.join(", ")}`, fallback, read: readText });

export const onOff = (about: string, fallback: "on" | "off") =>
  setting(
    z.union([z.boolean(), z.enum(["on", "off"])]).transform((given) => given === true || given === "on"),
    { about, allowed: "on or off", fallback, read: (text) => text.toLowerCase() },
  );

export const perDay = (about: string, fallback: number | "unlimited") =>
  setting(z.union([z.int().min(1).max(RATE_MAX), z.union([z.literal("unlimited"), z.null()]).transform(() => null)]), {
    about,
    allowed: `a whole number from 1 to ${RATE_MAX}, or unlimited`,
    fallback,
    read: readNumber,
  });

export const perMinute = (about: string, fallback: number) => integer(about, fallback, 1, RATE_MAX);

/** `192.0.2.53`, `192.0.2.53:5353`, `2001:db8::53` or `[2001:db8::53]:5353`. */
export function isResolver(text: string): boolean {
  const parts = /^\[(.+)\](?::(\d{1,5}))?$/.exec(text) ?? /^([\d.]+)(?::(\d{1,5}))?$/.exec(text) ?? [];
  const [, address = text, port = "53"] = parts;
  return parseAddress(address) !== undefined && Number(port) > 0 && Number(port) < 65_536;
}

/** YAML 1.2 parses a bare `off` as a string; `false` means the same. */
const off = z.union([z.literal("off"), z.literal(false), z.null()]).transform(() => null);

export const portOrOff = (about: string, fallback: number | "off") =>
  setting(z.union([z.int().min(0).max(PORT_MAX), off]), {
    about,
    allowed: `a whole number from 0 to ${PORT_MAX}, or off`,
    fallback,
    read: readNumber,
  });

const readList = (text: string) =>
  text
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "");

interface ListSettingMeta {
  readonly about: string;
  /** A plural noun for the items: `addresses and networks`. */
  readonly items: string;
  readonly fallback: readonly string[];
  readonly min?: number;
  readonly max?: number;
  readonly shownAs?: (text: string) => string;
}

export const list = (
  isItem: (item: string) => boolean,
  { about, items, fallback, min = 0, max = LIST_ITEMS_MAX, shownAs }: ListSettingMeta,
) =>
  setting(z.array(z.string().refine(isItem)).min(min).max(max), {
    about,
    allowed: `a list of ${min > 0 ? `${min} to` : "at most"} ${max} ${items} (separated by commas in a variable or a flag)`,
    fallback,
    read: readList,
    ...(shownAs && { shownAs }),
  });

export const addresses = (about: string) =>
  list((item) => isIP(item) !== 0, { about, items: "addresses", fallback: ["0.0.0.0", "::"], min: 1, max: 32 });

export const networks = (about: string) =>
  list((item) => parseCidr(item) !== undefined, { about, items: "addresses and networks", fallback: [] });

/** Text, or the word `none` for no value, which becomes null. */
const textOr = (
  none: string,
  schema: z.ZodType<string, string>,
  { allowed, ...meta }: Pick<SettingMeta, "about" | "allowed" | "isSecret" | "isUrl">,
) =>
  setting(z.union([z.union([z.literal(none), off]).transform(() => null), schema]), {
    ...meta,
    allowed: `${allowed}, or ${none}`,
    fallback: none,
    read: readText,
  });

const text = z.string().min(1).max(TEXT_CHARACTERS_MAX);
const url = text.refine((given) => /^https?:$/.test(URL.parse(given)?.protocol ?? ""));

export const fileOr = (none: string, about: string) =>
  textOr(none, text.regex(/^[^\0]+$/), { about, allowed: "a path, relative to the working folder" });

export const textOrOff = (about: string, allowed: string, pattern = /./) =>
  textOr("off", text.regex(pattern), { about, allowed });

const URL_ALLOWED = "a URL that starts with http:// or https://";

export const urlOr = (none: string, about: string) => textOr(none, url, { about, allowed: URL_ALLOWED, isUrl: true });

/** A shorter signing secret can be brute-forced from one observed signature. */
const SIGNING_SECRET_CHARACTERS_MIN = 16;
/** A shorter password or key, issued by somebody else, is a typing error. */
const CREDENTIAL_CHARACTERS_MIN = 4;

const secretOf = (charactersMin: number) => (about: string) =>
  textOr(
    "off",
    text.refine((given) => given.trim().length >= charactersMin),
    { about, allowed: `a secret of at least ${charactersMin} characters`, isSecret: true },
  );
export const signingSecretOrOff = secretOf(SIGNING_SECRET_CHARACTERS_MIN);
export const credentialOrOff = secretOf(CREDENTIAL_CHARACTERS_MIN);

/** A secret of a known form, such as a token that becomes part of a URL. */
export const secretTextOrOff = (about: string, allowed: string, pattern: RegExp) =>
  textOr("off", text.regex(pattern), { about, allowed, isSecret: true });

/** A key or token that is sent in a header: a line break in it would end the header. */
export const tokenOrOff = (about: string) =>
  secretTextOrOff(about, "at least 8 printable characters without spaces", /^[\x21-\x7e]{8,1024}$/);

/** The base URL of a service whose makers run it at a known address, and others at their own. */
export const urlWithDefault = (about: string, fallback: string) =>
  setting(url, { about, allowed: URL_ALLOWED, fallback, isUrl: true, read: readText });

/** A URL that grants access to anybody who knows it, such as an incoming webhook. */
export const secretUrlOrOff = (about: string) =>
  textOr("off", url, { about, allowed: URL_ALLOWED, isSecret: true, isUrl: true });
