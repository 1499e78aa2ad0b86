import { CHANNELS, type Channel as ChannelName } from "../model/rule.ts";
import type { Channel, Channels, ChannelSettings, OpenChannel, Surroundings } from "./channel.ts";
import { openEmail } from "./channels/email.ts";
import { openSlack } from "./channels/slack.ts";
import { openWebhook } from "./channels/webhook.ts";

const OPENERS: Readonly<Record<ChannelName, OpenChannel>> = {
  slack: openSlack,
  email: openEmail,
  webhook: openWebhook,
};

/** Those that the settings have. */
export function openChannels(settings: ChannelSettings, surroundings: Surroundings = {}): Channels {
  const opened = new Map<ChannelName, Channel>();
  for (const name of CHANNELS) {
    const channel = OPENERS[name](settings, surroundings);
    if (channel) opened.set(name, channel);
  }
  return opened;
}
