import { secretUrlOrOff, tokenOrOff } from "../../lib/setting-types.ts";
import { cutBytes } from "../../lib/text.ts";
import type { Severity } from "../../model/event.ts";
import { defineChannel } from "../channel.ts";
import { digestOf, headlineOf, type Message } from "../message.ts";
import { plainLines } from "../message-text.ts";

// Messages to a topic of ntfy, published as JSON. They are plain text, in which nothing is markup.

/** A longer message would become an attachment, which many servers refuse. */
const MESSAGE_BYTES_MAX = 4096;
const TITLE_CHARACTERS_MAX = 200;
const DESCRIPTION_CHARACTERS_MAX = 1000;
const ALERTS_SHOWN_MAX = 10;
const TOPIC = /^[-_A-Za-z0-9]{1,64}$/;

/** From 1 to 5; 3 is ntfy's default, and 4 and 5 make a phone louder. */
const PRIORITIES: Readonly<Record<Severity, number>> = { critical: 5, high: 4, medium: 3, low: 2, info: 1 };
/** ntfy shows a tag with the name of an emoji as that emoji. */
const TAGS: Readonly<Record<Severity, string>> = {
  critical: "rotating_light",
  high: "rotating_light",
  medium: "warning",
  low: "information_source",
  info: "information_source",
};

export const ntfy = defineChannel({
  delivers: "a push message with the priority of the severity",
  settings: {
    ntfyUrl: secretUrlOrOff("URL of a topic of ntfy, such as https://ntfy.sh/<topic>"),
    ntfyToken: tokenOrOff("access token for a topic that is protected"),
  },
  required: ["ntfyUrl"],
  needs: [{ setting: "ntfyUrl", because: "ntfyToken", why: "nothing is published without it" }],
  findConflicts: ({ ntfyUrl }) =>
    ntfyUrl !== null && !TOPIC.test(partsOf(ntfyUrl).topic)
      ? [{ setting: "ntfyUrl", message: "must end with a topic: 1 to 64 letters, digits, dashes and underscores" }]
      : [],
  open: ({ ntfyUrl, ntfyToken: token }, { post }) => {
    const { server, topic } = partsOf(ntfyUrl);
    return {
      send: (message, signal) =>
        post(
          {
            url: server,
            body: JSON.stringify(bodyOf(message, topic)),
            headers: token === null ? {} : { Authorization: `Bearer ${token}` },
            secrets: [topic, ...(token === null ? [] : [token])],
          },
          signal,
        ),
    };
  },
});

/** JSON is published at the URL above the topic. */
function partsOf(address: string): { server: string; topic: string } {
  const url = new URL(address);
  const path = url.pathname.replace(/\/+$/, "");
  const topic = path.slice(path.lastIndexOf("/") + 1);
  url.pathname = path.slice(0, path.length - topic.length);
  url.search = "";
  url.hash = "";
  return { server: url.href, topic };
}

function bodyOf(message: Message, topic: string): object {
  const { items } = message;
  const [worst] = digestOf(items, 1).shown;
  const { severity } = worst!.alert;
  const isOver = items.every(({ reason }) => reason === "resolved");
  const limits = { alertsMax: ALERTS_SHOWN_MAX, descriptionCharactersMax: DESCRIPTION_CHARACTERS_MAX };
  return {
    topic,
    title: headlineOf(message, TITLE_CHARACTERS_MAX),
    message: cutBytes(plainLines(message, limits).join("\n").trim(), MESSAGE_BYTES_MAX),
    // Nobody is woken because an alert was resolved.
    priority: isOver ? Math.min(PRIORITIES[severity], PRIORITIES.medium) : PRIORITIES[severity],
    tags: [isOver ? "white_check_mark" : TAGS[severity]],
    click: worst!.url,
  };
}
