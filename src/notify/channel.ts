import type { z } from "zod";
import { settingMeta } from "../lib/setting-types.ts";
import type { Channel } from "../model/rule.ts";
import type { Message } from "./message.ts";

// The interface of a notification channel. A channel's file in channels/ holds everything about it: its settings, the
// checks between them, its documentation and how it sends.

/** Sends messages on a configured channel. */
export interface ChannelSender {
  /** True if the channel keeps a record of each alert: it is told whenever the alert's status changes. */
  readonly followsAlerts?: true;
  /** The most notifications of one message, if the channel has a limit of its own. */
  readonly messageMax?: number;
  /** Never rejects because of the peer: that is an outcome. Not every channel can honour the signal. */
  send(message: Message, signal: AbortSignal): Promise<SendOutcome>;
}

export type ConfiguredChannels = ReadonlyMap<Channel, ChannelSender>;

/** The result of one attempt. Its texts never contain a secret URL or a key. */
export type SendOutcome =
  /** `error`: some recipients were refused for good. */
  | { readonly kind: "sent"; readonly error?: string }
  /** Some recipients have the message. Only those in `untold` are tried again, after the delay that the peer asked for. */
  | {
      readonly kind: "partly";
      readonly error: string;
      readonly untold: readonly string[];
      readonly retryAfterMs?: number;
    }
  /** The peer refused the message for good: a retry cannot succeed. */
  | { readonly kind: "refused"; readonly error: string }
  | {
      readonly kind: "failed";
      readonly error: string;
      /** The delay that the peer asked for. */
      readonly retryAfterMs?: number;
      /** The peer may have received the message despite the failure. */
      readonly mayHaveArrived: boolean;
    };

export interface ChannelPost {
  readonly method?: "POST" | "PUT";
  readonly url: string;
  /** JSON. */
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Secrets besides the URL, which are redacted from the peer's answer. */
  readonly secrets?: readonly string[];
  /** Reads the delay that the peer asks for from its JSON answer, where that is not in `Retry-After`. */
  readonly delayMsOf?: (answer: PeerAnswer) => number | undefined;
  /** Reads the outcome from the JSON of an answer with 2xx, where that does not mean that all is well. */
  readonly outcomeOf?: (answer: PeerAnswer) => SendOutcome;
}

/** A JSON object from a peer: nothing about it is certain. */
export type PeerAnswer = Readonly<Record<string, unknown>>;

/** The connections that a channel sends through. */
export interface ChannelTransport {
  /** Posts to a peer. Unless the settings allow private addresses, the peer must be at a public one. */
  readonly post: (post: ChannelPost, signal: AbortSignal) => Promise<SendOutcome>;
  /** Additional trusted certificate authorities for mail servers, in PEM. */
  readonly certificates?: string | undefined;
}

type SettingShape = Readonly<Record<string, z.ZodType>>;
type SettingsOf<Shape extends SettingShape> = { readonly [Key in keyof Shape]: z.output<Shape[Key]> };
type SettingName<Shape> = keyof Shape & string;

/** The settings of a configured channel: the required ones are set. */
type ConfiguredSettings<Shape extends SettingShape, Required> = {
  readonly [Key in keyof Shape]: Key extends Required ? NonNullable<z.output<Shape[Key]>> : z.output<Shape[Key]>;
};

/** `setting` must be set when `because` is. */
interface SettingNeed<Name extends string> {
  readonly setting: Name;
  readonly because: Name;
  readonly why: string;
}

/** A value that is wrong in combination with others. */
interface SettingConflict<Name extends string> {
  readonly setting: Name;
  readonly message: string;
}

interface ChannelSpec<Shape extends SettingShape, Required extends SettingName<Shape>> {
  /** The format of a delivered message, for docs/notifications.md. */
  readonly delivers: string;
  /** The channel's keys under `notifications`. Each begins with the channel's name. */
  readonly settings: Shape;
  /** The channel is configured when all of these are set. */
  readonly required: readonly Required[];
  readonly needs?: readonly SettingNeed<SettingName<Shape>>[];
  readonly findConflicts?: (settings: SettingsOf<Shape>) => readonly SettingConflict<SettingName<Shape>>[];
  readonly open: (settings: ConfiguredSettings<Shape, Required>, transport: ChannelTransport) => ChannelSender;
}

interface ChannelDefinition<Shape extends SettingShape> {
  readonly delivers: string;
  readonly settings: Shape;
  readonly required: readonly string[];
  /** The settings that hold the URL of a peer. */
  readonly urlSettings: readonly string[];
  isConfigured(settings: SettingsOf<Shape>): boolean;
  findUnmetNeeds(settings: SettingsOf<Shape>): readonly SettingNeed<string>[];
  findConflicts(settings: SettingsOf<Shape>): readonly SettingConflict<string>[];
  /** The URLs of peers that are set. Each must be public unless private addresses are allowed. */
  peerUrls(settings: SettingsOf<Shape>): readonly { readonly setting: string; readonly url: string }[];
  /** Undefined if the channel is not configured. */
  open(settings: SettingsOf<Shape>, transport: ChannelTransport): ChannelSender | undefined;
}

export function defineChannel<const Shape extends SettingShape, const Required extends SettingName<Shape>>(
  spec: ChannelSpec<Shape, Required>,
): ChannelDefinition<Shape> {
  const { delivers, settings: shape, required, needs = [], findConflicts = () => [], open } = spec;
  const isConfigured = (settings: SettingsOf<Shape>) => required.every((name) => isSet(settings[name]));
  const urlSettings = Object.keys(shape).filter((name) => settingMeta.get(shape[name]!)?.isUrl === true);
  return {
    delivers,
    settings: shape,
    required,
    urlSettings,
    isConfigured,
    findUnmetNeeds: (settings) =>
      needs.filter(({ setting, because }) => isSet(settings[because]) && !isSet(settings[setting])),
    findConflicts,
    peerUrls: (settings) =>
      urlSettings
        // A URL with a default is used only with the other settings of the channel.
        .filter((setting) => isConfigured(settings) || settingMeta.get(shape[setting]!)?.fallback === "off")
        .map((setting) => ({ setting, url: settings[setting] as string | null }))
        .filter((each): each is { setting: string; url: string } => each.url !== null),
    open: (settings, transport) =>
      isConfigured(settings) ? open(settings as ConfiguredSettings<Shape, Required>, transport) : undefined,
  };
}

function isSet(value: unknown): boolean {
  return Array.isArray(value) ? value.length > 0 : value !== null;
}

/** The outcome of the attempt, or a failure at the timeout: not every connection honours its signal. */
export async function sendWithin(
  ms: number,
  stop: AbortSignal,
  attempt: (signal: AbortSignal) => Promise<SendOutcome>,
): Promise<SendOutcome> {
  // Not AbortSignal.timeout, which would outlive the attempt until its time is up.
  const controller = new AbortController();
  const { promise: over, resolve } = Promise.withResolvers<SendOutcome>();
  const end = (error: string) => {
    controller.abort();
    resolve({ kind: "failed", error, mayHaveArrived: true });
  };
  const onStop = () => end("the service stopped during the attempt");
  const timer = setTimeout(() => end(`not done within ${ms / 1000} s`), ms);
  stop.addEventListener("abort", onStop);
  if (stop.aborted) onStop();
  try {
    return await Promise.race([over, attempt(controller.signal)]);
  } finally {
    clearTimeout(timer);
    stop.removeEventListener("abort", onStop);
  }
}
