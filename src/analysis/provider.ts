import { z } from "zod";
import { readRetryAfter, send, type OutgoingAnswer } from "../lib/outgoing.ts";
import { lines, oneLine } from "../lib/text.ts";
import { SUMMARY_CHARACTERS_MAX } from "../model/alert.ts";
import type { ServiceFailure } from "./provider-backoff.ts";
import type { AnalysisPrompt } from "./prompt.ts";
import type { Judgement } from "./scorer.ts";

// A model behind an OpenAI-compatible API. Its answer is untrusted data: it is validated, and never executed.

const ANSWER_BYTES_MAX = 256 * 1024;
const ANSWER_TOKENS_MAX = 1500;
const POINTS_MAX = 10;
const POINT_CHARACTERS_MAX = 500;
/** Lower bound of characters per token, for an estimate. */
const CHARACTERS_PER_TOKEN = 3;
const ERROR_CHARACTERS_MAX = 200;
/** Statuses that the next request would get as well. */
const FINAL_STATUSES = new Set([401, 403, 429]);
/** Advice for the operator. */
const REMEDIES: Readonly<Record<number, string>> = {
  401: " (is analysis.key right?)",
  403: " (is analysis.key right?)",
  404: " (are analysis.url and analysis.model right?)",
};

export interface ProviderSettings {
  readonly url: string;
  readonly model: string;
  readonly key: string | null;
  readonly timeoutMs: number;
  readonly now: () => number;
}

/**
 * `tokens`: the cost as far as known. `failure`: the service failed, regardless of the prompt. A bad answer to one prompt is
 * not a failure of the service: otherwise an attacker who writes events could trigger the backoff.
 */
export type ProviderOutcome =
  | { readonly judgement: Judgement; readonly tokens: number }
  | { readonly error: string; readonly tokens: number; readonly failure?: ServiceFailure };

const pointSchema = z.string().min(1).max(POINT_CHARACTERS_MAX);
const judgementSchema = z.strictObject({
  summary: z.string().min(1).max(SUMMARY_CHARACTERS_MAX),
  threat_score: z.int().min(0).max(100),
  reasoning: z.array(pointSchema).min(1).max(POINTS_MAX),
  suggested_actions: z.array(pointSchema).max(POINTS_MAX),
});
const completionSchema = z.object({
  choices: z
    .array(
      z.object({
        message: z.object({ content: z.string().nullish(), refusal: z.string().nullish() }),
        finish_reason: z.string().nullish(),
      }),
    )
    .min(1),
  usage: z.object({ total_tokens: z.int().min(0) }).nullish(),
});

/** The schema for the model, without limits, which not every service supports. */
const ANSWER_SCHEMA = {
  type: "object",
  additionalProperties: false,
  required: ["summary", "threat_score", "reasoning", "suggested_actions"],
  properties: {
    summary: { type: "string" },
    threat_score: { type: "integer" },
    reasoning: { type: "array", items: { type: "string" } },
    suggested_actions: { type: "array", items: { type: "string" } },
  },
};

export class Provider {
  readonly #settings: ProviderSettings;
  /** False once the service has refused a request with a schema and accepted one without. */
  #takesSchema = true;

  constructor(settings: ProviderSettings) {
    this.#settings = settings;
  }

