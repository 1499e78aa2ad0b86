// The URL of a PostgreSQL database, which may have several hosts.

/** `off`: plain text. `require`: encrypted, to any server. `verify`: encrypted, to the server that its certificate names. */
export const POSTGRES_TLS_MODES = ["off", "require", "verify"] as const;

export interface PostgresHost {
  readonly host: string;
  readonly port: number;
}

export interface PostgresAddress {
  /** In the order in which they are tried. */
  readonly hosts: readonly PostgresHost[];
  readonly user: string;
  readonly password: string | undefined;
  readonly database: string;
}

const DEFAULT_PORT = 5432;
export const POSTGRES_HOSTS_MAX = 10;
const URL_PARTS = /^postgres(?:ql)?:\/\/(?:([^@/?#]*)@)?([^@/?#]+)\/([^/?#]+)$/;
/** A name or IPv4 address, or an IPv6 address in brackets, with or without a port. */
const HOST = /^(?:\[([0-9A-Fa-f:.%]+)\]|([A-Za-z0-9._-]+))(?::(\d{1,5}))?$/;

/** Undefined if the text is not such a URL. A URL of several hosts cannot be parsed by `URL`. */
export function parsePostgresUrl(text: string): PostgresAddress | undefined {
  const [, login = "", hostList = "", database = ""] = URL_PARTS.exec(text) ?? [];
  const hosts = hostList.split(",").map(parseHost);
  const colon = login.indexOf(":");
  const user = decode(colon < 0 ? login : login.slice(0, colon));
  const password = colon < 0 ? undefined : decode(login.slice(colon + 1));
  const name = decode(database);
  const isPassword = colon < 0 || password !== undefined;
  if (hosts.length > POSTGRES_HOSTS_MAX || !hosts.every((host) => host !== undefined)) return undefined;
  if (!user || !name || !isPassword) return undefined;
  return { hosts, user, password, database: name };
}

function parseHost(text: string): PostgresHost | undefined {
  const [, address, name, port = String(DEFAULT_PORT)] = HOST.exec(text) ?? [];
  const host = address ?? name;
  if (host === undefined || Number(port) < 1 || Number(port) > 65_535) return undefined;
  return { host, port: Number(port) };
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    // A percent sign that encodes nothing: not a URL.
    return undefined;
  }
}

/** The URL for display: without user and password. */
export function shownPostgresUrl(text: string): string {
  const address = parsePostgresUrl(text);
  if (!address) return "(hidden)";
  return `postgres://${address.hosts.map(shownPostgresHost).join(",")}/${address.database}`;
}

export function shownPostgresHost({ host, port }: PostgresHost): string {
  return `${host.includes(":") ? `[${host}]` : host}:${port}`;
}
