import { secretUrlOrOff, textOrOff, tokenOrOff } from "../../lib/setting-types.ts";
import { cutBytes, oneLine } from "../../lib/text.ts";
import { defineChannel, type PeerAnswer } from "../channel.ts";
import { html } from "../escape.ts";
import { digestOf, headlineOf, lineOf, type Message, REPEAT_WORDS } from "../message.ts";
import { plainLines } from "../message-text.ts";

// Messages to a room of Matrix, in plain text and HTML. The delivery id is the transaction id: a server that has the message
// already does not post it again.

/** An event may have 64 KB, with escapes: ours has at most half of it. */
const TEXT_BYTES_MAX = 12_000;
const HTML_TEXT_BYTES_MAX = 4000;
const TITLE_CHARACTERS_MAX = 300;
const DESCRIPTION_CHARACTERS_MAX = 2000;
const LINE_CHARACTERS_MAX = 300;
const ALERTS_SHOWN_MAX = 20;

export const matrix = defineChannel({
  delivers: "a message in plain text and HTML",
  settings: {
    matrixUrl: secretUrlOrOff("base URL of the Matrix server, such as https://matrix.example.com"),
    matrixToken: tokenOrOff("access token of the account that writes"),
    matrixRoom: textOrOff(
      "room that the account has joined; messages are not encrypted",
      "the id of a room, such as !abc:example.com",
      /^![^\s/?#]{1,254}$/,
    ),
  },
  required: ["matrixUrl", "matrixToken", "matrixRoom"],
  needs: [
    { setting: "matrixToken", because: "matrixUrl", why: "the server wants to know the account" },
    { setting: "matrixRoom", because: "matrixUrl", why: "a message needs a room" },
    { setting: "matrixUrl", because: "matrixToken", why: "nothing is sent without it" },
    { setting: "matrixUrl", because: "matrixRoom", why: "nothing is sent without it" },
  ],
  open: ({ matrixUrl, matrixToken: token, matrixRoom }, { post }) => {
    const room = `${matrixUrl.replace(/\/+$/, "")}/_matrix/client/v3/rooms/${encodeURIComponent(matrixRoom)}`;
    return {
      send: (message, signal) =>
        post(
          {
            method: "PUT",
            url: `${room}/send/m.room.message/${encodeURIComponent(message.deliveryId)}`,
            body: JSON.stringify(contentOf(message)),
            headers: { Authorization: `Bearer ${token}` },
            secrets: [token],
            delayMsOf,
          },
          signal,
        ),
    };
  },
});

/** Older servers have the delay in the answer only. */
function delayMsOf({ retry_after_ms: ms }: PeerAnswer): number | undefined {
  return typeof ms === "number" ? ms : undefined;
}

function contentOf(message: Message): object {
  const headline = headlineOf(message, TITLE_CHARACTERS_MAX);
  const limits = { alertsMax: ALERTS_SHOWN_MAX, descriptionCharactersMax: DESCRIPTION_CHARACTERS_MAX };
  const body = [headline, "", ...plainLines(message, limits)].join("\n");
  return {
    // Not m.notice, of which most clients tell nobody.
    msgtype: "m.text",
    body: cutBytes(body, TEXT_BYTES_MAX),
    format: "org.matrix.custom.html",
    formatted_body: htmlOf(message, headline),
    // Present and empty: nobody is mentioned, whatever the text contains.
    "m.mentions": {},
  };
}

function htmlOf(message: Message, headline: string): string {
  const { items, isRepeat } = message;
  const head = `<strong>${html(headline)}</strong>`;
  if (items.length === 1) {
    const [item] = items;
    const limits = { alertsMax: 1, descriptionCharactersMax: DESCRIPTION_CHARACTERS_MAX };
    // The link has words of its own.
    const details = plainLines(message, limits).filter((line) => line !== item!.url);
    const text = html(cutBytes(details.join("\n").trim(), HTML_TEXT_BYTES_MAX)).replaceAll("\n", "<br>");
    return `${head}<br>${text}<br>${link(item!.url, "Open the alert")}`;
  }
  const { shown, omitted } = digestOf(items, ALERTS_SHOWN_MAX);
  const alerts = shown.map(
    (item) => `<li>[${item.alert.severity}] ${link(item.url, oneLine(lineOf(item), LINE_CHARACTERS_MAX))}</li>`,
  );
  const more = omitted > 0 ? `<p>And ${omitted} more.</p>` : "";
  return `${head}<ul>${alerts.join("")}</ul>${more}${isRepeat ? `<p>${REPEAT_WORDS}</p>` : ""}`;
}

function link(url: string, words: string): string {
  return `<a href="${html(url)}">${html(words || "–")}</a>`;
}
