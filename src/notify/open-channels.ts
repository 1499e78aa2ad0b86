import type { lookup as systemLookup } from "node:dns";
import { CHANNELS, type Channel } from "../model/rule.ts";
import type { ChannelSender, ChannelTransport, ConfiguredChannels } from "./channel.ts";
import { CHANNEL_DEFINITIONS, type ChannelSettings } from "./channels.ts";
import { post } from "./post.ts";

/** Replacements for the system's name resolution and trust store. */
export interface TransportOverrides {
  readonly lookup?: typeof systemLookup;
  /** Additional trusted certificate authorities for mail servers, in PEM. */
  readonly certificates?: string;
}

/** Opens the configured channels. */
export function openChannels(
  settings: ChannelSettings & { readonly privateAddresses: boolean },
  { lookup, certificates }: TransportOverrides = {},
): ConfiguredChannels {
  const { privateAddresses: allowsPrivate } = settings;
  const transport: ChannelTransport = {
    post: (request, signal) => post(request, { allowsPrivate, lookup, signal }),
    certificates,
  };
  const opened = new Map<Channel, ChannelSender>();
  for (const name of CHANNELS) {
    const sender = CHANNEL_DEFINITIONS[name].open(settings, transport);
    if (sender) opened.set(name, sender);
  }
  return opened;
}
