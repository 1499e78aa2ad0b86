// Parser of `condition`: names of selections, `and`, `or`, `not`, parentheses, `1 of them`, `all of filter_*`.

export type Expression =
  | { readonly kind: "name"; readonly name: string }
  | { readonly kind: "of"; readonly quantity: "any" | "all"; readonly pattern: string }
  | { readonly kind: "and" | "or"; readonly of: readonly Expression[] }
  | { readonly kind: "not"; readonly of: Expression };

export interface ParsedCondition {
  readonly expression: Expression;
  /** The text after a pipe: the aggregation of rules that predate correlations. */
  readonly aggregation: string | null;
}

const PARENTHESES_MAX = 64;
const TOKENS_MAX = 2000;

class Unreadable extends Error {}

export function parseCondition(text: string): ParsedCondition | { readonly fault: string } {
  const pipe = text.indexOf("|");
  const aggregation = pipe < 0 ? null : text.slice(pipe + 1).trim();
  const tokens = (pipe < 0 ? text : text.slice(0, pipe)).match(/[()]|[^\s()]+/g) ?? [];
  if (tokens.length > TOKENS_MAX) return { fault: `more than ${TOKENS_MAX} words` };
  try {
    return { expression: new ConditionParser(tokens).readAll(), aggregation };
  } catch (error) {
    if (error instanceof Unreadable) return { fault: error.message };
    throw error;
  }
}

class ConditionParser {
  readonly #tokens: readonly string[];
  #at = 0;
  #depth = 0;

  constructor(tokens: readonly string[]) {
    this.#tokens = tokens;
  }

  readAll(): Expression {
    const expression = this.#readJoined("or", () => this.#readJoined("and", () => this.#readNegated()));
    const rest = this.#tokens[this.#at];
    if (rest !== undefined) throw new Unreadable(`unexpected "${rest}"`);
    return expression;
  }

  #readJoined(word: "and" | "or", readPart: () => Expression): Expression {
    const parts = [readPart()];
    while (this.#takeWord(word)) parts.push(readPart());
    return parts.length === 1 ? parts[0]! : { kind: word, of: parts };
  }

  #readNegated(): Expression {
    let negations = 0;
    while (this.#takeWord("not")) negations++;
    const operand = this.#readOperand();
    return negations % 2 === 0 ? operand : { kind: "not", of: operand };
  }

  #readOperand(): Expression {
    const token = this.#tokens[this.#at++];
    if (token === undefined) throw new Unreadable("ends where a selection is expected");
    if (token === "(") return this.#readParenthesis();
    const quantity = quantityOf(token);
    if (quantity !== undefined && this.#takeWord("of")) {
      const pattern = this.#tokens[this.#at++];
      if (pattern === undefined)
        throw new Unreadable(`"${token} of" requires them, or a name pattern such as filter_*`);
      return { kind: "of", quantity, pattern };
    }
    if (/^\w+$/.test(token) && this.#takeWord("of"))
      throw new Unreadable(`"${token} of" is not supported; use 1 of, any of or all of`);
    if (token === ")" || /^(and|or|of)$/i.test(token))
      throw new Unreadable(`"${token}" found where a selection is expected`);
    return { kind: "name", name: token };
  }

  #readParenthesis(): Expression {
    if (++this.#depth > PARENTHESES_MAX) throw new Unreadable(`parentheses nested deeper than ${PARENTHESES_MAX}`);
    const inner = this.#readJoined("or", () => this.#readJoined("and", () => this.#readNegated()));
    if (this.#tokens[this.#at++] !== ")") throw new Unreadable("a parenthesis is not closed");
    this.#depth--;
    return inner;
  }

  #takeWord(word: string): boolean {
    if (this.#tokens[this.#at]?.toLowerCase() !== word) return false;
    this.#at++;
    return true;
  }
}

function quantityOf(token: string): "any" | "all" | undefined {
  const word = token.toLowerCase();
  if (word === "1" || word === "any") return "any";
  return word === "all" ? "all" : undefined;
}

/** The names that `them` or a pattern such as `filter_*` matches. */
export function namesLike(pattern: string, names: readonly string[]): string[] {
  if (pattern.toLowerCase() === "them") return names.filter((name) => !name.startsWith("_"));
  const pieces = pattern.split("*").map((piece) => piece.replaceAll(/[\\^$.|?+()[\]{}]/g, "\\$&"));
  const like = new RegExp(`^${pieces.join(".*")}$`);
  return names.filter((name) => like.test(name));
}
