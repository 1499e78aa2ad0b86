// PostgreSQL refuses the character U+0000 in texts, and a lone surrogate has no form in UTF-8. Texts that others chose, such as
// a group's value or a typed id, are stored and looked up as the inside of a JSON string. That of most texts is the text
// itself, two texts are equal if theirs are, and one begins with another if theirs does.

export function plainText(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

export function textOfPlain(plain: string): string {
  return JSON.parse(`"${plain}"`) as string;
}
