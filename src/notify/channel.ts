import type { lookup as systemLookup } from "node:dns";
import type { Channel as ChannelName } from "../model/rule.ts";
import type { Message } from "./message.ts";

// What a way to tell people is to the rest of the service.

export interface Channel {
  /** Never rejects for what the other side does: that is an outcome. The signal asks to hurry up; not every channel can. */
  send(message: Message, signal: AbortSignal): Promise<Outcome>;
}

/** What has become of one attempt. Texts never hold an address that is a secret, nor a key. */
export type Outcome =
  /** `error`: not everybody got it. */
  | { readonly kind: "sent"; readonly error?: string }
  /** Some have it; these are to be tried again, and nobody else. */
  | { readonly kind: "partly"; readonly error: string; readonly untold: readonly string[] }
  /** The same message has no hope: it was understood and refused. */
  | { readonly kind: "refused"; readonly error: string }
  | {
      readonly kind: "failed";
      readonly error: string;
      /** How long the other side asks to be left alone. */
      readonly retryAfterMs?: number;
      /** Whether it may have got the message all the same. */
      readonly mayHaveArrived: boolean;
    };

/** All that channels are made of: the settings under `notifications`. */
export interface ChannelSettings {
  readonly privateAddresses: boolean;
  readonly slackUrl: string | null;
  readonly emailHost: string | null;
  readonly emailPort: number;
  readonly emailSecurity: "starttls" | "tls" | "none";
  readonly emailUser: string | null;
  readonly emailPassword: string | null;
  readonly emailFrom: string | null;
  readonly emailTo: readonly string[];
  readonly webhookUrl: string | null;
  readonly webhookSecret: string | null;
}

/** What stands between us and the world, where it is not the system's. */
export interface Surroundings {
  readonly lookup?: typeof systemLookup;
  /** Certificates, in PEM, that mail servers' own may be signed by, besides those that the system trusts. */
  readonly certificates?: string;
}

/** Gives the channel, or undefined where the settings have none. */
const NODE_ADVICE = /; if the root CA is installed locally, try running Node\.js with --use-system-ca/;

/** What Node says of a certificate, with the remedy that docs/notifications.md has in place of its own. */
export function withOurAdvice(message: string): string {
  return message.replace(
    NODE_ADVICE,
    "; for one of your own authority start the service with NODE_EXTRA_CA_CERTS=/path/to/authority.pem",
  );
}

export type OpenChannel = (settings: ChannelSettings, surroundings: Surroundings) => Channel | undefined;

export type Channels = ReadonlyMap<ChannelName, Channel>;
