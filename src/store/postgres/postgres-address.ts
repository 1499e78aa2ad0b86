import type { ConnectionOptions } from "node:tls";
import type { POSTGRES_TLS_MODES } from "../../lib/postgres-url.ts";
import { readSettingFile, settingFileFaults, type UnreadableSettingFile } from "../../lib/setting-file.ts";

// The settings of connections to PostgreSQL, and the files that they name.

export interface PostgresSettings {
  /** `postgres://user:password@host:port,host:port/database`. */
  readonly url: string;
  /** A file with the password, instead of one in the URL. */
  readonly passwordFile: string | null;
  readonly tls: (typeof POSTGRES_TLS_MODES)[number];
  /** Files in PEM. */
  readonly tlsCa: string | null;
  readonly tlsCertificate: string | null;
  readonly tlsKey: string | null;
  readonly poolMax: number;
  readonly connectSeconds: number;
  readonly statementSeconds: number;
}

/** The faults of the files that the settings name. */
export function postgresFileFaults(settings: PostgresSettings): UnreadableSettingFile[] {
  return settingFileFaults(() => {
    readPassword(settings, undefined);
    readTls(settings);
  });
}

const PASSWORD_BYTES_MAX = 4096;

export function readPassword({ passwordFile }: PostgresSettings, inUrl: string | undefined): string | undefined {
  if (passwordFile === null) return inUrl;
  // The last line break belongs to the file, not to the password.
  return readSettingFile("postgres.password_file", passwordFile)
    .slice(0, PASSWORD_BYTES_MAX)
    .replace(/\r?\n$/, "");
}

/** The options of TLS connections, undefined for plain ones. */
export function readTls({ tls, tlsCa, tlsCertificate, tlsKey }: PostgresSettings): ConnectionOptions | undefined {
  if (tls === "off") return undefined;
  return {
    rejectUnauthorized: tls === "verify",
    ...(tlsCa !== null && { ca: readSettingFile("postgres.tls_ca", tlsCa) }),
    ...(tlsCertificate !== null && { cert: readSettingFile("postgres.tls_certificate", tlsCertificate) }),
    ...(tlsKey !== null && { key: readSettingFile("postgres.tls_key", tlsKey) }),
  };
}