  /** The provider named in an analysis. */
  get name(): string {
    return new URL(this.#settings.url).host;
  }

  get model(): string {
    return this.#settings.model;
  }

  /** The maximum cost of the prompt in tokens. */
  estimate({ system, user }: AnalysisPrompt): number {
    return Math.ceil((system.length + user.length) / CHARACTERS_PER_TOKEN) + ANSWER_TOKENS_MAX;
  }

  /** Never rejects because of the service: that is an outcome. */
  async analyse(prompt: AnalysisPrompt, signal: AbortSignal): Promise<ProviderOutcome> {
    let answer: OutgoingAnswer;
    try {
      answer = await this.#send(prompt, signal);
      if (this.#takesSchema && (answer.status === 400 || answer.status === 422)) {
        const plain = await this.#send(prompt, signal, false);
        if (plain.status === 200) this.#takesSchema = false;
        answer = plain;
      }
    } catch (error) {
      // The service may have received and charged the request.
      return failed(oneLine((error as Error).message, ERROR_CHARACTERS_MAX), this.estimate(prompt));
    }
    // The body is not reported: some services repeat the key in it.
    const { status, headers } = answer;
    if (status !== 200) {
      const isFinal = FINAL_STATUSES.has(status);
      const retryAfterMs = readRetryAfter(headers, this.#settings.now());
      return failed(`answered ${status}${REMEDIES[status] ?? ""}`, 0, { isFinal, retryAfterMs });
    }
    if (answer.isCut) return failed(`the response is longer than ${ANSWER_BYTES_MAX} bytes`, this.estimate(prompt));
    return readCompletion(answer.body.toString(), this.estimate(prompt));
  }

  #send(
    { system, user }: AnalysisPrompt,
    signal: AbortSignal,
    withSchema = this.#takesSchema,
  ): Promise<OutgoingAnswer> {
    const { url, model, key, timeoutMs } = this.#settings;
    const body = {
      model,
      messages: [
        { role: "system", content: system },
        { role: "user", content: user },
      ],
      // Not every service supports these. The answer is validated anyway.
      ...(withSchema && {
        temperature: 0,
        max_tokens: ANSWER_TOKENS_MAX,
        response_format: {
          type: "json_schema",
          json_schema: { name: "judgement", strict: true, schema: ANSWER_SCHEMA },
        },
      }),
    };
    return send({
      method: "POST",
      url: `${url.replace(/\/+$/, "")}/chat/completions`,
      headers: { "Content-Type": "application/json", ...(key !== null && { Authorization: `Bearer ${key}` }) },
      body: JSON.stringify(body),
      timeoutMs,
      answerBytesMax: ANSWER_BYTES_MAX,
      // The operator configured it, and models often run on the same network.
      allowsPrivate: true,
      signal,
    });
  }
}

function failed(
  error: string,
  tokens: number,
  more: Omit<ServiceFailure, "error"> = { isFinal: false },
): ProviderOutcome {
  return { error, tokens, failure: { error, ...more } };
}

function readCompletion(text: string, estimate: number): ProviderOutcome {
  const completion = completionSchema.safeParse(parseJson(text));
  if (!completion.success) return failed("the response is not a chat completion", estimate);
  const { choices, usage } = completion.data;
  const tokens = usage?.total_tokens ?? estimate;
  const { message, finish_reason: ending } = choices[0]!;
  if (message.refusal) return { error: "the model refused to analyse the alert", tokens };
  if (ending === "length") return { error: "the response was cut off at the token limit", tokens };
  const judgement = judgementSchema.safeParse(parseJson(unfenced(message.content ?? "")));
  if (!judgement.success) {
    const [issue] = judgement.error.issues;
    const place = issue!.path.map(String).join(".");
    return { error: `the response does not fit the schema${place === "" ? "" : ` (${oneLine(place, 50)})`}`, tokens };
  }
  const { summary, threat_score, reasoning, suggested_actions } = judgement.data;
  // The schema limits code points. Those outside the basic plane take two UTF-16 units and must not be cut.
  const points = (list: readonly string[]) =>
    list.map((point) => oneLine(point, 2 * POINT_CHARACTERS_MAX)).filter((point) => point !== "");
  return {
    judgement: {
      summary: lines(summary, 2 * SUMMARY_CHARACTERS_MAX),
      threat_score,
      reasoning: points(reasoning),
      suggested_actions: points(suggested_actions),
    },
    tokens,
  };
}

/** Removes the Markdown fence that models put around JSON without a schema. */
function unfenced(text: string): string {
  return /^\s*```(?:json)?\s*\n([\s\S]*?)\n?\s*```\s*$/.exec(text)?.[1] ?? text;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
