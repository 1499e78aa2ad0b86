import { readFileSync, statSync } from "node:fs";
import { createSecureContext } from "node:tls";

// PEM files for TLS.

export interface TlsSettings {
  readonly tlsCertificate: string | null;
  readonly tlsKey: string | null;
  readonly tlsClientCa: string | null;
}

export interface TlsFiles {
  readonly cert: string;
  readonly key: string;
  readonly ca?: string;
}

/** Reads the files and checks that key and certificate match. */
export function readTlsFiles({ tlsCertificate, tlsKey, tlsClientCa }: TlsSettings): TlsFiles {
  const tls = {
    cert: readPem("collectors.tls_certificate", tlsCertificate),
    key: readPem("collectors.tls_key", tlsKey),
    ...(tlsClientCa !== null && { ca: readPem("collectors.tls_client_ca", tlsClientCa) }),
  };
  try {
    createSecureContext(tls);
  } catch (error) {
    const files = "collectors.tls_certificate, collectors.tls_key and collectors.tls_client_ca";
    const { message } = error as Error;
    throw new TlsFailure(
      "collectors.tls_certificate",
      `TLS cannot use ${files}: ${message}.\nThe files must be PEM, and the key must belong to the certificate.`,
    );
  }
  return tls;
}

function readPem(setting: string, path: string | null): string {
  const flag = `--${setting.replaceAll(/[._]/g, "-")}`;
  const remedy = `Name a file with ${flag}, or close the collector with --syslog-tls-port off.`;
  if (path === null)
    throw new TlsFailure(setting, `Syslog over TLS (setting syslog_tls_port) needs ${setting}.\n${remedy}`);
  try {
    // Reading anything else, such as a pipe, could block for ever.
    if (!statSync(path).isFile()) throw new Error("it is not a file");
    return readFileSync(path, "utf8");
  } catch (error) {
    const { message } = error as Error;
    throw new TlsFailure(setting, `The file in ${setting} cannot be read: ${message}.\n${remedy}`, { cause: error });
  }
}

export class TlsFailure extends Error {
  readonly setting: string;
  constructor(setting: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "ListenFailure";
    this.setting = setting;
  }
}
