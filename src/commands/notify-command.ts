import { Argument, type Command } from "commander";
import { clientAddress } from "../config/config.ts";
import { idMaker } from "../lib/id.ts";
import { CHANNELS, type Channel } from "../model/rule.ts";
import { CommandFailure, EXIT_FAILED, EXIT_WRONG_USE } from "./command-failure.ts";
import { addSettingFlags, requireSettings } from "./setting-flags.ts";
import { print, printJson } from "./terminal.ts";

export function addNotify(program: Command): void {
  const notify = program.command("notify").description("test the notification channels");
  const test = notify
    .command("test")
    .description("send one test message and report the outcome")
    .addArgument(new Argument("<channel>", "the channel").choices(CHANNELS))
    .option("--json", "as one JSON object");
  addSettingFlags(test)
    .addHelpText(
      "after",
      `
Uses the settings of the service. Stores nothing and does not retry.

Examples:
  tocsin notify test slack
  tocsin notify test email --notifications-email-host mail.example.com \\
    --notifications-email-from tocsin@example.com --notifications-email-to you@example.com

Exit codes: 0 delivered, ${EXIT_FAILED} not delivered, ${EXIT_WRONG_USE} the channel is not configured or the configuration is wrong.`,
    )
    .action(async (name: Channel, { json }: { json?: true }) => {
      const { settings } = requireSettings(test);
      const { openChannels } = await import("../notify/open-channels.ts");
      const { testMessage } = await import("../notify/test-message.ts");
      const channel = openChannels(settings.notifications).get(name);
      if (!channel) {
        const message = `The channel ${name} is not configured. docs/notifications.md says what it needs.`;
        throw new CommandFailure(message, EXIT_WRONG_USE);
      }
      const base = settings.notifications.consoleUrl ?? clientAddress(settings.host, settings.port);
      const reason = "Somebody ran `tocsin notify test`.";
      const message = testMessage({ deliveryId: idMaker("dlv_")(), at: Date.now(), url: base, reason });
      const outcome = await channel.send(message, new AbortController().signal);
      if (outcome.kind !== "sent") process.exitCode = EXIT_FAILED;
      if (json) return printJson({ channel: name, outcome: outcome.kind, error: outcome.error ?? null });
      if (outcome.kind === "sent") print(`Delivered to ${name}${outcome.error ? `, but ${outcome.error}` : ""}.`);
      else if (outcome.kind === "partly")
        process.stderr.write(`Not delivered to all recipients of ${name}: ${outcome.error}\n`);
      else process.stderr.write(`Not delivered to ${name}: ${outcome.error}\n`);
    });
}
