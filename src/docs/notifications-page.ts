import { snakeCase } from "../lib/text.ts";
import { CHANNELS } from "../model/rule.ts";
import { CHANNEL_DEFINITIONS } from "../notify/channels.ts";
import { TEMPLATE_ESCAPES, TEMPLATE_FIELDS } from "../notify/message-template.ts";
import { code, markdownTable, printParts } from "./markdown.ts";

// docs/notifications.md is written by hand, except for the table of channels.

/** The page with its generated table up to date. */
export function printChannelTable(page: string): string {
  return printParts("docs/notifications.md", page, { channels: channelTable, template: templateTables });
}

function channelTable(): string {
  return markdownTable(
    ["channel", "required settings", "optional settings", "delivers"],
    CHANNELS.map((name) => {
      const { settings, required, delivers } = CHANNEL_DEFINITIONS[name];
      const optional = Object.keys(settings).filter((setting) => !required.includes(setting));
      return [code(name), pathsOf(required), pathsOf(optional), delivers];
    }),
  );
}

function pathsOf(settings: readonly string[]): string {
  return settings.map((setting) => code(`notifications.${snakeCase(setting)}`)).join(", ");
}

function templateTables(): string {
  const rows = (table: Readonly<Record<string, string>>) =>
    Object.entries(table).map(([name, about]) => [code(name), about]);
  return `${markdownTable(["field", "value"], rows(TEMPLATE_FIELDS))}\n\n${markdownTable(["escape", "result"], rows(TEMPLATE_ESCAPES))}`;
}
