import type { IconName } from "../components/ui/icons.tsx";
import type { ChannelStatus } from "../data/channels.ts";

export type ChannelName = ChannelStatus["name"];

/** The channels that the service knows, in the order in which it lists them. */
export const CHANNELS: Readonly<Record<ChannelName, { readonly name: string; readonly icon: IconName }>> = {
  slack: { name: "Slack", icon: "message-square" },
  email: { name: "E-mail", icon: "mail" },
  webhook: { name: "Webhook", icon: "webhook" },
  ntfy: { name: "ntfy", icon: "bell" },
  telegram: { name: "Telegram", icon: "send" },
  discord: { name: "Discord", icon: "message-square" },
  teams: { name: "Microsoft Teams", icon: "message-square" },
  pagerduty: { name: "PagerDuty", icon: "bell" },
  opsgenie: { name: "Opsgenie", icon: "bell" },
  matrix: { name: "Matrix", icon: "message-square" },
  syslog: { name: "Syslog", icon: "list" },
  http: { name: "HTTP request", icon: "webhook" },
  elasticsearch: { name: "Elasticsearch", icon: "search" },
};

export const CHANNEL_NAMES = Object.keys(CHANNELS) as ChannelName[];
