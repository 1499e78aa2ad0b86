const NODE_ADVICE = /; if the root CA is installed locally, try running Node\.js with --use-system-ca/;

/** Replaces Node's advice about an untrusted certificate with the remedy that docs/notifications.md describes. */
export function withTlsAdvice(message: string): string {
  return message.replace(
    NODE_ADVICE,
    "; for one of your own authority start the service with NODE_EXTRA_CA_CERTS=/path/to/authority.pem",
  );
}
