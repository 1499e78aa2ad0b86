import type { z } from "zod";
import { snakeCase } from "../lib/text.ts";
import { CHANNELS, type Channel } from "../model/rule.ts";
import { discord } from "./channels/discord.ts";
import { elasticsearch } from "./channels/elasticsearch.ts";
import { email } from "./channels/email.ts";
import { http } from "./channels/http.ts";
import { matrix } from "./channels/matrix.ts";
import { ntfy } from "./channels/ntfy.ts";
import { opsgenie } from "./channels/opsgenie.ts";
import { pagerduty } from "./channels/pagerduty.ts";
import { slack } from "./channels/slack.ts";
import { syslog } from "./channels/syslog.ts";
import { teams } from "./channels/teams.ts";
import { telegram } from "./channels/telegram.ts";
import { webhook } from "./channels/webhook.ts";

// The table of channels. Configuration, its checks, `tocsin check` and docs/notifications.md iterate over it. Every
// command loads it, so it imports nothing that connects.

export const CHANNEL_DEFINITIONS = {
  slack,
  email,
  webhook,
  ntfy,
  telegram,
  discord,
  teams,
  pagerduty,
  opsgenie,
  matrix,
  syslog,
  http,
  elasticsearch,
} as const satisfies Readonly<Record<Channel, unknown>>;

type Shapes = (typeof CHANNEL_DEFINITIONS)[Channel]["settings"];
type Intersection<Union> = (Union extends unknown ? (each: Union) => void : never) extends (all: infer All) => void
  ? All
  : never;
type ChannelShape = Intersection<Shapes>;

/** The settings of all channels, under `notifications`. */
export type ChannelSettings = {
  readonly [Key in keyof ChannelShape]: z.output<ChannelShape[Key]>;
};

/** The schemas of the settings of all channels. */
export function channelSettingShape(): ChannelShape {
  return Object.assign({}, ...CHANNELS.map((name) => CHANNEL_DEFINITIONS[name].settings)) as ChannelShape;
}

/** The channels that send to a URL. */
export function urlChannels(): Channel[] {
  return CHANNELS.filter((name) => CHANNEL_DEFINITIONS[name].urlSettings.length > 0);
}

/** The settings without which a channel is not configured, as they are named in the file. */
export function requiredSettings(name: Channel): string[] {
  const { required } = CHANNEL_DEFINITIONS[name];
  return required.map((setting) => `notifications.${snakeCase(setting)}`);
}
